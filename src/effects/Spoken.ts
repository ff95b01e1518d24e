/**
 * Actions that a model says instead of calling: a question to the user, and that a task is none for a chat. Each counts
 * only as the whole of what is visible of a turn, so a text that quotes one, or holds one among other words, is none.
 * Reads text; what follows of it is the run's business.
 */
import * as Result from "effect/Result"
import { parse } from "../tools/JsonText.ts"

/** What a chat says when the message wants work done. */
export const handOverText = "TASK()"

export type Spoken =
  | { readonly _tag: "Clarify"; readonly question: string }
  | { readonly _tag: "HandOver" }
  /** Begins and ends like a question, and is none. */
  | { readonly _tag: "Broken"; readonly reason: string; readonly position: number }

/** Which of them the run listens for. */
export interface Listening {
  readonly clarify: boolean
  readonly handOver: boolean
}

const clarifyOpening = "CLARIFY("
const wrapped = /^<final>([\s\S]*)<\/final>$/

const how = 'ask with exactly one CLARIFY("…") and nothing else in the turn; write quotes inside it as \\"'

/** A model breaks lines inside a string without escaping them; JSON does not know that. */
const escapeBreaks = (text: string): string =>
  text.replaceAll("\r\n", "\\n").replaceAll("\n", "\\n").replaceAll("\r", "\\n").replaceAll("\t", "\\t")

const clarify = (text: string, offset: number): Spoken => {
  const broken = (why: string): Spoken => ({ _tag: "Broken", reason: `${why}: ${how}`, position: offset })
  const inside = text.slice(clarifyOpening.length, -1).trim()
  if (inside === "") return broken("the question is missing")
  const value = parse(escapeBreaks(inside))
  if (Result.isFailure(value) || typeof value.success !== "string") return broken("this is not one question in quotes")
  const question = value.success.trim()
  return question === "" ? broken("the question is empty") : { _tag: "Clarify", question }
}

/** What is said as the whole of a turn's visible text; `undefined` for any other text. */
export const spokenIn = (visible: string, { clarify: asks, handOver }: Listening): Spoken | undefined => {
  const whole = visible.trim()
  const inner = wrapped.exec(whole)?.[1]?.trim() ?? whole
  if (handOver && inner === handOverText) return { _tag: "HandOver" }
  if (!asks || !inner.startsWith(clarifyOpening) || !inner.endsWith(")")) return undefined
  return clarify(inner, visible.indexOf(clarifyOpening))
}

const [open, close] = ["<final>", "</final>"]

const begins = (text: string, opening: string): boolean => text.startsWith(opening) || opening.startsWith(text)

/** May this beginning of a visible text still become one of them? Then it is not shown yet. */
export const mayBecome = (visible: string, { clarify: asks, handOver }: Listening): boolean => {
  const start = visible.trim()
  if (visible === "" || !(asks || handOver)) return false
  // Space in front of one is no text.
  if (open.startsWith(start)) return true
  const inner = start.startsWith(open) ? start.slice(open.length).trimStart() : start
  const short = inner.length <= handOverText.length + close.length
  return (handOver && short && begins(inner, handOverText)) || (asks && begins(inner, clarifyOpening))
}
