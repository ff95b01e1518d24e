/** T55 to T59 and T62: how often a call was tried, what its effect came to, and what follows where nobody knows. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import { next, resume } from "../../Backoff.ts"
import { isLegal } from "./Admission.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, OpenCall, RunFacts } from "./RunFacts.ts"
import { gating } from "./RunGates.ts"

/** Times are rounded to microseconds. */
const round3 = (millis: number): number => Math.round(millis * 1000) / 1000

const statusOf = { succeeded: "settled_ok", failed: "settled_failed", unknown: "ambiguous" } as const

/** What may not come after an effect was left to a person. */
const work = new Set(["model_call_started", "tool_execution_started", "effect_intent", "retry_scheduled"])

export class Tries {
  readonly #findings: Findings
  readonly #facts: RunFacts

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    const { event_type: type, step } = record
    const { ambiguous, escalated } = this.#facts
    const open = escalated ?? ambiguous
    if (open !== undefined && work.has(type))
      this.#findings.add("T58", `${type} after the effect of ${open} was left unknown`)
    switch (record.event_type) {
      case "effect_intent":
        return this.#intent(record.data)
      case "tool_execution_started":
        return this.#started(record.data)
      case "retry_scheduled":
        return this.#scheduled(step, record.data)
      case "effect_probed":
        return this.#probed(step, record.data)
      case "effect_accepted":
        return this.#within(step, record.data.call, record.data.tool)
      case "precondition_checked":
        return this.#rechecked(record.data)
      case "tool_execution_finished":
        return this.#finished(record.data)
      case "effect_settled":
        return this.#settled(record.data)
      case "effect_escalated":
        return this.#escalated(record.data)
    }
  }

  /** `record` is the terminal event. */
  readonly end = (record: KnownRecord): void => {
    const { ambiguous, escalated, gates } = this.#facts
    const { add } = this.#findings
    const { reason, limit_hit } = record.event_type === "run_terminated" ? record.data : {}
    const ends = reason === "escalated" || record.event_type === "run_failed"
    const stopped = record.event_type === "run_cancelled" || limit_hit === "wall_time"
    if (escalated !== undefined && !ends)
      add("T58", `the effect of ${escalated} was left to a person, and the run ends as ${record.event_type}`)
    else if (ambiguous !== undefined && !ends && !stopped)
      add("T58", `the effect of ${ambiguous} is unknown, and the run ends as ${record.event_type}`)
    // That an unknown effect is what a run escalates for is T42's.
    if (reason === "escalated" && escalated === undefined && ambiguous !== undefined && gates !== undefined)
      add("T58", `the run escalates, and the attempts of ${ambiguous} are not listed`)
  }

  #intent({ attempt, call: id, key }: EventData<"effect_intent">) {
    const call = this.#facts.call(id)
    if (call === undefined) return
    const again = call.execution === "running"
    if (again) {
      const counts = attempt === undefined || call.made === undefined || attempt === call.made + 1
      const fits = key === call.intent && call.mayTry !== undefined && counts
      this.#findings.unless(fits, "T55", () => `${id} is tried again as try ${attempt}, and nothing led to that`)
    } else {
      const { made } = call
      const counts = attempt === undefined || (made === undefined ? attempt >= 1 : attempt === made + 1)
      this.#findings.unless(counts, "T55", () => `${id} is tried as try ${attempt} after ${made}`)
    }
    call.made = attempt
    call.mayTry = undefined
    call.lost = false
  }

  #started({ call: id, tool }: EventData<"tool_execution_started">) {
    const call = this.#facts.call(id)
    if (call === undefined) return
    this.#findings.unless(
      call.recheck !== "fail",
      "T59",
      () => `${id} is executed, and its precondition no longer held`
    )
    // Tries of reads have no intents: the start is the first.
    if (this.#facts.tools.get(tool)?.risk === "read") call.made = 1
  }

  /** Is the call being performed here, or is an earlier attempt of it being resolved? */
  #within(step: string, id: string, tool: string): OpenCall | undefined {
    const { open } = this.#facts
    const call = this.#facts.call(id)
    const running = call?.execution === "running" && call.step === step
    const resolving =
      call?.execution === "none" &&
      call.validated &&
      call.rejected === undefined &&
      call.settled === undefined &&
      isLegal(call) &&
      open?.step === step
    if ((running || resolving) && call.tool === tool) return call
    this.#findings.add("T62", `something about ${id} in step ${step}, where it is not being performed`)
    return undefined
  }

  #scheduled(step: string, data: EventData<"retry_scheduled">) {
    const { attempt, call: id, delay_ms: delay, of, tool } = data
    const call = this.#within(step, id, tool)
    if (call === undefined) return
    const { gates, tools } = this.#facts
    const known = tools.get(tool)
    const read = known?.risk === "read"
    // The try that the last retry was scheduled for: of a read it is on no other record.
    if (read && call.mayTry === "retry" && call.made !== undefined) call.made += 1
    const counted = call.made === undefined || attempt === call.made
    call.made = attempt
    call.mayTry = "retry"
    const due = gates === undefined ? undefined : next(resume(attempt, gates.retry), gates.retry)
    const timed =
      gates === undefined ||
      (attempt < of && of === gates.retry.attempts && due?._tag === "Wait" && delay === round3(due.delayMillis))
    const rule = gating(gates, known)?.retry
    const safe = known?.terms === undefined || known.terms.retry === "safe"
    const allowed = safe && (read ? (rule ?? "auto") === "auto" : rule !== "never" && known?.ledger !== "none")
    this.#findings.unless(
      counted && timed && allowed && data.class === "timeout",
      "T56",
      () =>
        `${id} is to be tried again after ${delay} ms, try ${attempt} of ${of}, class ${data.class}, against its rules`
    )
  }

  #probed(step: string, { call: id, found, key, tool }: EventData<"effect_probed">) {
    const call = this.#within(step, id, tool)
    if (call === undefined) return
    const known = this.#facts.tools.get(tool)
    const fits = known?.ledger === "observe" && known.risk !== "read" && (call.intent ?? key) === key
    this.#findings.unless(fits, "T62", () => `a look for the effect of ${id}, which has no such look`)
    // Where a retry was scheduled and a look came instead of it, the look was that try; where it saw nothing, that try follows.
    if (call.mayTry === "retry" && call.made !== undefined && found !== "absent") call.made += 1
    call.mayTry = found === "absent" ? "absent" : undefined
    call.lost = true
  }

  #rechecked({ after, call: id, pre, tool }: EventData<"precondition_checked">) {
    const call = this.#facts.call(id)
    const { open } = this.#facts
    const running = call?.execution === "running"
    const when =
      after === "backoff" ||
      (after === "queue" ? running : !running && (after === "calls" || open?.approvals.get(id)?.decision === "allow"))
    const due =
      call?.validated === true && call.tool === tool && call.rejected === undefined && call.execution !== "finished"
    this.#findings.unless(
      due && when,
      "T59",
      () => `the precondition of ${id} is looked at again, when it does not matter`
    )
    if (call !== undefined) call.recheck = pre
  }

  #finished({ call: id, effect, failure_kind, ok }: EventData<"tool_execution_finished">) {
    const call = this.#facts.call(id)
    if (call?.recheck !== "fail" || (call.made ?? 1) > 1) return
    const untouched =
      !ok && effect === "none" && (failure_kind === "precondition_failed" || failure_kind === "contract_fault")
    this.#findings.unless(untouched, "T59", () => `${id} goes on, and its precondition no longer held`)
  }

  #settled({ call: id, evidence, outcome, status, tool }: EventData<"effect_settled">) {
    const facts = this.#facts
    const declared = facts.tools.get(tool)?.terms?.evidence.source
    const known =
      evidence === undefined ||
      declared === undefined ||
      evidence.source === declared ||
      evidence.source === "self" ||
      evidence.source === "person"
    const fits = status === undefined || status === statusOf[outcome]
    this.#findings.unless(fits && known, "T57", () => `${id} came to ${outcome} and is settled as ${status}`)
    if (status !== undefined && outcome === "unknown") facts.ambiguous = id
  }

  #escalated({ call: id, key, tool }: EventData<"effect_escalated">) {
    const facts = this.#facts
    const call = facts.call(id)
    const fits =
      call?.settled?.outcome === "unknown" &&
      call.settled.key === key &&
      call.tool === tool &&
      facts.escalated === undefined
    this.#findings.unless(fits, "T58", () => `the effect of ${id} is left to a person, and it is not unknown`)
    facts.escalated ??= id
  }
}
