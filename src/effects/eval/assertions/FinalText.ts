/** The text that text assertions are about, or why there is none. */
import type { Subject } from "../Subject.ts"
import { fail, quote, type Verdict } from "../Verdict.ts"

/** The last filled assistant's text. */
export const finalText = (subject: Subject): string | Verdict =>
  subject.final() ?? fail("no_filled_assistant: no assistant message of the conversation is filled")

/** As `finalText`, for what must not be in it: of a text that is not there nothing is known. */
export const saidText = (subject: Subject): string | Verdict => {
  const text = finalText(subject)
  return text === "" ? fail("no_text: the last filled assistant message has no text") : text
}

/** `the final answer is "…"`. */
export const answerShown = (text: string): string =>
  text === "" ? "the final answer is empty" : `the final answer is ${quote(text, 400)}`
