/**
 * One recorded run, taken apart for whoever asks about it: what it was made with, its turns, its calls with everything that
 * is on record of each, its end. Reads both schemas. Judges nothing: a broken trace gives a run with gaps.
 */

import { terminalTypes } from "../../actors/TraceEvent.ts"
import { emberSchema, fromEmber } from "./EmberTrace.ts"
import type { TraceRecord } from "./TraceReader.ts"

/** Everything on record about one call, in order. */
export interface TraceCall {
  readonly id: string
  /** The turn it was written in, where the record says so. */
  turn: number | undefined
  /** Place in its turn, from 0. */
  ordinal: number | undefined
  /** A name, or what stands for one that the model made up. */
  tool: unknown
  readonly events: Array<TraceRecord>
}

/** One turn of the model: an attempt more for each time it was continued. */
export interface TraceTurn {
  readonly turn: number
  readonly started: Array<TraceRecord>
  readonly finished: Array<TraceRecord>
  rolledBack: TraceRecord | undefined
  parsed: TraceRecord | undefined
  readonly calls: Array<TraceCall>
  /** Earlier tries, which died with their engine and were rolled back. */
  readonly died: Array<Pick<TraceTurn, "started" | "finished" | "rolledBack">>
}

export interface TraceRun {
  readonly schema: string
  readonly runId: string
  readonly records: ReadonlyArray<TraceRecord>
  readonly started: TraceRecord | undefined
  readonly provenance: TraceRecord | undefined
  readonly resumed: TraceRecord | undefined
  readonly turns: ReadonlyArray<TraceTurn>
  readonly calls: ReadonlyArray<TraceCall>
  readonly artifacts: ReadonlyArray<TraceRecord>
  /** Missing where the process died, was killed, or is still at it. */
  readonly terminal: TraceRecord | undefined
  /** Was it recorded with content? */
  readonly content: boolean
}

/** The event of this type about a call; the last one, should there be several. */
export const eventOf = (call: TraceCall, type: string): TraceRecord | undefined =>
  call.events.findLast((record) => record.event_type === type)

/** What became of a call. */
export type Fate =
  | "succeeded"
  | "failed"
  | "rejected"
  | "malformed"
  | "denied"
  | "known from before"
  | "asks the user"
  | "skipped"
  | "undecided"
  | "unfinished"

const decisionOf = (call: TraceCall): unknown => eventOf(call, "approval_decided")?.data["decision"]

/** A run that asks was ended by the last call that it let through. */
const asks = (call: TraceCall, { calls, terminal }: Pick<TraceRun, "calls" | "terminal">): boolean =>
  terminal?.event_type === "run_needs_input" &&
  calls.findLast((one) => eventOf(one, "tool_call_validated") !== undefined) === call

/** @param run the call's, which shows why it was left */
export const fateOf = (call: TraceCall, run: Pick<TraceRun, "calls" | "terminal">): Fate => {
  if (eventOf(call, "legality_checked")?.data["cause"] === "malformed") return "malformed"
  const finished = eventOf(call, "tool_execution_finished")
  if (finished !== undefined) return finished.data["ok"] === true ? "succeeded" : "failed"
  const rejected = eventOf(call, "tool_call_rejected")
  if (rejected !== undefined) return decisionOf(call) === "deny" || rejected.phase === "approve" ? "denied" : "rejected"
  if (eventOf(call, "effect_settled")?.data["replayed"] === true) return "known from before"
  if (eventOf(call, "tool_execution_started") !== undefined) return "unfinished"
  if (decisionOf(call) === "suspend") return "undecided"
  if (asks(call, run)) return "asks the user"
  if (eventOf(call, "call_skipped") !== undefined) return "skipped"
  const answered = eventOf(call, "tool_result_committed") ?? eventOf(call, "tool_result_uncommitted")
  if (answered !== undefined) return answered.data["ok"] === true ? "succeeded" : "failed"
  return "unfinished"
}

const turnOf = ({ data, step }: TraceRecord): number | undefined => {
  const { turn } = data
  if (typeof turn === "number") return turn
  const found = /^model-(\d+)$/.exec(step)
  return found === null ? undefined : Number(found[1])
}

class Taking {
  readonly turns = new Map<number, TraceTurn>()
  readonly calls = new Map<string, TraceCall>()

  #turn(turn: number): TraceTurn {
    const known = this.turns.get(turn)
    if (known !== undefined) return known
    const tried = { started: [], finished: [], rolledBack: undefined }
    const made: TraceTurn = { turn, ...tried, parsed: undefined, calls: [], died: [] }
    this.turns.set(turn, made)
    return made
  }

  #call(id: string, record: TraceRecord): void {
    const known = this.calls.get(id)
    const call = known ?? { id, turn: undefined, ordinal: undefined, tool: undefined, events: [] }
    if (known === undefined) this.calls.set(id, call)
    call.events.push(record)
    call.tool ??= record.data["tool"]
    if (typeof record.data["ordinal"] === "number") call.ordinal ??= record.data["ordinal"]
    const turn = turnOf(record)
    if (call.turn !== undefined || turn === undefined) return
    call.turn = turn
    this.#turn(turn).calls.push(call)
  }

  /** One that died with its engine and starts again is what it is the second time. */
  #started(turn: TraceTurn, record: TraceRecord): void {
    if (turn.rolledBack !== undefined) {
      const { finished, rolledBack, started } = turn
      turn.died.push({ started: started.splice(0), finished: finished.splice(0), rolledBack })
      turn.rolledBack = undefined
    }
    turn.started.push(record)
  }

  readonly see = (record: TraceRecord): void => {
    const { data, event_type: type } = record
    if (typeof data["call"] === "string" && !terminalTypes.has(type)) this.#call(data["call"], record)
    const turn = turnOf(record)
    if (turn === undefined) return
    if (type === "model_call_started") this.#started(this.#turn(turn), record)
    else if (type === "model_call_finished") this.#turn(turn).finished.push(record)
    else if (type === "turn_rolled_back") this.#turn(turn).rolledBack = record
    else if (type === "assistant_action_parsed") this.#turn(turn).parsed = record
  }
}

/** Takes the events of one run apart. */
export const takeApart = (recorded: ReadonlyArray<TraceRecord>): TraceRun => {
  const schema = recorded[0]?.schema ?? ""
  const records = schema === emberSchema ? fromEmber(recorded) : recorded
  const taking = new Taking()
  for (const record of records) taking.see(record)
  const first = (type: string) => records.find((record) => record.event_type === type)
  const started = first("run_started")
  const said = started?.data["content"]
  return {
    schema,
    runId: records[0]?.run_id ?? "",
    records,
    started,
    provenance: first("provenance"),
    resumed: first("run_resumed"),
    turns: [...taking.turns.values()].sort((a, b) => a.turn - b.turn),
    calls: [...taking.calls.values()],
    artifacts: records.filter((record) => record.event_type === "artifact_written"),
    terminal: records.findLast((record) => terminalTypes.has(record.event_type)),
    content: typeof said === "boolean" ? said : schema === emberSchema && saysContent(records)
  }
}

/** An Ember trace says nothing about how it was written: with the model's text in it, it holds content. */
const saysContent = (records: ReadonlyArray<TraceRecord>): boolean =>
  records.some(({ data, event_type: type }) => type === "model_call_finished" && typeof data["text"] === "string")
