/**
 * Performs one admitted call and closes its record: intent, execution under a deadline, artifacts, settlement. The work may
 * be stopped at any moment; the record of it may not.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ArtifactRef } from "../actors/ArtifactStore.ts"
import type { SettledOutcome } from "../actors/EffectLedgerEntry.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import type { TraceInput } from "../actors/TraceEvent.ts"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { RegisteredTool, ValidatedArguments } from "../tools/Registry.ts"
import { type Answer, answerOf, answerText, type Failed, type ToolOutcome } from "../tools/ToolCall.ts"
import * as Effects from "./Effects.ts"
import { type CallRecord, nowMillis, type Restore, type RunContext, round3, wallLeft } from "./RunContext.ts"
import type { Stop } from "./State.ts"

/** A call that was admitted: its tool and arguments are known. */
interface Admitted {
  readonly record: CallRecord
  readonly tool: RegisteredTool
  readonly arguments: ValidatedArguments
  /** Counts executions of the run from 1. */
  readonly sequence: number
  readonly step: string
  /** The ledger's key; absent for reads. */
  readonly key: string | undefined
}

const failed = (kind: Failed["kind"], reason: string, effect: Failed["effect"], millis = 0): Failed => ({
  _tag: "Failed",
  kind,
  errors: [{ path: "", reason }],
  effect,
  millis
})

interface Closed {
  readonly outcome: ToolOutcome
  readonly refs: ReadonlyArray<ArtifactRef>
}

/**
 * Publishes what a successful call produced. If one artifact cannot be published, so did the call fail; what was published
 * before it stays on the record, and so does what a tool that does more than read has already done.
 */
const withArtifacts = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  outcome: ToolOutcome
): Effect.fn.Return<Closed> {
  const refs: Array<ArtifactRef> = []
  if (outcome._tag === "Failed") return { outcome, refs }
  for (const artifact of outcome.artifacts) {
    const put = yield* Effect.result(run.artifactStore.put(run.effectRunId, artifact))
    if (put._tag === "Failure") {
      const effect = call.tool.contract.risk === "read" ? "none" : "present"
      return { outcome: failed("execution_failed", put.failure.message, effect, outcome.millis), refs }
    }
    refs.push(put.success)
  }
  return { outcome, refs }
})

/** What is known when the execution itself did not answer. */
const outcomeOf = (call: Admitted, exit: Exit.Exit<ToolOutcome>, began: boolean): ToolOutcome => {
  if (Exit.isSuccess(exit)) return exit.value
  if (!began) return failed("cancelled", "the run was stopped before this call ran", "none")
  const effect = call.tool.contract.risk === "read" ? "none" : "unknown"
  return Cause.hasInterrupts(exit.cause)
    ? failed("cancelled", "the run was stopped while this call was running", effect)
    : failed("crashed", "the runtime failed while this call was running", effect)
}

/** Makes the outcome durable before anybody is told. If that fails, nobody knows what a later reader will find. */
const settle = (run: RunContext, call: Admitted, closed: Closed) => {
  if (call.key === undefined) return Effect.succeed({ closed, error: undefined })
  return run.ledger.settle(call.key, Effects.settledOutcome(closed.outcome)).pipe(
    Effect.as({ closed, error: undefined }),
    Effect.catchTag("LedgerError", (error) => {
      const outcome = failed("outcome_unknown", "what this call came to could not be recorded", "unknown")
      return Effect.succeed({ closed: { ...closed, outcome }, error })
    })
  )
}

const artifactEvent = (run: RunContext, call: Admitted, ref: ArtifactRef): TraceInput => ({
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

const finishedEvent = (run: RunContext, call: Admitted, { outcome, refs }: Closed, millis: number): TraceInput => {
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
      failure_kind: outcome._tag === "Failed" ? outcome.kind : null,
      effect: outcome._tag === "Failed" ? outcome.effect : null,
      payload: outcome._tag === "Succeeded" ? run.trace.json(outcome.result) : run.trace.text(text),
      payload_bytes: Buffer.byteLength(text),
      artifact_ids: refs.map((ref) => run.trace.text(ref.artifactId))
    }
  }
}

/** Closes the record of an execution, in memory and in the trace. */
const finish = Effect.fnUntraced(function* (run: RunContext, call: Admitted, closed: Closed, millis: number) {
  const { record, tool } = call
  const { outcome, refs } = closed
  const answer = answerOf(outcome)
  record.outcome = outcome
  record.answer = answer
  run.artifacts.push(...refs)
  run.budget.artifacts += refs.length
  run.budget.toolMillis += millis
  const { state } = Effects.settledOutcome(outcome)
  yield* run.trace.append(
    ...refs.map((ref) => artifactEvent(run, call, ref)),
    finishedEvent(run, call, closed, millis),
    ...(call.key === undefined ? [] : [Effects.settledEvent(run, record, call.step, call.key, state, false)])
  )
  for (const artifact of refs) run.emit({ _tag: "ArtifactWritten", callId: record.callId, artifact })
  run.emit({ _tag: "CallFinished", callId: record.callId, tool: tool.name, answer, millis })
})

