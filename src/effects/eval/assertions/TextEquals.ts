/** `text_equals`: the final answer is this text, byte for byte. */
import * as Schema from "effect/Schema"
import { kind } from "../Kind.ts"
import { fail, pass, quote } from "../Verdict.ts"
import { finalText } from "./FinalText.ts"

export const textEquals = kind("text_equals", { value: Schema.String }, ({ value }, subject) => {
  const text = finalText(subject)
  if (typeof text !== "string") return text
  if (text === value) return pass
  let at = 0
  while (at < text.length && text[at] === value[at]) at += 1
  const from = Math.max(0, at - 20)
  return fail(
    `differs from character ${at} on: found ${quote(text.slice(from, at + 60))}, wanted ${quote(value.slice(from, at + 60))}`
  )
})
