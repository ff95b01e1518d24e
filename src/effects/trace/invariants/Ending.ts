/** T41 to T44: the terminal event against everything before it. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"

/** A timer may go off a little before the clock says so. */
const clockMillis = 5
/** A busy machine may pause between a reading of the clock and the line it is for. */
const pauseMillis = 5_000
/** Times are rounded to microseconds. */
const roundingMillis = 0.001

type Counts = Pick<
  EventData<"run_failed">,
  "turns" | "tool_calls" | "rejected_calls" | "skipped_calls" | "artifacts" | "output_tokens" | "events"
>

type Times = Pick<EventData<"run_failed">, "model_ms" | "tool_ms" | "total_ms">

export class Ending {
  readonly #findings: Findings
  readonly #facts: RunFacts

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  /** `record` is the terminal event. */
  readonly see = (record: KnownRecord) => {
    this.#counts(record.seq, record.data as Counts)
    this.#times(record.t_ms, record.data as Times)
    this.#rolledBack(record)
    switch (record.event_type) {
      case "run_completed":
        return this.#kind(this.#isFinal && this.#facts.rolledBack === undefined, "completed without a final answer")
      case "run_needs_input":
        return this.#needsInput()
      case "run_awaiting_approval":
        return this.#awaits(record.data.call)
      case "run_terminated":
        return record.data.reason === "limit" ? this.#limit(record.t_ms, record.data) : this.#terminated(record.data)
      case "run_cancelled":
        return this.#cancelled(record.data.at)
    }
  }

