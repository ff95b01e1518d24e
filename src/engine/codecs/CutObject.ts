/**
 * Reads what can be read of a JSON object that is broken or cut off: the members that are whole and the one it breaks off
 * in. For telling whether a call was meant; never for running one.
 */
import * as Result from "effect/Result"
import type { Json } from "../../tools/JsonText.ts"
import { parsePayloadPrefix } from "./Envelope.ts"

export interface CutObject {
  readonly whole: ReadonlyMap<string, Json>
  /** The member it breaks off in. `text`: what there is of its value, if that is, or may yet be, a string. */
  readonly open?: { readonly key: string; readonly text?: string }
  /** What there is of a key that it breaks off in. */
  readonly openKey?: string
}

/** `start` is the offset of the opening brace. Reads no further than the first fault. */
export const readCut = (text: string, start: number): CutObject => {
  const whole = new Map<string, Json>()
  for (let at = skipSpace(text, start + 1); text[at] === '"'; at = skipSpace(text, at + 1)) {
    const key = parsePayloadPrefix(text, at)
    if (Result.isFailure(key)) return { whole, openKey: begun(text, at) }
    const name = key.success.value as string
    at = skipSpace(text, key.success.end)
    if (at === text.length) return { whole, open: { key: name, text: "" } }
    if (text[at] !== ":") return { whole, open: { key: name } }
    at = skipSpace(text, at + 1)
    const value = parsePayloadPrefix(text, at)
    if (Result.isFailure(value)) {
      const none = at === text.length
      return { whole, open: { key: name, ...(none || text[at] === '"' ? { text: none ? "" : begun(text, at) } : {}) } }
    }
    if (!whole.has(name)) whole.set(name, value.success.value)
    at = skipSpace(text, value.success.end)
    if (text[at] !== ",") return { whole }
  }
  return { whole }
}

/** Longer than any name. */
const textChars = 80

/** The plain beginning of a string that does not end well; `at` is its quote. */
const begun = (text: string, at: number): string => /^[^"\\\p{Cc}]*/u.exec(text.slice(at + 1, at + 1 + textChars))![0]

const skipSpace = (text: string, from: number): number => {
  let at = from
  while (at < text.length && " \n\r\t".includes(text[at]!)) at += 1
  return at
}
