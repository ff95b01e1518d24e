/**
 * Asks somebody about a call that needs it. The question, what it says about cost, harm and evidence, and the answer are on
 * the record before anything follows from them. An answer is for exactly this tool with exactly these arguments.
 */
import { hash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { TraceError } from "../../actors/TraceWriter.ts"
import { canonical } from "../../tools/JsonText.ts"
import type { RegisteredTool, ValidatedArguments } from "../../tools/Registry.ts"
import { type Decided, decidedBy } from "../Policy.ts"
import { type CallRecord, nowMillis, type RunContext } from "../RunContext.ts"
import { amountForTrace } from "./Choice.ts"
import { look } from "./ContractTerms.ts"

/** What would change, for whoever decides. Being unable to say is said too. */
const previewOf = Effect.fnUntraced(function* (run: RunContext, tool: RegisteredTool, args: ValidatedArguments) {
  const { preview } = tool.terms
  if (preview === undefined) return undefined
  const shown = yield* look("preview", () => preview(args), run.settings.tools)
  if (Result.isSuccess(shown)) return shown.success
  return `no preview: ${"fault" in shown.failure ? shown.failure.fault : shown.failure.message}`
})

export const ask = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments,
  step: string
): Effect.fn.Return<Decided, TraceError> {
  const { contract } = tool
  const digest = hash("sha256", canonical([tool.name, args.raw]))
  const about = { call: record.callId, tool: tool.name, digest: run.trace.digest(digest, args.raw) }
  const { cost, hazard } = record.prices ?? { cost: 0, hazard: 0 }
  const { evidence, reversible, risk } = contract
  const { approver } = run.settings
  const point = run.point
  run.point = "awaiting-approval"
  yield* run.trace.append({
    type: "approval_requested",
    step,
    phase: "approve",
    data: { ...about, cost: amountForTrace(cost), hazard: amountForTrace(hazard), reversible, evidence }
  })
  run.emit({ _tag: "ApprovalRequested", callId: record.callId, tool: tool.name })
  const preview = yield* previewOf(run, tool, args)
  const answer = yield* approver.decide({
    runId: run.effectRunId,
    callId: record.callId,
    tool: tool.name,
    risk,
    // A copy: whoever decides says yes or no, and changes nothing.
    arguments: structuredClone(args.effective),
    digest,
    cost,
    hazard,
    reversible,
    evidence,
    ...(preview === undefined ? {} : { preview })
  })
  const { by, decision, reason } = decidedBy(approver, answer)
  run.point = point
  if (decision === "allow") record.approvedAt = nowMillis(run.clock)
  const data = { ...about, decision, by }
  yield* run.trace.append({ type: "approval_decided", step, phase: "approve", data })
  run.emit({ _tag: "ApprovalDecided", callId: record.callId, tool: tool.name, decision, by })
  return { by, decision, ...(reason === undefined ? {} : { reason }) }
})

/** Does an approval that was given still hold? */
export const expired = (run: RunContext, { approvedAt }: CallRecord): boolean =>
  approvedAt !== undefined && nowMillis(run.clock) - approvedAt > run.settings.gates.approvalMillis
