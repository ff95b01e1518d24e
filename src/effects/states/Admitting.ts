/**
 * Decides, call by call, what may happen: known tool, sound arguments, scopes, precondition, approval. Every attempt logs
 * all three legality results, refused ones included; what is refused gets its answer here and never runs.
 */

import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { EventData, TraceInput } from "../../actors/TraceEvent.ts"
import type { TraceError } from "../../actors/TraceWriter.ts"
import { canonical } from "../../tools/JsonText.ts"
import type { RegisteredTool, ValidatedArguments } from "../../tools/Registry.ts"
import type { Answer, FailureKind } from "../../tools/ToolCall.ts"
import { type Decision, mustAsk } from "../Policy.ts"
import { type CallRecord, type RunContext, toolLabel } from "../RunContext.ts"
import { acting, committing, type State, type Stop } from "../State.ts"

type Legality = Pick<EventData<"legality_checked">, "schema" | "scopes" | "pre" | "cause">
type Errors = ReadonlyArray<{ readonly path: string; readonly reason: string }>

const step = (turn: number): string => `model-${turn}`

const legality = (run: RunContext, turn: number, record: CallRecord, found: Legality): TraceInput => ({
  type: "legality_checked",
  step: step(turn),
  phase: "validate",
  data: {
    call: record.callId,
    ordinal: record.proposed.ordinal,
    tool: toolLabel(run, record.proposed.name),
    ...found
  }
})

const reject = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  record: CallRecord,
  kind: FailureKind,
  errors: Errors,
  before: ReadonlyArray<TraceInput>
) {
  const answer: Answer = { ok: false, kind, errors }
  record.answer = answer
  run.budget.rejected++
  const tool = record.proposed.name
  yield* run.trace.append(...before, {
    type: "tool_call_rejected",
    step: step(turn),
    phase: kind === "refused" ? "approve" : "validate",
    data: {
      call: record.callId,
      ordinal: record.proposed.ordinal,
      tool: toolLabel(run, tool),
      kind,
      errors: errors.map(({ path, reason }) => ({ path: run.trace.text(path), reason: run.trace.text(reason) }))
    }
  })
  run.emit({ _tag: "CallRejected", callId: record.callId, tool, answer })
})

const unknownTool = (run: RunContext, name: string): Errors => {
  const names = run.session.registry.tools.map((tool) => tool.name)
  const known = names.length === 0 ? "no tools are available" : `available tools: ${names.join(", ")}`
  return [{ path: "name", reason: `there is no tool ${JSON.stringify(name)}; ${known}` }]
}

/** Asks about a call that reaches outside. The question and the answer are on the record before anything follows from them. */
const approve = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments
): Effect.fn.Return<Decision, TraceError> {
  if (!mustAsk(tool.contract.risk)) return "allow"
  const digest = hash("sha256", canonical([tool.name, args.raw]))
  const about = { call: record.callId, tool: tool.name, digest: run.trace.digest(digest) }
  const { approver } = run.settings
  const point = run.point
  run.point = "awaiting-approval"
  yield* run.trace.append({ type: "approval_requested", step: step(turn), phase: "approve", data: about })
  const decision = yield* approver.decide({
    callId: record.callId,
    tool: tool.name,
    risk: tool.contract.risk,
    arguments: args.effective,
    digest
  })
  run.point = point
  const data = { ...about, decision, by: approver.name }
  yield* run.trace.append({ type: "approval_decided", step: step(turn), phase: "approve", data })
  return decision
})

const refusal: Errors = [{ path: "", reason: "the policy of this run does not allow this call; nothing was executed" }]

/** One call to its verdict. Returns a reason to stop when the call itself ends the run. */
const admit = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  record: CallRecord
): Effect.fn.Return<Stop | undefined, TraceError> {
  const { arguments: args, name, ordinal } = record.proposed
  const unchecked = (cause: string): Legality => ({
    schema: "not_evaluated",
    scopes: "not_evaluated",
    pre: "not_evaluated",
    cause
  })
  if (run.settings.calls === "single" && ordinal > 0) {
    const errors = [
      { path: "", reason: "only the first call of a turn is executed; send the next call in a turn of its own" }
    ]
    yield* reject(run, turn, record, "not_executed", errors, [
      legality(run, turn, record, unchecked("single_call_policy"))
    ])
    return undefined
  }
  const tool = run.session.registry.get(name)
  if (tool === undefined) {
    const events = [legality(run, turn, record, unchecked("unknown_tool"))]
    yield* reject(run, turn, record, "unknown_tool", unknownTool(run, name), events)
    return undefined
  }
  record.tool = tool
  const checked = tool.check(args)
  if (Result.isFailure(checked)) {
    const found = { schema: "fail", scopes: "not_evaluated", pre: "not_evaluated", cause: "invalid_arguments" } as const
    const errors = checked.failure.map(({ path, reason }) => ({ path, reason }))
    yield* reject(run, turn, record, "invalid_arguments", errors, [legality(run, turn, record, found)])
    return undefined
  }
  record.arguments = checked.success
  const legal = legality(run, turn, record, { schema: "pass", scopes: "pass", pre: "pass" })
  const decision = yield* approve(run, turn, record, tool, checked.success)
  if (decision === "deny") {
    yield* reject(run, turn, record, "refused", refusal, [legal])
    return undefined
  }
  const { effective, raw } = checked.success
  run.trace.note(legal, {
    type: "tool_call_validated",
    step: step(turn),
    phase: "validate",
    data: {
      call: record.callId,
      tool: tool.name,
      risk: tool.contract.risk,
      arguments: run.trace.json(raw),
      ...(effective === raw ? {} : { effective: run.trace.json(effective) })
    }
  })
  if (decision === "suspend") return { _tag: "AwaitingApproval", callId: record.callId }
  if (!tool.contract.asksUser) return undefined
  const question = effective["question"]
  return { _tag: "NeedsInput", question: typeof question === "string" ? question : canonical(effective) }
})

export const admitting = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number
): Effect.fn.Return<State, TraceError> {
  run.point = "between-calls"
  const records = run.open?.records ?? []
  let refused = 0
  for (const record of records) {
    // Known from before the run was resumed.
    if (record.answer !== undefined) continue
    const stop = yield* admit(run, turn, record)
    if (stop !== undefined) return committing(turn, stop)
    if (record.answer !== undefined) refused++
  }
  if (records.some((record) => record.answer === undefined)) return acting(turn)
  if (refused < records.length) return committing(turn)
  run.budget.repairs++
  return run.budget.repairs > run.settings.limits.repairs
    ? committing(turn, { _tag: "Limit", kind: "repairs" })
    : committing(turn)
})
