/**
 * Cuts an answer that is too long for the model to head and tail, on character boundaries, and says so in the answer:
 * total size and the artifact that holds the whole.
 */
import type { Json } from "../tools/JsonText.ts"
import { type Answer, answerText } from "../tools/ToolCall.ts"

const bytesOf = (answer: Answer): number => Buffer.byteLength(answerText(answer))

/** Neither end of a cut may split a surrogate pair. */
const head = (text: string, length: number): string => {
  const code = text.charCodeAt(length - 1)
  return text.slice(0, code >= 0xd800 && code <= 0xdbff ? length - 1 : length)
}
const tail = (text: string, length: number): string => {
  const from = text.length - length
  const code = text.charCodeAt(from)
  return text.slice(code >= 0xdc00 && code <= 0xdfff ? from + 1 : from)
}

const shortened = (
  text: string,
  keep: number,
  totalBytes: number,
  artifact: string | undefined
): { [key: string]: Json } => ({
  truncated: true,
  total_bytes: totalBytes,
  ...(artifact === undefined ? {} : { artifact }),
  head: head(text, Math.ceil(keep / 2)),
  tail: keep < 2 ? "" : tail(text, Math.floor(keep / 2))
})

const withText = (answer: Answer, cut: { [key: string]: Json }): Answer =>
  answer.ok
    ? { ok: true, result: cut }
    : { ok: false, kind: answer.kind, errors: [{ path: "", reason: `${cut["head"]} … ${cut["tail"]}` }] }

/** What is cut: a text result as it is, anything else as JSON; the reasons of a failure. */
const sourceOf = (answer: Answer): string => {
  if (!answer.ok)
    return answer.errors.map(({ path, reason }) => (path === "" ? reason : `${path}: ${reason}`)).join("; ")
  return typeof answer.result === "string" ? answer.result : JSON.stringify(answer.result)
}

/** The longest excerpt of `answer` whose text has at most `maxBytes` UTF-8 bytes; the answer itself if it fits. */
export const excerpt = (answer: Answer, maxBytes: number, artifact?: string): Answer => {
  if (bytesOf(answer) <= maxBytes) return answer
  const source = sourceOf(answer)
  const total = Buffer.byteLength(source)
  let low = 0
  let high = Math.min(source.length - 1, maxBytes)
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (bytesOf(withText(answer, shortened(source, middle, total, artifact))) <= maxBytes) low = middle
    else high = middle - 1
  }
  return withText(answer, shortened(source, low, total, artifact))
}
