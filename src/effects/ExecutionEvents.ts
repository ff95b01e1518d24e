/** The lines an execution leaves on the record. */
import type { ArtifactRef } from "../actors/ArtifactStore.ts"
import type { TraceInput } from "../actors/TraceEvent.ts"
import { classOf } from "../tools/AttemptClass.ts"
import type { Evidence } from "../tools/Contract.ts"
import type { Json } from "../tools/JsonText.ts"
import type { RegisteredTool, ValidatedArguments } from "../tools/Registry.ts"
import { answerOf, answerText, type ToolOutcome } from "../tools/ToolCall.ts"
import { type CallRecord, type RunContext, round3 } from "./RunContext.ts"

/** A call that was admitted: its tool and arguments are known. */
export interface Admitted {
  readonly record: CallRecord
  readonly tool: RegisteredTool
  readonly arguments: ValidatedArguments
  /** Counts executions of the run from 1. */
  readonly sequence: number
  readonly step: string
  /** The ledger's key; absent for reads. */
  readonly key: string | undefined
}

/** By what the runtime judged, and what it saw. */
export interface Seen {
  readonly source: Evidence["source"]
  readonly seen?: Json
}

/** How an execution ended, what it published, and what speaks for it. */
export interface Closed {
  readonly outcome: ToolOutcome
  readonly refs: ReadonlyArray<ArtifactRef>
  readonly evidence?: Seen
}

export const artifactEvent = (run: RunContext, call: Admitted, ref: ArtifactRef): TraceInput => ({
  type: "artifact_written",
  step: call.step,
  data: {
    call: call.record.callId,
    artifact_id: run.trace.text(ref.artifactId),
    name: run.trace.text(ref.name),
    sha256: ref.sha256,
    size_bytes: ref.bytes,
    media_type: run.trace.text(ref.mediaType),
    producer_tool: call.tool.name
  }
})

/** Class and stage of a failure. What the postcondition, or a second look at the precondition, found is not the tool's doing. */
const failureOf = ({ failedAt }: CallRecord, outcome: ToolOutcome) => {
  if (outcome._tag === "Succeeded") return { failure_kind: null, effect: null }
  const { effect, kind } = outcome
  const judged = kind === "postcondition_failed" || kind === "contract_fault"
  const stage = failedAt ?? (judged ? "postcondition" : "execution")
  return { failure_kind: kind, class: classOf(kind, effect), stage, effect } as const
}

export const finishedEvent = (
  run: RunContext,
  call: Admitted,
  { outcome, refs }: Closed,
  millis: number
): TraceInput => {
  const text = answerText(answerOf(outcome))
  return {
    type: "tool_execution_finished",
    step: call.step,
    phase: "execute",
    data: {
      call: call.record.callId,
      tool: call.tool.name,
      call_seq: call.sequence,
      ok: outcome._tag === "Succeeded",
      duration_ms: round3(millis),
      ...failureOf(call.record, outcome),
      payload: outcome._tag === "Succeeded" ? run.trace.json(outcome.result) : run.trace.text(text),
      payload_bytes: Buffer.byteLength(text),
      artifact_ids: refs.map((ref) => run.trace.text(ref.artifactId))
    }
  }
}

/** The right to act, under a key, for the `attempt`th time. */
export const intentEvent = (run: RunContext, call: Admitted, key: string, attempt: number): TraceInput => {
  const { record, step, tool } = call
  const undone = run.undoable.findLast(({ by }) => by === tool.name)
  return {
    type: "effect_intent",
    step,
    data: {
      call: record.callId,
      tool: tool.name,
      key: run.trace.digest(key, record.arguments?.raw),
      mode: tool.contract.ledger,
      attempt,
      ...(undone === undefined ? {} : { compensates: undone.call })
    }
  }
}

const statusOf = { succeeded: "settled_ok", failed: "settled_failed", unknown: "ambiguous" } as const

export const settledEvent = (
  run: RunContext,
  record: CallRecord,
  step: string,
  key: string,
  outcome: keyof typeof statusOf,
  replayed: boolean,
  evidence?: Seen
): TraceInput => ({
  type: "effect_settled",
  step,
  data: {
    call: record.callId,
    tool: record.proposed.name,
    key: run.trace.digest(key, record.arguments?.raw),
    outcome,
    replayed,
    status: statusOf[outcome],
    ...(evidence === undefined
      ? {}
      : {
          evidence: {
            source: evidence.source,
            ...(evidence.seen === undefined ? {} : { seen: run.trace.json(evidence.seen) })
          }
        })
  }
})
