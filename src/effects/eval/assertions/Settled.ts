/** What a run wrote into the turns about calls: what each came to. Kinds about effects read this, never the proposals alone. */
import type { JsonObject } from "../../../tools/JsonText.ts"
import { callsOf, type ToolResultBlock, turnEvents } from "../../conversation/Conversation.ts"
import type { Subject } from "../Subject.ts"
import { quote } from "../Verdict.ts"

export interface SettledCall {
  /** The message whose turn says so. With `id` it names the call. */
  readonly message: number
  readonly id: string
  readonly tool: string
  readonly outcome: string
  readonly class: string | undefined
  readonly effect: string | undefined
  readonly executed: boolean
  /** What it was proposed with. */
  readonly input: JsonObject | undefined
  /** What it is answered with in the conversation. */
  readonly result: ToolResultBlock | undefined
}

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** Every settled call in order. A turn's events are about the calls of that turn: another one may have the same ids. */
export const settledCalls = (subject: Subject): ReadonlyArray<SettledCall> =>
  subject.eventsAt(turnEvents.call).map(({ at, attributes: said }) => {
    const id = text(said.id) ?? ""
    return {
      message: at,
      id,
      tool: text(said.tool) ?? "",
      outcome: text(said.outcome) ?? "",
      class: text(said.class),
      effect: text(said.effect),
      executed: said.executed === true,
      input: callsOf(subject.conversation.session[at]!).find((call) => call.id === id)?.input,
      result: subject.resultOf(at, id)
    }
  })

/** Is there any record of a run in it? A conversation written by hand has none, and nothing about effects can be said of it. */
export const recordMissing = (subject: Subject): string | undefined =>
  Object.values(turnEvents).some((name) => subject.events(name).length > 0)
    ? undefined
    : "the conversation has no record of a run (no events in its traces), so nothing is known of effects"

/** `settled: web_search refused (unknown_tool), add ok`. */
export const settledSeen = (subject: Subject): string => {
  const calls = settledCalls(subject)
  if (calls.length === 0) return recordMissing(subject) ?? "no call was settled"
  const words = calls
    .slice(0, 10)
    .map(({ class: kind, executed, outcome, tool }) =>
      [tool, executed ? "executed" : "not executed", outcome, kind === undefined ? "" : `(${kind})`]
        .filter((word) => word !== "")
        .join(" ")
    )
  return `settled: ${quote(words.join(", "), 600).slice(1, -1)}${calls.length > 10 ? ", …" : ""}`
}
