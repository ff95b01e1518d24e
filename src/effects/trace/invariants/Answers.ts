/** T29 to T31: exactly one answer for every call, and for every mistake. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, OpenCall, OpenTurn, RunFacts } from "./RunFacts.ts"

type Answer = "tool_result_committed" | "tool_result_uncommitted" | "call_skipped"

export class Answers {
  readonly #findings: Findings
  readonly #facts: RunFacts

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    const { step } = record
    switch (record.event_type) {
      case "tool_result_committed": {
        const call = this.#answer(record.event_type, step, record.data)
        if (call !== undefined) this.#committed(call, record.data)
        return
      }
      case "tool_result_uncommitted": {
        const call = this.#answer(record.event_type, step, record.data)
        if (call !== undefined) this.#uncommitted(call, record.data)
        return
      }
      case "call_skipped": {
        this.#facts.counts.skipped += 1
        const call = this.#answer(record.event_type, step, record.data)
        if (call !== undefined) this.#skipped(call, record.data.call)
        return
      }
      case "feedback_committed":
      case "feedback_uncommitted":
        return this.#feedback(record.event_type === "feedback_committed", step, record.data.code)
      case "session_state_changed":
        return this.#entered(step, record.data.role)
    }
  }

  /** The end of the record: whoever has no answer now never gets one. */
  readonly end = (): void => {
    const { open } = this.#facts
    if (open === undefined) return
    if (open.kind === "malformed") this.#findings.add("T31", `turn ${open.turn} was malformed and got no feedback`)
    else
      this.#findings.add(
        "T29",
        `turn ${open.turn} has ${open.calls.length} calls and ${open.answered} answers in the context`
      )
  }

  /** Takes one answer, in order, and returns its call. */
  #answer(
    type: Answer,
    step: string,
    { call: id, ordinal }: Pick<EventData<"call_skipped">, "call" | "ordinal">
  ): OpenCall | undefined {
    const { add, unless } = this.#findings
    const { open } = this.#facts
    const call = open?.kind === "calls" && open.step === step ? open.calls[ordinal] : undefined
    if (open === undefined || call === undefined) {
      add("T29", `${id} is answered in step ${step}, where it waits for nothing`)
      return undefined
    }
    const committing = type === "tool_result_committed"
    const fits = ordinal === open.answered && (call.call ?? id) === id && open.running === 0
    unless(
      fits && (open.committing ?? committing) === committing,
      "T29",
      () => `${id} is answered out of turn: answer ${open.answered} is due`
    )
    unless(
      call.intent === undefined || call.settled !== undefined,
      "T25",
      () => `${id} is answered before its effect was settled`
    )
    call.call = id
    open.committing = committing
    open.answered = Math.max(open.answered, ordinal) + 1
    if (!committing && open.answered >= open.calls.length) this.#close(open, true)
    return call
  }

  #close(open: OpenTurn, uncommitted: boolean) {
    const facts = this.#facts
    facts.closed = open
    facts.open = undefined
    facts.uncommitted = uncommitted
    if (!uncommitted && open.calls.length > 0 && open.calls.every((call) => call.mistake)) facts.repairs += 1
  }

  /** Something has to have come of the call: it ran, was refused, or its outcome was known from before. */
  #hasCause(call: OpenCall): boolean {
    return (
      call.execution === "finished" || call.rejected !== undefined || call.settled?.replayed === true || call.inherited
    )
  }

  #committed(call: OpenCall, data: EventData<"tool_result_committed">) {
    const { unless } = this.#findings
    unless(this.#hasCause(call), "T30", () => `${data.call} has a result, and nothing happened to it`)
    if (call.inherited) return
    const ok = call.execution === "finished" ? call.ok : call.settled?.outcome === "succeeded"
    unless(
      data.ok === ok || !this.#hasCause(call),
      "T30",
      () => `${data.call} is answered ok ${data.ok}, it ended ok ${ok}`
    )
  }

  #uncommitted(call: OpenCall, data: EventData<"tool_result_uncommitted">) {
    const { unless } = this.#findings
    unless(this.#hasCause(call), "T30", () => `${data.call} has a result, and nothing happened to it`)
    if (call.inherited || !this.#hasCause(call)) return
    unless(
      data.effect === effectOf(call),
      "T30",
      () => `${data.call} is said to have left ${data.effect}, it left ${effectOf(call)}`
    )
  }

  #skipped(call: OpenCall, id: string) {
    this.#facts.closed?.skipped.push(id)
    this.#facts.open?.skipped.push(id)
    const untouched =
      call.execution === "none" && call.rejected === undefined && call.settled === undefined && !call.inherited
    this.#findings.unless(untouched, "T30", () => `${id} is skipped, and something happened to it`)
  }

  #feedback(committed: boolean, step: string, code: string) {
    const facts = this.#facts
    const { open } = facts
    const owed = open?.kind === "malformed" && open.step === step && open.code === code && open.answered === 0
    const inherited = open === undefined && facts.owesFeedback
    if (!owed && !inherited) this.#findings.add("T31", `feedback about ${code} in step ${step}, where none is owed`)
    facts.owesFeedback = false
    if (open?.kind !== "malformed") {
      facts.uncommitted ||= inherited && !committed
      return
    }
    open.answered += 1
    if (!committed) this.#close(open, true)
  }

  /** Answers in the context settle their turn. */
  #entered(step: string, role: string) {
    const { open } = this.#facts
    if (open === undefined || step !== open.step || (role !== "tool_result" && role !== "feedback")) return
    if (open.kind === "calls") {
      this.#findings.unless(
        open.answered === open.calls.length,
        "T29",
        () => `turn ${open.turn} has ${open.calls.length} calls and ${open.answered} answers`
      )
    } else this.#findings.unless(open.answered === 1, "T31", () => `turn ${open.turn} has ${open.answered} feedback`)
    this.#close(open, false)
  }
}

/** What an ended call left outside, as far as anybody knows. */
const effectOf = (call: OpenCall): string => {
  if (call.execution === "finished")
    return call.ok ? (call.risk === "read" ? "none" : "present") : (call.effect ?? "none")
  if (call.settled === undefined) return "none"
  return call.settled.outcome === "succeeded" ? "present" : call.settled.outcome === "unknown" ? "unknown" : "none"
}
