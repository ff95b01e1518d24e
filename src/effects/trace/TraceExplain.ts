/**
 * One call from the text the model wrote to what the model was told, each step with the event that says so and the reason it
 * gives. Only what is on record: what is not said is said to be missing.
 */
import type { TraceRecord } from "./TraceReader.ts"
import { eventOf, type Fate, fateOf, type TraceCall, type TraceRun } from "./TraceRun.ts"
import { show } from "./TraceTimeline.ts"

export type Stage =
  | "proposal"
  | "legality"
  | "arguments"
  | "rejection"
  | "approval"
  | "ledger"
  | "execution"
  | "artifact"
  | "late"
  | "told"

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

type Told = readonly [stage: Stage, text: string]

const problems = (errors: unknown): string =>
  Array.isArray(errors)
    ? errors
        .map(({ path, reason }: { readonly path?: unknown; readonly reason?: unknown }) =>
          [show(path), show(reason)].filter((part) => part !== "").join(": ")
        )
        .join("; ")
    : ""

const checkWords: Readonly<Record<string, string>> = { pass: "passed", fail: "FAILED", not_evaluated: "not looked at" }

const legality = ({ data }: TraceRecord): Told => {
  const checks = (["schema", "scopes", "pre"] as const).map(
    (name) => `${name === "pre" ? "precondition" : name} ${checkWords[String(data[name])] ?? show(data[name])}`
  )
  const { cause } = data
  return ["legality", `${checks.join(", ")}${cause === undefined ? "" : `; cause: ${show(cause)}`}`]
}

const finished = ({ data }: TraceRecord): Told => {
  const time = `after ${show(data["duration_ms"])} ms`
  if (data["ok"] === true)
    return ["execution", `succeeded ${time}: ${show(data["payload_excerpt"] ?? data["payload"])}`]
  const left: Readonly<Record<string, string>> = {
    none: "; it changed nothing",
    present: "; what it did before is still there",
    unknown: "; nobody knows what it changed"
  }
  return [
    "execution",
    `failed ${time} (${show(data["failure_kind"])}): ${show(data["payload"])}${left[show(data["effect"])] ?? ""}`
  ]
}

const settled = ({ data }: TraceRecord): Told => [
  "ledger",
  data["replayed"] === true
    ? `the ledger knew this call from before (${show(data["outcome"])}): nothing ran`
    : `settled as ${show(data["outcome"])}`
]

const words: Readonly<Record<string, (record: TraceRecord) => Told | undefined>> = {
  legality_checked: legality,
  tool_call_validated: ({ data }) => [
    "arguments",
    `valid: ${show(data["arguments"])}${data["effective"] === undefined ? "" : `, with defaults ${show(data["effective"])}`}; risk ${show(data["risk"]) || "not recorded"}`
  ],
  tool_call_rejected: ({ data }) => [
    "rejection",
    `${show(data["kind"])}: ${problems(data["errors"]) || "no reason on record"}`
  ],
  approval_requested: ({ data }) => [
    "approval",
    `somebody was asked about exactly this call (${show(data["digest"]).slice(0, 12)})`
  ],
  approval_decided: ({ data }) => ["approval", `${show(data["decision"])} by ${show(data["by"])}`],
  effect_intent: ({ data }) => [
    "ledger",
    `the intent was made durable (mode ${show(data["mode"])}, key ${show(data["key"]).slice(0, 12)})`
  ],
  effect_settled: settled,
  tool_execution_started: ({ data, step }) => [
    "execution",
    `started as execution ${show(data["call_seq"])} (${step})${deadline(data["deadline_ms"])}`
  ],
  tool_execution_finished: finished,
  artifact_written: ({ data }) => [
    "artifact",
    `${show(data["name"] ?? data["artifact_id"])}, ${show(data["size_bytes"])} bytes, SHA-256 ${show(data["sha256"])}`
  ],
  late_outcome: ({ data }) => [
    "late",
    `after it was given up it ${data["ok"] === true ? "succeeded" : `failed (${show(data["failure_kind"])})`}; the model was never told`
  ],
  tool_result_committed: ({ data }) => [
    "told",
    `${data["truncated"] === true ? "head and tail of the answer" : "the answer"}: ${show(data["answer"]) || (data["ok"] === true ? "success" : "failure")}`
  ],
  tool_result_uncommitted: ({ data }) => [
    "told",
    `nothing: the run stopped before (${show(data["reason"])}); it would have read ${show(data["answer"]) || "an answer"}`
  ],
  call_skipped: ({ data }) => [
    "told",
    `nothing: the run stopped before it was this call's turn (${show(data["reason"])})`
  ]
}

const noDeadline = 2 ** 31 - 1

const deadline = (millis: unknown): string => {
  if (typeof millis !== "number") return ""
  return millis === noDeadline ? ", without a deadline" : `, with ${millis} ms to run`
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
  rejected: "It was never executed: it is not a call this run allows",
  denied: "It was never executed: it was denied",
  "known from before": "It did not run again: the ledger knew what it had come to",
  "asks the user": "It is a question to the user, which ended the run",
  skipped: "Nothing happened to it: the run stopped first",
  undecided: "It was never executed: the decision was put off",
  unfinished: "The record does not say how it ended"
}

const told = (call: TraceCall, fate: Fate): string => {
  const committed = eventOf(call, "tool_result_committed")
  if (committed !== undefined)
    return `the model was told of its ${committed.data["ok"] === true ? "success" : "failure"}`
  if (eventOf(call, "tool_result_uncommitted") !== undefined) return "the run stopped before the model was told"
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
    conclusion: `${conclusions[fate]}; ${told(call, fate)}.`
  }
}
