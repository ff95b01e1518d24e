/** `text_not_contains`: the final answer does not have this text in it. */
import * as Schema from "effect/Schema"
import { kind } from "../Kind.ts"
import { fail, malformed, pass, quote } from "../Verdict.ts"
import { answerShown, saidText } from "./FinalText.ts"
import { holdsText } from "./TextContains.ts"

export const textNotContains = kind(
  "text_not_contains",
  { value: Schema.String, case_sensitive: Schema.optionalKey(Schema.Boolean) },
  ({ case_sensitive = true, value }, subject) => {
    if (value === "") return malformed("value is empty: every text contains it")
    const text = saidText(subject)
    if (typeof text !== "string") return text
    return holdsText(text, value, case_sensitive) ? fail(`${quote(value)} is in it: ${answerShown(text)}`) : pass
  }
)
