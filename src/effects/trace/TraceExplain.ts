/**
 * One call from the text the model wrote to what the model was told, each step with the event that says so and the reason it
 * gives. Only what is on record: what is not said is said to be missing.
 */

import { type Stage, words } from "./TraceExplainWords.ts"
import { eventOf, type Fate, fateOf, type TraceCall, type TraceRun } from "./TraceRun.ts"
import { show } from "./TraceTimeline.ts"

export type { Stage } from "./TraceExplainWords.ts"

export interface Step {
  readonly stage: Stage
  readonly seq: number
  readonly seconds: number
  readonly text: string
}

export interface Explanation {
  readonly call: string
  readonly tool: string
  readonly turn: number | undefined
  readonly ordinal: number | undefined
  readonly fate: Fate
  readonly steps: ReadonlyArray<Step>
  /** What it came to, in one sentence. */
  readonly conclusion: string
}

const proposal = (call: TraceCall, run: TraceRun): ReadonlyArray<Step> => {
  const turn = run.turns.find((one) => one.turn === call.turn)
  const written = turn?.finished.at(-1)
  if (turn === undefined || written === undefined) return []
  const count = turn.parsed?.data["count"]
  const place =
    call.ordinal === undefined ? "" : `, call ${call.ordinal + 1}${typeof count === "number" ? ` of ${count}` : ""}`
  const text = `written in turn ${turn.turn + 1}${place}: ${show(written.data["text"]) || "(the text is not recorded)"}`
  return [{ stage: "proposal", seq: written.seq, seconds: written.t_ms / 1000, text }]
}

const conclusions: Readonly<Record<Fate, string>> = {
  succeeded: "It ran and succeeded",
  failed: "It ran and failed",
  rejected: "It was never executed: it was turned away",
  malformed: "It never became a call: what was written cannot be read as one",
  denied: "It was never executed: it was denied",
  "known from before": "It did not run again: the ledger knew what it had come to",
  "asks the user": "It is a question to the user, which ended the run",
  skipped: "Nothing happened to it: the run stopped first",
  undecided: "It was never executed: the decision was put off",
  unfinished: "The record does not say how it ended"
}

/** Why a call that is no call of this run was not one, by the gate that raised it. */
const because = (call: TraceCall): string => {
  const { class: kind, stage } = eventOf(call, "tool_call_rejected")?.data ?? {}
  return typeof kind === "string" && typeof stage === "string" ? ` (${kind}, raised by ${stage})` : ""
}

const concluded = (call: TraceCall, fate: Fate): string => {
  if (eventOf(call, "effect_escalated") !== undefined)
    return "Nobody here knows what it came to, and a person has to find out"
  return `${conclusions[fate]}${fate === "rejected" ? because(call) : ""}`
}

const told = (call: TraceCall, fate: Fate): string => {
  const committed = eventOf(call, "tool_result_committed")
  if (committed !== undefined)
    return `the model was told of its ${committed.data["ok"] === true ? "success" : "failure"}`
  if (eventOf(call, "tool_result_uncommitted") !== undefined) return "the run stopped before the model was told"
  if (fate === "malformed") return "the model was told of its mistake, if the run went on"
  if (fate === "rejected" || fate === "denied") return "the record does not say that the model was told"
  return "the model was told nothing"
}

/** Finds a call by its id, or by its place among all calls of the run, counted from 1. */
export const findCall = (run: TraceRun, named: string): TraceCall | undefined =>
  run.calls.find(({ id }) => id === named) ?? (/^[1-9]\d*$/.test(named) ? run.calls[Number(named) - 1] : undefined)

export const explain = (run: TraceRun, call: TraceCall): Explanation => {
  const fate = fateOf(call, run)
  const steps = call.events.flatMap((record): ReadonlyArray<Step> => {
    const said = Object.hasOwn(words, record.event_type) ? words[record.event_type]!(record) : undefined
    return said === undefined ? [] : [{ stage: said[0], seq: record.seq, seconds: record.t_ms / 1000, text: said[1] }]
  })
  return {
    call: call.id,
    tool: show(call.tool),
    turn: call.turn,
    ordinal: call.ordinal,
    fate,
    steps: [...proposal(call, run), ...steps],
    conclusion: `${concluded(call, fate)}; ${told(call, fate)}.`
  }
}
