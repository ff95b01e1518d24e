/** T47 to T50 and T60: the legality record of each attempt, and refusals and failures that must follow from it. */
import type { EventData } from "../../../actors/TraceEvent.ts"
import { classOf, type Stage } from "../../../tools/AttemptClass.ts"
import type { EffectClaim, FailureKind } from "../../../tools/ToolCall.ts"
import { isLegal } from "./Admission.ts"
import type { Findings } from "./Findings.ts"
import type { KnownRecord, OpenCall, RunFacts } from "./RunFacts.ts"

type Checked = EventData<"legality_checked">

/** Which gates raise a refusal of this kind. */
const raisedBy: Readonly<Record<string, ReadonlyArray<Stage>>> = {
  unknown_tool: ["schema"],
  invalid_arguments: ["schema", "ledger"],
  unauthorized: ["scopes"],
  idempotency_conflict: ["ledger"],
  precondition_failed: ["precondition"],
  contract_fault: ["scopes", "ledger", "precondition", "governor"],
  not_chosen: ["governor"],
  refused: ["approval"],
  dry_run: ["execution"],
  not_executed: ["parse"]
}

/** Who raises a failure of an execution: the contract's terms around it, or the execution itself. */
const failedAt = (kind: string): ReadonlyArray<Stage> => {
  if (kind === "precondition_failed") return ["precondition"]
  if (kind === "contract_fault") return ["precondition", "postcondition"]
  return kind === "postcondition_failed" ? ["postcondition"] : ["execution"]
}

const gates = ["schema", "scopes", "pre"] as const

const failedChecks = (checks: Checked): ReadonlyArray<(typeof gates)[number]> =>
  gates.filter((gate) => checks[gate] === "fail")

const stageOf = { schema: "schema", scopes: "scopes", pre: "precondition" } as const

export class Legality {
  readonly #findings: Findings
  readonly #facts: RunFacts
  /** Attempts on the record, with their tools; those that were refused. */
  readonly #attempts = new Map<number, string>()
  readonly #refused = new Set<number>()
  /** Calls that left something which another tool undoes. */
  readonly #undoable = new Map<string, string>()

  constructor(findings: Findings, facts: RunFacts) {
    this.#findings = findings
    this.#facts = facts
  }

  readonly see = (record: KnownRecord) => {
    switch (record.event_type) {
      case "legality_checked":
        return this.#checked(record.step, record.seq, record.data)
      case "tool_call_rejected":
        return this.#rejected(record.data)
      case "tool_execution_finished":
        return this.#finished(record.data)
      case "effect_intent":
        return this.#compensates(record.data)
      case "feedback_committed":
      case "feedback_uncommitted": {
        const { gates: said, open } = this.#facts
        if (said !== undefined && open?.kind === "malformed" && !open.attempted)
          this.#findings.add("T47", `turn ${open.turn} was malformed, and its attempt is not on the record`)
      }
    }
  }

  #checked(step: string, seq: number, data: Checked) {
    const { unless } = this.#findings
    if (data.cause === "malformed") this.#malformed(step, data)
    const failed = failedChecks(data)
    unless(
      data.blocked_by === undefined || data.blocked_by.join() === failed.join(),
      "T48",
      () =>
        `${data.call} is said to be blocked by ${data.blocked_by?.join(" and ") || "nothing"}, its checks say otherwise`
    )
    const { follows_refusal_of: refusal, resembles } = data
    unless(
      refusal === undefined || this.#refused.has(refusal),
      "T60",
      () => `${data.call} is said to follow the refusal at ${refusal}, and there is none`
    )
    unless(
      resembles === undefined || this.#attempts.get(resembles) === String(data.tool),
      "T60",
      () => `${data.call} is said to resemble the proposal at ${resembles}, which is none of its tool`
    )
    // Names that nobody registered are no tools, and may be hidden.
    if (typeof data.tool === "string" && data.cause !== "malformed") this.#attempts.set(seq, data.tool)
  }

  #malformed(step: string, data: Checked) {
    const { open } = this.#facts
    const due = open?.kind === "malformed" && open.step === step && !open.attempted && open.answered === 0
    const said =
      data.tool === "" &&
      data.schema === "fail" &&
      data.scopes === "not_evaluated" &&
      data.pre === "not_evaluated" &&
      data.class === "schema" &&
      data.stage === "parse"
    this.#findings.unless(due && said, "T47", () => `a malformed attempt in step ${step}, where none is to be recorded`)
    if (open?.kind === "malformed") open.attempted = true
  }

  #rejected(data: EventData<"tool_call_rejected">) {
    const call = this.#facts.call(data.call)
    if (data.kind === "refused" || data.kind === "unauthorized") this.#refused.add(call?.checkedAt ?? -1)
    if (data.stage !== undefined && call?.checks !== undefined) this.#follows(call, call.checks, data.stage)
    this.#classed(data, "none", data.stage === undefined ? undefined : (raisedBy[data.kind] ?? []))
  }

  /** The first check that failed is the stage; where none did, it is a later gate. */
  #follows(call: OpenCall, checks: Checked, stage: Stage) {
    const [first] = failedChecks(checks)
    const moved = call.recheck === "fail" && stage === "precondition"
    const later: ReadonlyArray<Stage> = isLegal(call)
      ? ["governor", "approval", "execution"]
      : checks.schema === "pass"
        ? ["ledger"]
        : ["parse"]
    const fits = first === undefined ? moved || later.includes(stage) : stageOf[first] === stage
    this.#findings.unless(fits, "T49", () => `${call.call} is rejected by ${stage}, and its checks say otherwise`)
  }

  #finished(data: EventData<"tool_execution_finished">) {
    const { call, effect, failure_kind: kind, ok, stage, tool } = data
    if (!ok && kind !== null && effect !== null) {
      this.#classed({ ...data, kind }, effect, stage === undefined ? undefined : failedAt(kind))
    } else {
      const bare = data.class === undefined && stage === undefined
      this.#findings.unless(bare, "T50", () => `${call} succeeded, and has a class of failure`)
    }
    const { compensation } = this.#facts.tools.get(tool) ?? {}
    if (compensation !== undefined && (ok || effect === "present")) this.#undoable.set(call, compensation)
  }

  #classed(
    data: { readonly call: string; readonly kind: string; readonly class?: string; readonly stage?: Stage },
    effect: EffectClaim,
    stages: ReadonlyArray<Stage> | undefined
  ) {
    const { call, kind, stage } = data
    const expected = classOf(kind as FailureKind, effect)
    const fits =
      (data.class === undefined || data.class === expected) && (stage === undefined || stages?.includes(stage) === true)
    this.#findings.unless(fits, "T50", () => `${call}: ${kind} is said to be of class ${data.class}, from ${stage}`)
  }

  #compensates({ call, compensates, tool }: EventData<"effect_intent">) {
    this.#findings.unless(
      compensates === undefined || this.#undoable.get(compensates) === tool,
      "T60",
      () => `${call} is said to undo ${compensates}, which ${tool} does not`
    )
  }
}