  #counts(seq: number, data: Counts) {
    const facts = this.#facts
    const { artifacts, outputTokens, rejected, skipped, toolCalls } = facts.counts
    // A resumed run may count on from the first part's executions, which are in another trace.
    const calls = facts.resumed === undefined ? toolCalls : toolCalls === 0 ? data.tool_calls : facts.lastSequence
    const expected: Counts = {
      turns: facts.turns,
      tool_calls: calls,
      rejected_calls: rejected,
      skipped_calls: skipped,
      artifacts,
      output_tokens: outputTokens,
      events: seq
    }
    for (const [name, count] of Object.entries(expected)) {
      const said = data[name as keyof Counts]
      this.#findings.unless(said === count, "T41", () => `${name} is ${said}, the events make it ${count}`)
    }
  }

  #times(at: number, { model_ms, tool_ms, total_ms }: Times) {
    const { unless } = this.#findings
    const { beganAt, counts, toolMillis } = this.#facts
    unless(
      Math.abs(tool_ms - toolMillis) <= roundingMillis * (counts.toolCalls + 1),
      "T41",
      () => `tool_ms is ${tool_ms}, the executions took ${toolMillis}`
    )
    unless(
      total_ms <= at + clockMillis && total_ms >= at - beganAt - pauseMillis,
      "T41",
      () => `total_ms is ${total_ms}, the last line was written at ${at}`
    )
    unless(
      model_ms >= 0 && model_ms <= total_ms + clockMillis,
      "T41",
      () => `model_ms is ${model_ms} of ${total_ms} in all`
    )
  }

  #kind(holds: boolean, message: string) {
    this.#findings.unless(holds, "T42", () => message)
  }

  /** The last thing the model said is in the context, and nothing came of it. */
  get #isFinal(): boolean {
    const { lastKept, modelCalls, open, resumed, turn } = this.#facts
    // A part that only had to close the record has its answer in the history it evaluated again.
    const inherited = resumed !== undefined && modelCalls === 0
    return (lastKept === "assistant_final" || inherited) && open === undefined && turn === undefined
  }

  /** What a rolled-back turn, an answer or half an answer leave open. A record that failed may say so after anything. */
  #rolledBack({ data, event_type }: KnownRecord) {
    const { lastKept, rolledBack } = this.#facts
    if (event_type === "run_failed") return
    const reason = event_type === "run_terminated" ? (data as EventData<"run_terminated">).reason : undefined
    const wall = reason === "limit" && (data as EventData<"run_terminated">).limit_hit === "wall_time"
    if (rolledBack !== undefined) {
      const fits =
        (rolledBack === "cancelled" && event_type === "run_cancelled") ||
        (rolledBack === "limit" && wall) ||
        (rolledBack === "engine_error" && reason === "context_exhausted")
      return this.#kind(fits, `${event_type} after a turn that was rolled back: ${rolledBack}`)
    }
    const partial = reason === "limit" && (data as EventData<"run_terminated">).limit_hit === "output_tokens"
    const stopped = event_type === "run_cancelled" || wall
    if (lastKept === "assistant_final")
      this.#kind(stopped || event_type === "run_completed", `${event_type} after a final answer`)
    if (lastKept === "assistant_question")
      this.#kind(stopped || event_type === "run_needs_input", `${event_type} after a question`)
    if (lastKept === "assistant_partial") this.#kind(stopped || partial, `${event_type} after half an answer`)
  }

  #needsInput() {
    const { lastKept, lastTurn, modelCalls, questioned, resumed } = this.#facts
    // What is said is the whole of the turn, or stands beside calls of which none has run.
    if (questioned && (lastKept === "assistant_question" || lastTurn?.started === 0)) return
    // A part that only had to close the record has the question in the history it evaluated again.
    if (resumed !== undefined && modelCalls === 0) return
    const asked = lastTurn?.lastValidated?.call
    const fits =
      lastTurn?.kind === "calls" && lastTurn.started === 0 && asked !== undefined && lastTurn.skipped.includes(asked)
    this.#kind(fits, "needs input, and no call asked for it")
  }

  #awaits(call: string) {
    this.#kind(
      this.#facts.lastTurn?.approvals.get(call)?.decision === "suspend",
      `awaits approval of ${call}, which nobody put off`
    )
  }

  #terminated({ limit_hit, partial_text, reason }: EventData<"run_terminated">) {
    const { lastTurn, limit, unknownEffects, validatedCalls } = this.#facts
    this.#kind(limit_hit === undefined && partial_text === undefined, `${reason} names a limit`)
    if (reason === "escalated") this.#kind(unknownEffects > 0, "escalated, and every effect is known")
    if (reason !== "loop_detected") return
    const threshold = limit("loopThreshold")
    this.#kind(
      threshold >= 2 && validatedCalls >= threshold && lastTurn?.kind === "calls",
      "a loop of fewer calls than its threshold"
    )
  }

  #limit(at: number, { limit_hit, partial_text }: EventData<"run_terminated">) {
    const { unless } = this.#findings
    const { counts, lastKept, lastTurn, limit, repairs, spent, turns, wallBefore } = this.#facts
    const inTurn = lastTurn?.kind === "calls" && lastTurn.skipped.length > 0
    const refused = lastTurn?.kind === "calls" && lastTurn.calls.every((call) => call.mistake) ? 1 : 0
    const reached = {
      model_turns: turns >= limit("modelTurns") && lastTurn === undefined,
      tool_calls: counts.toolCalls + spent("tool_calls") >= limit("toolCalls") && inTurn,
      wall_time: at + wallBefore >= limit("wallMillis") - clockMillis,
      output_tokens: lastKept === "assistant_partial",
      repairs: repairs + refused > limit("repairs")
    }
    unless(limit_hit !== undefined && reached[limit_hit], "T43", () => `the limit ${limit_hit} was not reached`)
    unless(
      partial_text === undefined || limit_hit === "output_tokens",
      "T43",
      () => "a partial answer at another limit"
    )
  }

  #cancelled(at: EventData<"run_cancelled">["at"]) {
    const { lastTurn, modelCalls } = this.#facts
    const undecided = [...(lastTurn?.approvals.values() ?? [])].some((one) => one.decision === undefined)
    const aborted = lastTurn?.calls.some((call) => call.failure === "cancelled") === true
    const started = (lastTurn?.started ?? 0) > 0
    const fits = {
      preparing: !started && !undecided,
      prefill: !aborted && !undecided,
      generation: modelCalls > 0 && !aborted,
      "between-calls": lastTurn?.kind === "calls" && !undecided,
      "awaiting-approval": undecided,
      tool: started,
      "after-tool": started,
      commit: !undecided && (lastTurn !== undefined || this.#facts.closed !== undefined)
    }
    this.#findings.unless(fits[at], "T44", () => `cancelled at ${at}, and other work was open`)
  }
}
