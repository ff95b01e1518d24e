/** T35 to T40: what a run may cost, as its first event says, against what it did. */
import type { Content, EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, RunFacts } from "./RunFacts.ts"

/** Between looking at the clock and writing the line a busy machine may pause; work that was let in on time stays in. */
const graceMillis = 5_000

/** What an answer that was cut has to hold at least, however small the limit. */
const leastAnswerBytes = 256

const bytesOf = (content: Content): number => (typeof content === "string" ? Buffer.byteLength(content) : content.bytes)

export class LimitsKept {
  readonly #findings: Findings
  readonly #facts: RunFacts

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    const { t_ms } = record
    switch (record.event_type) {
      case "model_call_started":
        return this.#turn(t_ms, record.data)
      case "model_call_finished":
        return this.#spoke(record.data)
      case "tool_execution_started":
        return this.#execution(t_ms, record.data)
      case "tool_result_committed":
      case "tool_result_uncommitted":
        return this.#answer(record.data.call, record.data.answer)
    }
  }

  #turn(at: number, { attempt, max_tokens, turn }: EventData<"model_call_started">) {
    const { unless } = this.#findings
    const { limit, repairs, spent, turns } = this.#facts
    unless(max_tokens <= limit("outputTokens"), "T37", () => `turn ${turn} may take ${max_tokens} tokens`)
    this.#onTime(at, `turn ${turn}`)
    if (attempt > 0) return
    unless(
      turns <= limit("modelTurns"),
      "T35",
      () => `this is turn ${turns}, at most ${limit("modelTurns")} are allowed`
    )
    // What was used before is no fault of this part, also where less is allowed now.
    const most = Math.max(limit("repairs"), spent("repairs"))
    unless(repairs <= most, "T38", () => `turn ${turn} starts after ${repairs} repairs in a row`)
  }

  #onTime(at: number, what: string) {
    const wall = this.#facts.limit("wallMillis") - this.#facts.wallBefore
    this.#findings.unless(
      wall > 0 && at <= wall + graceMillis,
      "T39",
      () => `${what} starts at ${at} ms, the wall time is ${wall} ms`
    )
  }

  #spoke({ output_tokens, turn }: EventData<"model_call_finished">) {
    const most = Math.min(this.#facts.limit("outputTokens"), this.#facts.turn?.maxTokens ?? Number.POSITIVE_INFINITY)
    this.#findings.unless(
      output_tokens <= most,
      "T37",
      () => `turn ${turn} took ${output_tokens} tokens, at most ${most} are allowed`
    )
  }

  #execution(at: number, { call, deadline_ms }: EventData<"tool_execution_started">) {
    const { unless } = this.#findings
    const { counts, limit } = this.#facts
    unless(
      counts.toolCalls + this.#facts.spent("tool_calls") <= limit("toolCalls"),
      "T36",
      () => `this is execution ${counts.toolCalls}, at most ${limit("toolCalls")} are allowed`
    )
    this.#onTime(at, call)
    const most = Math.min(limit("toolMillis"), limit("wallMillis"))
    unless(deadline_ms <= most, "T39", () => `${call} may take ${deadline_ms} ms, at most ${most} are allowed`)
  }

  #answer(call: string, answer: Content) {
    const most = Math.max(this.#facts.limit("resultBytes"), leastAnswerBytes)
    this.#findings.unless(
      bytesOf(answer) <= most,
      "T40",
      () => `the answer to ${call} has ${bytesOf(answer)} bytes, at most ${most} are allowed`
    )
  }
}
