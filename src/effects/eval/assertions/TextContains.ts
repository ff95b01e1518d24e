/** `text_contains`: the final answer has this text in it. */
import * as Schema from "effect/Schema"
import { kind } from "../Kind.ts"
import { fail, malformed, pass, quote } from "../Verdict.ts"
import { answerShown, finalText } from "./FinalText.ts"

export const holdsText = (text: string, value: string, caseSensitive: boolean): boolean =>
  caseSensitive ? text.includes(value) : text.toLowerCase().includes(value.toLowerCase())

export const textContains = kind(
  "text_contains",
  { value: Schema.String, case_sensitive: Schema.optionalKey(Schema.Boolean) },
  ({ case_sensitive = true, value }, subject) => {
    if (value === "") return malformed("value is empty: every text contains it")
    const text = finalText(subject)
    if (typeof text !== "string") return text
    return holdsText(text, value, case_sensitive) ? pass : fail(`${quote(value)} is not in it: ${answerShown(text)}`)
  }
)
