/** What a run wrote into the turns about calls: what each came to. Kinds about effects read this, never the proposals alone. */
import type { JsonObject } from "../../../tools/JsonText.ts"
import { turnEvents } from "../../conversation/Conversation.ts"
import type { Subject } from "../Subject.ts"
import { quote } from "../Verdict.ts"

export interface SettledCall {
  readonly id: string
  readonly tool: string
  readonly outcome: string
  readonly class: string | undefined
  readonly effect: string | undefined
  readonly executed: boolean
  /** What it was proposed with. */
  readonly input: JsonObject | undefined
}

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** Every settled call in order. */
export const settledCalls = (subject: Subject): ReadonlyArray<SettledCall> => {
  const inputs = new Map(subject.calls().map(({ id, input }) => [id, input]))
  return subject.events(turnEvents.call).map((said) => {
    const id = text(said.id) ?? ""
    return {
      id,
      tool: text(said.tool) ?? "",
      outcome: text(said.outcome) ?? "",
      class: text(said.class),
      effect: text(said.effect),
      executed: said.executed === true,
      input: inputs.get(id)
    }
  })
}

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
