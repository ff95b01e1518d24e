/**
 * A recorded run as the script of its own repetition. Holds the place in the record, compares what the repetition writes
 * with what is there, and answers what came next: a span, a turn, an outcome, a decision, a stop, a failure. Runs nothing.
 *
 *   the loop ── asks ──> model, tools, ledger, approver ── "what came next?" ──> tape
 *       └────── writes events ───────── compared one by one, in order ─────────────^
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { type TraceInput, terminalTypes } from "../../actors/TraceEvent.ts"
import { TraceError } from "../../actors/TraceWriter.ts"
import { EngineError } from "../../engine/EngineError.ts"
import type { Recovery } from "../../engine/Model.ts"
import type { ToolOutcome } from "../../tools/ToolCall.ts"
import type { Stop } from "../State.ts"
import { type Difference, differenceOf } from "./TraceCompare.ts"
import type { TraceRecord } from "./TraceReader.ts"

/** The first event that did not come out as recorded. */
export interface Divergence extends Difference {
  readonly seq: number
  readonly eventType: string
}

/** The record ends here, or cannot be followed further. */
export interface StoppedAt {
  readonly seq: number
  readonly reason: string
}

/** What a repetition came to before its end. */
export type Ending =
  | { readonly _tag: "Diverged"; readonly divergence: Divergence }
  | { readonly _tag: "Stopped"; readonly stoppedAt: StoppedAt }

/** A defect that is on the record, enacted. Reads as the recorded one does. */
export class ReplayedDefect extends Error {
  override toString(): string {
    return this.message
  }
}

/** Events that only give the calls of an open turn their answers after the run was told to stop. */
const answersUncommitted = new Set(["tool_result_uncommitted", "call_skipped", "feedback_uncommitted", "late_outcome"])

/** Events that may stand between two steps of the loop without being one. */
const inBetween = new Set(["generation_token", "late_outcome"])

const messages = new Set(["message_committed", "tool_result_committed", "feedback_committed", "late_outcome"])
const keeping = new Set(["model_call_finished", "assistant_action_parsed", "late_outcome"])

/** A message or turn that says what the next turn follows; what was evaluated again does not. */
const isMessage = ({ data, event_type: type }: TraceRecord): boolean =>
  type === "session_state_changed" && data["role"] !== "history"

/** Tokens a turn was to take at most, where the event says that it did not fit. */
const neededBy = ({ data, event_type: type }: TraceRecord): number | undefined => {
  if (type !== "run_terminated" || data["reason"] !== "context_exhausted") return undefined
  const said = /needs up to (\d+) more/.exec(String(data["detail"]))?.[1]
  return said === undefined ? undefined : Number(said)
}

/** How many times other fibers are let go first before waiting for an event counts as waiting for ever. */
const patience = 256

export class Tape {
  readonly records: ReadonlyArray<TraceRecord>
  readonly terminal: TraceRecord | undefined
  /** Done when the repetition need not go on. */
  readonly ended: Deferred.Deferred<Ending> = Deferred.makeUnsafe()
  /** Tells the run to stop; set when there is a run. */
  stopRun: (stop: Stop) => void = () => {}
  /** Whom to tell of outcomes that arrived late, by call. */
  readonly late: Map<string, (outcome: ToolOutcome) => void> = new Map()
  readonly #closing: number
  #at = 0
  #over = false

  constructor(records: ReadonlyArray<TraceRecord>) {
    this.records = records
    const last = records.at(-1)
    this.terminal = last !== undefined && terminalTypes.has(last.event_type) ? last : undefined
    let closing = this.terminal === undefined ? records.length : records.length - 1
    while (closing > 0 && answersUncommitted.has(records[closing - 1]!.event_type)) closing--
    this.#closing = closing
  }

  /** Events that came out as recorded. */
  get compared(): number {
    return this.#at
  }

  get over(): boolean {
    return this.#over
  }

  /** The reason that stopped the run from outside, if that is how it ended. */
  get stop(): Stop | undefined {
    if (this.terminal === undefined) return this.#stopBegun()
    const { data, event_type: type } = this.terminal
    if (type === "run_cancelled") return { _tag: "Cancelled", at: data["at"] as never }
    if (type === "run_terminated" && data["limit_hit"] === "wall_time") return { _tag: "Limit", kind: "wall_time" }
    return undefined
  }

