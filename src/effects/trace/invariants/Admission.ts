/** T21 to T23: what each call was found to be, and who allowed it, before anything is done. */
import { hash } from "node:crypto"
import type { EventData } from "../../../actors/TraceEvent.ts"
import { canonical, type Json } from "../../../tools/JsonText.ts"
import { Concealed } from "../Concealed.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, OpenCall, OpenTurn, RunFacts } from "./RunFacts.ts"

/** Rejections that say a check failed; they cannot follow three passes. */
const checkFailed: ReadonlySet<string> = new Set(["unknown_tool", "invalid_arguments"])

export class Admission {
  readonly #findings: Findings
  readonly #facts: RunFacts

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    const { step } = record
    switch (record.event_type) {
      case "legality_checked":
        return this.#checked(step, record.seq, record.data)
      case "tool_call_validated":
        return this.#validated(step, record.data)
      case "tool_call_rejected":
        return this.#rejected(step, record.data)
      case "approval_requested":
        return this.#requested(step, record.data)
      case "approval_decided":
        return this.#decided(step, record.data)
    }
  }

  /** The turn whose calls are decided in this step, if there is one. */
  #turnAt(step: string): OpenTurn | undefined {
    const { open } = this.#facts
    return open?.kind === "calls" && open.step === step ? open : undefined
  }

  #checked(step: string, seq: number, data: EventData<"legality_checked">) {
    const { add } = this.#findings
    // Text that never became a call is nobody's call; Legality judges it.
    if (data.cause === "malformed") return
    const found = this.#turnAt(step)?.calls[data.ordinal]
    if (found === undefined)
      return add("T21", `${data.call} is checked in step ${step}, where no call ${data.ordinal} is open`)
    const taken = this.#turnAt(step)!.calls.some((other) => other !== found && other.call === data.call)
    if (found.legality !== "unchecked" || taken || (found.call !== undefined && found.call !== data.call)) {
      add("T21", `call ${data.ordinal} (${data.call}) is checked again`)
    }
    found.call = data.call
    found.checks = data
    found.checkedAt = seq
    found.legality = verdictOf(data)
  }

  #validated(step: string, data: EventData<"tool_call_validated">) {
    const { add, unless } = this.#findings
    const facts = this.#facts
    const open = this.#turnAt(step)
    // A call that was never checked is taken for the first that nothing is known of.
    const call =
      open?.calls.find((one) => one.call === data.call) ?? open?.calls.find((one) => one.legality === "unchecked")
    facts.validatedCalls += 1
    if (open === undefined || call === undefined) {
      return add("T21", `${data.call} is validated in step ${step}, where no call waits for it`)
    }
    if (call.legality === "unchecked") add("T21", `${data.call} is validated and was not checked`)
    else unless(isLegal(call), "T22", () => `${data.call} is validated, and not all three checks passed`)
    call.call ??= data.call
    unless(!call.validated && call.rejected === undefined, "T22", () => `${data.call} is validated after its verdict`)
    const tool = facts.tools.get(data.tool)
    unless(tool?.risk === data.risk, "T22", () => `${data.tool} with risk ${data.risk} is not in the provenance`)
    call.validated = true
    call.tool = data.tool
    call.risk = data.risk
    open.lastValidated = call
    const approval = open.approvals.get(data.call)
    if (approval === undefined) return
    unless(
      approval.tool === data.tool && this.#isAbout(approval.digest, data),
      "T23",
      () => `${data.call} was approved as another call`
    )
  }

  /** Without content, or redacted, the arguments are not there to compare. */
  #isAbout(digest: string, { arguments: args, tool }: EventData<"tool_call_validated">): boolean {
    if (this.#facts.started?.content !== true || args instanceof Concealed) return true
    return digest === hash("sha256", canonical([tool, args as Json]))
  }

  #rejected(step: string, data: EventData<"tool_call_rejected">) {
    const { add, unless } = this.#findings
    const open = this.#turnAt(step)
    const call = open?.calls[data.ordinal]
    this.#facts.counts.rejected += 1
    if (open === undefined || call === undefined) {
      return add("T21", `${data.call} is rejected in step ${step}, where no call ${data.ordinal} is open`)
    }
    if (call.call !== data.call || call.legality === "unchecked")
      add("T21", `${data.call} is rejected and was not checked`)
    call.call ??= data.call
    const passed = isLegal(call)
    // Where the stage is on the record, it is T49 that compares.
    const against = passed && data.stage === undefined && checkFailed.has(data.kind)
    unless(
      call.rejected === undefined && !against,
      "T21",
      () => `${data.call} is rejected as ${data.kind} against its verdict`
    )
    unless(call.execution === "none", "T24", () => `${data.call} is rejected and was executed`)
    if (data.kind === "refused" && passed) {
      // After it was let go on, what refuses it is that the approval no longer holds.
      const decision = open.approvals.get(data.call)?.decision
      unless(
        decision === (call.validated ? "allow" : "deny"),
        "T23",
        () => `${data.call} is refused, and nobody denied it`
      )
    }
    call.rejected = data.kind
    call.mistake = !call.validated && data.kind !== "dry_run"
    if (call.validated) this.#facts.repairs = 0
  }

  #requested(step: string, { call, digest, tool }: EventData<"approval_requested">) {
    const open = this.#turnAt(step)
    if (open === undefined || open.approvals.has(call) || !this.#facts.tools.has(tool)) {
      this.#findings.add("T23", `approval of ${call} is asked for in step ${step}, where it is not to be decided`)
    }
    const found = this.#facts.call(call)
    const due = found?.legality === "passed" && !found.validated && found.rejected === undefined
    if (this.#facts.gates !== undefined && open !== undefined && !due) {
      this.#findings.add("T23", `approval of ${call} is asked for, which is not a legal call without a verdict`)
    }
    open?.approvals.set(call, { tool, digest, decision: undefined })
  }

  #decided(step: string, { call, decision, digest, tool }: EventData<"approval_decided">) {
    const asked = this.#turnAt(step)?.approvals.get(call)
    if (asked === undefined || asked.decision !== undefined || asked.digest !== digest || asked.tool !== tool) {
      this.#findings.add("T23", `${call} is decided, and this was not asked`)
    }
    if (asked !== undefined) asked.decision = decision
  }
}

const verdictOf = ({ cause, pre, schema, scopes }: EventData<"legality_checked">): OpenCall["legality"] => {
  if (schema !== "pass" || scopes !== "pass") return "failed"
  if (pre === "pass") return "passed"
  return pre === "not_evaluated" && cause === "superseded_by_ledger" ? "inquiry" : "failed"
}

/** Three passes, or two and the ledger's word that this attempt was made before. */
export const isLegal = ({ legality }: OpenCall): boolean => legality === "passed" || legality === "inquiry"

/** Was the call asked about and allowed, or not asked about at all? */
export const isAllowed = (open: OpenTurn, call: OpenCall): boolean => {
  const asked = call.call === undefined ? undefined : open.approvals.get(call.call)
  return asked === undefined || asked.decision === "allow"
}
