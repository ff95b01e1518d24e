/** T24 to T28, T32: what was done, under which right, and how it ended. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import { isAllowed } from "./Admission.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, OpenCall, RunFacts } from "./RunFacts.ts"

export class Executions {
  readonly #findings: Findings
  readonly #facts: RunFacts
  /** How many tries of a call may still answer: the running one, and those that were given up. */
  readonly #mayAnswerLate = new Map<string, number>()

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    const { step } = record
    switch (record.event_type) {
      case "effect_intent":
        return this.#intent(step, record.data)
      case "effect_settled":
        return this.#settled(record.data)
      case "tool_execution_started":
        return this.#started(step, record.data)
      case "tool_execution_finished":
        return this.#finished(step, record.data)
      case "retry_scheduled":
        if (this.#facts.call(record.data.call)?.execution === "running") this.#owes(record.data.call, 1)
        return
      case "late_outcome":
        return this.#late(record.data)
    }
  }

  #owes(call: string, more: number) {
    this.#mayAnswerLate.set(call, Math.max(0, (this.#mayAnswerLate.get(call) ?? 0) + more))
  }

  /** The end of the record. */
  readonly end = (): void => {
    const { closed, open } = this.#facts
    for (const call of [...(open?.calls ?? []), ...(closed?.calls ?? [])]) {
      if (call.execution === "running") this.#findings.add("T26", `${call.call} started and never finished`)
    }
  }

  #intent(step: string, { call: id, key, mode, tool }: EventData<"effect_intent">) {
    const call = this.#facts.call(id)
    const known = this.#facts.tools.get(tool)
    const first = call?.execution === "none" && call.intent === undefined && call.settled === undefined
    const again = call?.execution === "running" && call.intent !== undefined && call.step === step
    if (call?.validated !== true || call.tool !== tool || !(first || again)) {
      this.#findings.add("T25", `an intent of ${id}, which is not about to start`)
    } else if (known?.ledger !== mode || known.risk === "read") {
      this.#findings.add("T25", `an intent of ${id} in mode ${mode}, which is not that of ${tool}`)
    }
    // Whether another try has the key of the first is T55's to say.
    if (call !== undefined) call.intent ??= key
  }

  #settled({ call: id, key, outcome, replayed, tool }: EventData<"effect_settled">) {
    const facts = this.#facts
    const call = facts.call(id)
    if (outcome === "unknown") facts.unknownEffects += 1
    const known = call?.validated === true && call.tool === tool && call.settled === undefined
    const came = call?.ok === true ? "succeeded" : call?.effect === "unknown" ? "unknown" : "failed"
    const performed = call?.execution === "finished" && call.intent === key && outcome === came
    if (!known || !(replayed ? call.execution === "none" && call.intent === undefined : performed)) {
      this.#findings.add(
        "T25",
        `${id} is settled as ${outcome}${replayed ? " from before" : ""}, and that is not what it did`
      )
    }
    if (call !== undefined) call.settled = { outcome, replayed, key }
    if (replayed) facts.repairs = 0
  }

  #started(step: string, data: EventData<"tool_execution_started">) {
    const { unless } = this.#findings
    const facts = this.#facts
    const { open } = facts
    const call = this.#facts.call(data.call)
    facts.counts.toolCalls += 1
    this.#sequence(step, data.call_seq)
    if (open === undefined || call === undefined) {
      return this.#findings.add("T24", `${data.call} is executed, and no turn with this call is open`)
    }
    unless(call.execution === "none", "T26", () => `${data.call} starts a second time`)
    unless(
      call.validated && call.tool === data.tool && call.rejected === undefined && isAllowed(open, call),
      "T24",
      () => `${data.call} is executed as ${data.tool} and was not admitted as that`
    )
    const needsIntent = facts.tools.get(data.tool)?.risk !== "read" && facts.tools.get(data.tool)?.ledger !== "none"
    unless(!needsIntent || call.intent !== undefined, "T25", () => `${data.call} starts without an intent`)
    this.#inPolicy(call)
    call.tool ??= data.tool
    call.execution = "running"
    call.step = step
    call.sequence = data.call_seq
    open.running += 1
    open.started += 1
    open.lastStarted = Math.max(open.lastStarted, call.ordinal)
    this.#owes(data.call, 1)
  }

  #sequence(step: string, sequence: number) {
    const facts = this.#facts
    // A run that was resumed may go on counting where the first part stopped.
    const first = facts.resumed !== undefined && facts.counts.toolCalls === 1
    if ((!first && sequence !== facts.lastSequence + 1) || sequence < 1 || step !== `tool-${sequence - 1}`) {
      this.#findings.add("T27", `call_seq ${sequence} in step ${step} after ${facts.lastSequence}`)
    }
    facts.lastSequence = sequence
  }

  #inPolicy(call: OpenCall) {
    const open = this.#facts.open!
    const policy = this.#facts.started?.calls
    const { ordinal, risk } = call
    const alone = open.running === 0 && ordinal > open.lastStarted
    const beside = open.calls.every((other) => other.execution !== "running" || other.risk === "read")
    const fits =
      policy === "parallel"
        ? open.running === 0 || (risk === "read" && beside)
        : alone && (policy !== "single" || ordinal === 0)
    this.#findings.unless(fits, "T28", () => `${call.call} starts against the policy ${policy}`)
  }

  #finished(step: string, data: EventData<"tool_execution_finished">) {
    const facts = this.#facts
    const { open } = facts
    const call = this.#facts.call(data.call)
    if (data.effect === "unknown") facts.unknownEffects += 1
    facts.repairs = 0
    facts.toolMillis += data.duration_ms
    const same =
      call?.execution === "running" && call.step === step && call.sequence === data.call_seq && call.tool === data.tool
    if (!same)
      this.#findings.add(
        "T26",
        `${data.call} finishes in step ${step} as execution ${data.call_seq}, and no such execution runs`
      )
    else if (data.ok !== (data.failure_kind === null) || data.ok !== (data.effect === null)) {
      this.#findings.add("T26", `${data.call} finishes, and ok does not go with its failure`)
    }
    const givenUp =
      data.failure_kind === "timed_out" || data.failure_kind === "cancelled" || data.failure_kind === "outcome_unknown"
    if (!givenUp && call?.lost !== true) this.#owes(data.call, -1)
    if (open === undefined || call === undefined) return
    if (call.execution === "running") open.running -= 1
    call.execution = "finished"
    call.ok = data.ok
    call.effect = data.effect
    call.failure = data.failure_kind
  }

  #late({ call, tool }: EventData<"late_outcome">) {
    if ((this.#mayAnswerLate.get(call) ?? 0) < 1 || !this.#facts.tools.has(tool)) {
      this.#findings.add("T32", `a late outcome of ${call}, which was not given up`)
    }
    this.#owes(call, -1)
  }
}
