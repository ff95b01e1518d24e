/** Looks whether a call's requirements hold right now: once when it is proposed, and again after the world had time to move. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { EventData } from "../../actors/TraceEvent.ts"
import type { RegisteredTool, ValidatedArguments } from "../../tools/Registry.ts"
import type { CallRecord, RunContext } from "../RunContext.ts"
import { look } from "./ContractTerms.ts"
import { type Refusal, refusal } from "./Refusal.ts"

/** Nothing if it holds. A look that could not be taken is a requirement that is not known to hold. */
export const unmet = Effect.fnUntraced(function* (
  run: RunContext,
  tool: RegisteredTool,
  args: ValidatedArguments
): Effect.fn.Return<Refusal | undefined> {
  const { pre } = tool.terms
  if (pre === undefined) return undefined
  const found = yield* look("precondition", () => pre(args), run.settings.tools)
  if (Result.isFailure(found)) {
    if ("fault" in found.failure) return refusal("contract_fault", "precondition", found.failure.fault)
    const { message, path } = found.failure
    return { kind: "precondition_failed", stage: "precondition", errors: [{ path, reason: message }] }
  }
  if (found.success.length === 0) return undefined
  return {
    kind: "precondition_failed",
    stage: "precondition",
    errors: found.success.map(({ path, reason }) => ({ path: path ?? "", reason })),
    hint: "look at the current state first, then propose what fits it"
  }
})

/** Looks again next to the effect and puts it on the record. */
export const unmetAfter = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  step: string,
  after: EventData<"precondition_checked">["after"]
) {
  const { arguments: args, tool } = record
  if (tool?.terms.pre === undefined || args === undefined) return undefined
  const failed = yield* unmet(run, tool, args)
  run.trace.note({
    type: "precondition_checked",
    step,
    phase: "validate",
    data: { call: record.callId, tool: tool.name, pre: failed === undefined ? "pass" : "fail", after }
  })
  return failed
})