  /** The stop in whose middle the record breaks off, as far as the answers it left tell. */
  #stopBegun(): Stop | undefined {
    const reason = this.records.at(-1)?.data["reason"]
    if (this.#closing === this.records.length) return undefined
    if (reason === "Cancelled") return { _tag: "Cancelled", at: "tool" }
    return reason === "Limit" ? { _tag: "Limit", kind: "wall_time" } : undefined
  }

  /** The event that was written last. */
  get previous(): TraceRecord | undefined {
    return this.records[this.#at - 1]
  }

  /** The next event that is a step of the loop, and its place. */
  readonly next = (from: number = this.#at): { readonly at: number; readonly record: TraceRecord } | undefined => {
    for (let at = from; at < this.records.length; at++) {
      const record = this.records[at]!
      if (!inBetween.has(record.event_type)) return { at, record }
    }
    return undefined
  }

  /** Events from here on that are of `type` and about `call`; the first one. */
  readonly find = (type: string, call: string): { readonly at: number; readonly record: TraceRecord } | undefined => {
    const at = this.records.findIndex(
      ({ data, event_type }, index) => index >= this.#at && event_type === type && data["call"] === call
    )
    return at < 0 ? undefined : { at, record: this.records[at]! }
  }

  /** The first event from here on of which this holds. */
  readonly coming = (holds: (record: TraceRecord) => boolean): TraceRecord | undefined => {
    for (let at = this.#at; at < this.records.length; at++) if (holds(this.records[at]!)) return this.records[at]
    return undefined
  }

  /** Where an event is; without one, the end of the record. */
  readonly placeOf = (record: TraceRecord | undefined): number =>
    record === undefined ? this.records.length : this.records.indexOf(record)

  /** The tokens generated from here on, as far as they were recorded one by one. */
  readonly tokens = (): ReadonlyArray<TraceRecord> => {
    const end = this.next()?.at ?? this.records.length
    return this.records.slice(this.#at, end).filter(({ event_type: type }) => type === "generation_token")
  }

  /**
   * The span of the message that a resumed run evaluates again as its `nth`, until it has said so. Older records hold all of
   * them as one.
   */
  readonly history = (nth: number): { readonly start: number; readonly end: number } | undefined => {
    const next = this.next()
    if (next?.record.event_type !== "run_resumed") return undefined
    const each = next.record.data["spans"] as ReadonlyArray<readonly [number, number]> | undefined
    const span = each?.[nth] ?? (this.records[next.at + 1]?.data["span"] as readonly [number, number] | undefined)
    return span === undefined ? { start: 0, end: 0 } : { start: span[0], end: span[1] }
  }

  /**
   * Tokens that a turn was to take at most, where the record comes to one that did not fit in a place like the present one:
   * after answers, or after anything else.
   */
  readonly turnSize = (): number | undefined => {
    const answers = (at: number) => {
      const role = this.records.slice(0, at).findLast(isMessage)?.data["role"]
      return role === undefined ? undefined : role === "tool_result" || role === "feedback"
    }
    const here = answers(this.#at)
    for (let at = this.#at; at < this.records.length; at++) {
      const needed = neededBy(this.records[at]!)
      const there = answers(at)
      if (needed !== undefined && (here === undefined || there === undefined || here === there)) return needed
    }
    return undefined
  }

  /** The span of what is committed (or kept) next; none if the record says that it was not. */
  readonly span = (kind: "message" | "turn"): { readonly start: number; readonly end: number } | undefined => {
    const before = kind === "message" ? messages : keeping
    for (let at = this.#at; at < this.records.length; at++) {
      const { data, event_type: type } = this.records[at]!
      const role = String(data["role"])
      if (type === "session_state_changed" && role.startsWith("assistant_") === (kind === "turn")) {
        const [start, end] = data["span"] as readonly [number, number]
        return { start, end }
      }
      if (!before.has(type)) return undefined
    }
    // Cut inside of what was written together: what is there of it is compared, and the rest is out of the record.
    return this.terminal === undefined && this.#at < this.records.length ? { start: 0, end: 0 } : undefined
  }

  /** Compares events with the record and moves on. */
  readonly take = (events: ReadonlyArray<TraceInput>): void => {
    for (const event of events) {
      if (this.#over) return
      const recorded = this.records[this.#at]
      const found = recorded === undefined ? undefined : differenceOf(recorded, event)
      if (recorded === undefined) this.#outOfRecord(event)
      else if (found !== undefined) this.diverge(found)
      else this.#at++
    }
    if (this.#over) return
    this.#tellLate()
    if (this.#at >= this.#closing && this.stop !== undefined) this.stopRun(this.stop)
  }

  /** The failure of writing the events just taken, where the record shows that they could not be written at once. */
  readonly writeFailure = (): TraceError | undefined => {
    if (this.#over || this.terminal?.data["class"] !== "trace") return undefined
    const next = this.records[this.#at]
    const { data, event_type: type } = this.previous ?? { data: {} as TraceRecord["data"], event_type: "" }
    const unstarted = type === "tool_execution_started" && this.#wasNotExecuted(String(data["call"]))
    const unspoken = next?.event_type === "turn_rolled_back" && next.data["reason"] === "trace_error"
    if (!unstarted && !unspoken && this.#at !== this.#closing) return undefined
    return new TraceError({ operation: "append", message: String(this.terminal.data["error"]) })
  }

  #wasNotExecuted(call: string): boolean {
    return this.find("tool_execution_finished", call)?.record.data["failure_kind"] === "not_executed"
  }

  #outOfRecord(event: TraceInput): void {
    if (this.terminal === undefined) this.#stopHere()
    else this.diverge({ path: "event_type", recorded: undefined, replayed: event.type })
  }

  #stopHere(): void {
    const reason = "the record ends here without saying how the run ended"
    this.#end({ _tag: "Stopped", stoppedAt: { seq: this.records.length, reason } })
  }

  /** Outcomes that arrived late are offered by the pool at the place they are recorded at. */
  #tellLate(): void {
    const recorded = this.records[this.#at]
    if (this.#over || recorded?.event_type !== "late_outcome") return
    const call = String(recorded.data["call"])
    const tell = this.late.get(call)
    this.late.delete(call)
    tell?.(
      recorded.data["ok"] === true
        ? { _tag: "Succeeded", result: null, artifacts: [], millis: 0 }
        : { _tag: "Failed", kind: recorded.data["failure_kind"] as never, errors: [], effect: "unknown", millis: 0 }
    )
  }

  /** The repetition is not what the record says, at the next event. */
  readonly diverge = (found: Difference): void => {
    const recorded = this.records[this.#at]
    const eventType = recorded?.event_type ?? String(found.replayed)
    this.#end({ _tag: "Diverged", divergence: { seq: recorded?.seq ?? this.records.length, eventType, ...found } })
  }

  #end(ending: Ending): void {
    this.#over = true
    Deferred.doneUnsafe(this.ended, Effect.succeed(ending))
  }

  /** Waits until the next event is the one at `at`: whatever runs side by side ends in the recorded order. */
  readonly reach = (at: number, what: string): Effect.Effect<void> => {
    const wait = (seen: number, rounds: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (this.#over) return Effect.never
        if (this.#at >= at) return Effect.void
        if (this.#at === seen && rounds >= patience) {
          this.diverge({ path: "event_type", recorded: this.records[this.#at]?.event_type, replayed: what })
          return Effect.never
        }
        return Effect.andThen(Effect.yieldNow, wait(this.#at, this.#at === seen ? rounds + 1 : 0))
      })
    return wait(this.#at, 0)
  }

  /** Stops the run as it was stopped and waits to be interrupted by that. */
  readonly enactStop = (otherwise: Stop): Effect.Effect<never> =>
    // By another fiber, when this one is waiting: calls that run side by side are then stopped in their order.
    Effect.andThen(
      Effect.forkDetach(
        Effect.sync(() => {
          if (!this.#over) this.stopRun(this.stop ?? otherwise)
        })
      ),
      Effect.never
    )

  /** What happened where the record has no result for what the loop asks for now: a stop, a failure, a defect, or its end. */
  readonly interruption = (what: string): Effect.Effect<never, EngineError> =>
    Effect.suspend(() => {
      if (this.#over) return Effect.never
      const next = this.#coming()
      if (next === undefined) {
        this.#stopHere()
        return Effect.never
      }
      const again = this.#restarted(next)
      if (again !== undefined) return again
      const { data, event_type: type } = next.record
      const ends = type === "turn_rolled_back" || next.at >= this.#closing
      if (ends && this.stop !== undefined) return this.enactStop(this.stop)
      const reason = type === "turn_rolled_back" ? data["reason"] : undefined
      if (reason === "cancelled") return this.enactStop({ _tag: "Cancelled", at: "generation" })
      if (reason === "limit") return this.enactStop({ _tag: "Limit", kind: "wall_time" })
      const failure = ends ? this.#failure(String(reason)) : undefined
      if (failure !== undefined) return failure
      this.diverge({ path: "event_type", recorded: type, replayed: what })
      return Effect.never
    })

  /** The same where the loop cannot be interrupted, so that there is nothing to wait for: a failure, whatever else it was. */
  readonly failure = (what: string): Effect.Effect<never, EngineError> =>
    Effect.suspend(() => {
      const next = this.#over ? undefined : this.#coming()
      const ends = next?.record.event_type === "turn_rolled_back"
      const recorded =
        next === undefined ? undefined : (this.#restarted(next) ?? (ends && this.#failure("engine_error")))
      if (recorded) return recorded
      if (next === undefined && !this.#over) this.#stopHere()
      if (!this.#over) this.diverge({ path: "event_type", recorded: next?.record.event_type, replayed: what })
      return Effect.fail(new EngineError({ reason: "lost", message: "the record does not go on like this" }))
    })

  /** The next event. An engine that was there again before a turn, which then ends otherwise, is no part of how it does. */
  #coming() {
    const next = this.next()
    let after = next
    while (after?.record.event_type === "engine_restarted") after = this.next(after.at + 1)
    return after?.record.event_type === "turn_rolled_back" ? after : next
  }

  /** The engine died under what is asked now, and was opened again: so it is again. */
  #restarted({
    at,
    record
  }: {
    readonly at: number
    readonly record: TraceRecord
  }): Effect.Effect<never, EngineError> | undefined {
    const after = record.event_type === "turn_rolled_back" ? this.next(at + 1)?.record : record
    if (after?.event_type !== "engine_restarted") return undefined
    const said = this.terminal?.event_type === "run_failed" ? String(this.terminal.data["error"]) : "the engine died"
    return Effect.fail(new EngineError({ reason: "restarted", message: said }))
  }

  /**
   * The engines that were opened again up to here, those that the record tells of next included; behind a talk that handed over
   * only those that the task's own context was told of.
   */
  readonly recoveries = (): ReadonlyArray<Recovery> => {
    let end = this.#at
    while (this.records[end]?.event_type === "engine_restarted") end++
    const handed = this.records.findLastIndex(
      ({ data, event_type: type }, at) => at < this.#at && type === "routed" && data["by"] === "chat"
    )
    return this.records
      .slice(Math.max(0, handed), end)
      .flatMap(({ data, event_type: type }) => (type === "engine_restarted" ? [data as unknown as Recovery] : []))
  }

  /** The recorded failure; where the record breaks off before it says which, one of the kind it names. */
  #failure(reason: string): Effect.Effect<never, EngineError> | undefined {
    const { data, event_type: type } = this.terminal ?? { data: {} as TraceRecord["data"], event_type: "" }
    if (type === "run_terminated" && data["reason"] === "context_exhausted") {
      return Effect.fail(new EngineError({ reason: "context_overflow", message: String(data["detail"]) }))
    }
    if (this.terminal !== undefined && type !== "run_failed") return undefined
    const message = String(data["error"])
    return data["class"] === "defect" || reason === "defect"
      ? Effect.die(new ReplayedDefect(message))
      : Effect.fail(new EngineError({ reason: "failed", message }))
  }
}
