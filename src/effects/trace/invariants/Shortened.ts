/** Is one text made of another? How answers are shortened and how a turn's text becomes the run's, read backwards. */
import { type Answer, answerText } from "../../../tools/ToolCall.ts"

const read = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The two ends of a cut, around the mark between them. */
const mark = " … "

const isCutOf = (cut: string, source: string): boolean => {
  for (let at = cut.indexOf(mark); at >= 0; at = cut.indexOf(mark, at + 1)) {
    if (source.startsWith(cut.slice(0, at)) && source.endsWith(cut.slice(at + mark.length))) return true
  }
  return false
}

const isShortResult = (short: unknown, source: string): boolean => {
  const { head, tail, total_bytes, truncated } = Object(short) as Readonly<Record<string, unknown>>
  return (
    truncated === true &&
    total_bytes === Buffer.byteLength(source) &&
    typeof head === "string" &&
    typeof tail === "string" &&
    source.startsWith(head) &&
    source.endsWith(tail)
  )
}

/** Is `text` an excerpt of the answer `whole`, as a result that is too long for the model is shown? */
export const isShortened = (text: string, whole: string): boolean => {
  const short = read(text) as Answer | undefined
  const answer = read(whole) as Answer | undefined
  if (answer === undefined || short === undefined || short?.ok !== answer.ok || answerText(short) !== text) return false
  if (answer.ok && short.ok) {
    const { result } = answer
    return isShortResult(short.result, typeof result === "string" ? result : JSON.stringify(result))
  }
  if (answer.ok || short.ok || short.kind !== answer.kind) return false
  const source = answer.errors.map(({ path, reason }) => (path === "" ? reason : `${path}: ${reason}`)).join("; ")
  return short.errors?.length === 1 && isCutOf(String(short.errors[0]?.reason), source)
}

/** Every mark that a family leaves out of a text has one of these. */
const marked = /[<[]/

/**
 * Is `text` what a turn says that was written as `raw`? Reasoning and marks are left out, wherever they stand; what has
 * neither is said whole.
 */
export const isMadeOf = (text: string, raw: string): boolean => {
  if (!marked.test(raw)) return text.trim() === raw.trim()
  if (raw.includes(text)) return true
  let at = 0
  for (const unit of text.split("")) {
    at = raw.indexOf(unit, at) + 1
    if (at === 0) return false
  }
  return true
}