/** Outcomes that arrive after their deadline: always for the ledger, for the trace as long as it is open. */
const lateInto = (run: RunContext, call: Admitted) => (outcome: ToolOutcome) => {
  const { key, record, step, tool } = call
  const settled = Effects.settledOutcome(outcome)
  if (key !== undefined) {
    // The error's own words may hold the key and the place of the ledger: logs are told neither.
    const warn = ({ reason }: LedgerError) =>
      Effect.logWarning(`the late outcome of ${record.callId} could not be recorded in the ledger (${reason})`)
    run.background(Effect.catchTag(run.ledger.late(key, settled), "LedgerError", warn))
  }
  if (run.closed) return
  const failure_kind = outcome._tag === "Failed" ? outcome.kind : null
  const data = { call: record.callId, tool: tool.name, ok: outcome._tag === "Succeeded", failure_kind }
  run.trace.offer({ type: "late_outcome", step, data })
}

const deadlineOf = (run: RunContext, tool: RegisteredTool): number => {
  const own = Math.min(tool.contract.deadlineMillis ?? Infinity, run.settings.limits.toolMillis)
  return Math.max(0, Math.min(own, wallLeft(run)))
}

/** No deadline is recorded as the largest number of milliseconds a timer can take. */
const finite = (millis: number): number => (Number.isFinite(millis) ? round3(millis) : 2 ** 31 - 1)

/** The ledger knew, or knew that nobody does: nothing runs, and the model is told `answer`. */
const replay = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  step: string,
  key: string,
  state: SettledOutcome["state"],
  answer: Answer
) {
  record.replayed = state
  record.answer = answer
  yield* run.trace.append(Effects.settledEvent(run, record, step, key, state, true))
})

/** Calls side by side have fibers of their own: none goes on after a stop that another one of them has brought about. */
const unlessStopped = <A>(run: RunContext, effect: Effect.Effect<A>): Effect.Effect<A> =>
  Effect.suspend(() => (run.stopRequest === undefined ? effect : Effect.interrupt))

const execute = Effect.fnUntraced(function* (run: RunContext, call: Admitted, restore: Restore) {
  const { arguments: args, key, record, sequence, step, tool } = call
  const deadlineMillis = deadlineOf(run, tool)
  const started = yield* Effect.exit(
    run.trace.append(...(key === undefined ? [] : [Effects.intentEvent(run, record, tool, step, key)]), {
      type: "tool_execution_started",
      step,
      phase: "execute",
      data: { call: record.callId, tool: tool.name, call_seq: sequence, deadline_ms: finite(deadlineMillis) }
    })
  )
  if (Exit.isFailure(started)) {
    // Not on the record, not executed. The finish closes the start, should the trace take lines again.
    const outcome = failed("not_executed", "the run could not be recorded", "none")
    const { closed } = yield* settle(run, call, { outcome, refs: [] })
    yield* finish(run, call, closed, 0)
    return yield* started
  }
  run.emit({ _tag: "CallStarted", callId: record.callId, tool: tool.name })
  run.point = "tool"
  const before = nowMillis(run.clock)
  const settings = key === undefined ? run.settings.tools : { ...run.settings.tools, idempotencyKey: key }
  const admitted = { callId: record.callId, tool, arguments: args, deadlineMillis, settings }
  let began = false
  const work = Effect.suspend(() => {
    began = true
    return run.pool.run(admitted, lateInto(run, call))
  })
  const exit = yield* Effect.exit(restore(unlessStopped(run, work)))
  run.point = "after-tool"
  const settled = yield* settle(run, call, yield* withArtifacts(run, call, outcomeOf(call, exit, began)))
  const finished = yield* Effect.exit(finish(run, call, settled.closed, nowMillis(run.clock) - before))
  // A defect stays one, whatever else went wrong after it.
  if (Exit.isFailure(exit) && Cause.hasDies(exit.cause)) return yield* Effect.failCause(exit.cause)
  if (settled.error !== undefined) return yield* settled.error
  return yield* finished
})

const permitted = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  record: CallRecord,
  restore: Restore
): Effect.fn.Return<Stop | undefined, TraceError | LedgerError> {
  const { arguments: args, tool } = record
  if (tool === undefined || args === undefined) {
    return yield* Effect.die(new Error(`${record.callId} was not admitted`))
  }
  yield* unlessStopped(run, Effect.void)
  const place = `model-${turn}`
  if (tool.contract.risk !== "read") yield* run.trace.flush
  const permit = yield* Effects.begin(run, record, tool, args, place)
  if (permit._tag === "Known") {
    yield* replay(run, record, place, permit.key, permit.outcome.state, JSON.parse(permit.outcome.answer) as Answer)
    return undefined
  }
  if (permit._tag === "Refused") {
    yield* replay(run, record, place, permit.key, permit.escalate ? "unknown" : "failed", permit.answer)
    const detail = `${tool.name} (${record.callId}): its outcome is unknown`
    return permit.escalate ? { _tag: "Escalated", detail } : undefined
  }
  const sequence = ++run.budget.toolCalls
  const step = `tool-${sequence - 1}`
  yield* execute(run, { record, tool, arguments: args, sequence, step, key: permit.key }, restore)
  return undefined
})

/**
 * Performs the call of `record`, which must have been admitted, and returns a reason to stop if it found one. Typed failures
 * are failures of the record, not of the tool.
 */
export const perform = (
  run: RunContext,
  turn: number,
  record: CallRecord
): Effect.Effect<Stop | undefined, TraceError | LedgerError> =>
  Effect.uninterruptibleMask((restore) => permitted(run, turn, record, restore))
