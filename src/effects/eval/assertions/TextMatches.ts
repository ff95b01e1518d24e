/** `text_matches`: a JavaScript pattern finds something in the final answer. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { bounded, mostMillis } from "../Bounded.ts"
import { kind } from "../Kind.ts"
import { errored, fail, malformed, pass, quote } from "../Verdict.ts"
import { answerShown, finalText } from "./FinalText.ts"

const compiled = (pattern: string, flags: string): RegExp | string => {
  if (/[gy]/.test(flags)) return `flags ${quote(flags)}: g and y say where to go on, and nothing goes on here`
  try {
    return new RegExp(pattern, flags)
  } catch (cause) {
    return cause instanceof Error ? cause.message : String(cause)
  }
}

/**
 * Does every way of trying this pattern end soon? Where nothing repeats, or one thing does and has no alternatives, there are
 * at most as many ways as pairs of places in the text.
 */
const isTame = (pattern: string, text: string): boolean => {
  const repeats = pattern.replace(/\(\?/g, "(").match(/[*+?{]/g)?.length ?? 0
  return (
    text.length <= 4_096 && !/\\[1-9k]/.test(pattern) && (repeats === 0 || (repeats === 1 && !pattern.includes("|")))
  )
}

export const textMatches = kind(
  "text_matches",
  { pattern: Schema.String, flags: Schema.optionalKey(Schema.String) },
  ({ flags = "", pattern }, subject) => {
    if (pattern === "") return malformed("pattern is empty: it matches every text")
    const expression = compiled(pattern, flags)
    if (typeof expression === "string") return malformed(`pattern ${quote(pattern)} cannot be used: ${expression}`)
    const text = finalText(subject)
    if (typeof text !== "string") return text
    const look = () => expression.test(text)
    const found = isTame(pattern, text) ? Result.succeed(look()) : bounded(look)
    if (Result.isFailure(found)) return errored(`pattern ${quote(pattern)} took longer than ${mostMillis} ms`)
    return found.success ? pass : fail(`/${pattern}/${flags} does not match: ${answerShown(text)}`)
  }
)
