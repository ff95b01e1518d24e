/** A call that is not going to happen: why, raised by which gate, and how the model and the record are told. */
import * as Effect from "effect/Effect"
import type { TraceInput } from "../../actors/TraceEvent.ts"
import type { TraceError } from "../../actors/TraceWriter.ts"
import { classOf, type Stage } from "../../tools/AttemptClass.ts"
import type { Answer, FailureKind } from "../../tools/ToolCall.ts"
import { type CallRecord, type RunContext, toolLabel } from "../RunContext.ts"

export interface Refusal {
  readonly kind: FailureKind
  readonly stage: Stage
  readonly errors: ReadonlyArray<{ readonly path: string; readonly reason: string }>
  /** What the model could do instead. */
  readonly hint?: string
}

export const refusal = (kind: FailureKind, stage: Stage, reason: string, hint?: string): Refusal => ({
  kind,
  stage,
  errors: [{ path: "", reason }],
  ...(hint === undefined ? {} : { hint })
})

/** Gives the call its answer. Nothing was done, and the record says so. */
export const reject = Effect.fnUntraced(function* (
  run: RunContext,
  step: string,
  record: CallRecord,
  { errors, hint, kind, stage }: Refusal,
  ...before: ReadonlyArray<TraceInput>
): Effect.fn.Return<void, TraceError> {
  const answer: Answer = { ok: false, kind, errors, ...(hint === undefined ? {} : { retry_hint: hint }) }
  record.answer = answer
  run.budget.rejected++
  const tool = record.proposed.name
  yield* run.trace.append(...before, {
    type: "tool_call_rejected",
    step,
    phase: kind === "refused" ? "approve" : "validate",
    data: {
      call: record.callId,
      ordinal: record.proposed.ordinal,
      tool: toolLabel(run, tool),
      kind,
      class: classOf(kind, "none"),
      stage,
      effect: "none",
      errors: errors.map(({ path, reason }) => ({ path: run.trace.text(path), reason: run.trace.text(reason) })),
      ...(hint === undefined ? {} : { hint: run.trace.text(hint) })
    }
  })
  run.emit({ _tag: "CallRejected", callId: record.callId, tool, answer })
})
