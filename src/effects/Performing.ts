/**
 * Performs one admitted call and closes its record: intent, execution under a deadline, postcondition, artifacts,
 * settlement. The work may be stopped at any moment; the record of it may not.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ArtifactRef } from "../actors/ArtifactStore.ts"
import { outcomeOf as knownOutcome, type SettledOutcome, sameOutcome } from "../actors/EffectLedgerEntry.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import type { TraceInput } from "../actors/TraceEvent.ts"
import type { TraceError } from "../actors/TraceWriter.ts"
import { failed, unseenEffect } from "../tools/Execution.ts"
import type { RegisteredTool } from "../tools/Registry.ts"
import { answerOf, type Failed, type ToolOutcome } from "../tools/ToolCall.ts"
import { newProgress, outcomeFrom, type Progress, perform as performAttempts, unready } from "./Attempts.ts"
import { CurrentCall } from "./CurrentCall.ts"
import { settledOutcome, stateOf } from "./Effects.ts"
import {
  type Admitted,
  artifactEvent,
  type Closed,
  finishedEvent,
  intentEvent,
  settledEvent
} from "./ExecutionEvents.ts"
import { unmetAfter } from "./legality/Precondition.ts"
import { type Judged, judgeOnce } from "./Postcondition.ts"
import { nowMillis, type Restore, type RunContext, round3, unlessStopped, wallLeft } from "./RunContext.ts"
import type { Stop } from "./State.ts"

/** What came instead of a result. A store that does not take it changes nothing about the failure. */
const rawKept = Effect.fnUntraced(function* (run: RunContext, { raw }: Failed) {
  const kept = raw === undefined ? undefined : yield* Effect.option(run.artifactStore.put(run.effectRunId, raw))
  return kept === undefined || kept._tag === "None" ? [] : [kept.value]
})

/**
 * Publishes what a successful call produced. If one artifact cannot be published, so did the call fail; what was published
 * before it stays on the record, and so does what a tool that does more than read has already done.
 */
const withArtifacts = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  { evidence, outcome }: Judged
): Effect.fn.Return<Closed> {
  const refs: Array<ArtifactRef> = []
  const seen = evidence === undefined ? {} : { evidence }
  if (outcome._tag === "Failed") return { outcome, refs: yield* rawKept(run, outcome), ...seen }
  for (const artifact of outcome.artifacts) {
    const put = yield* Effect.result(run.artifactStore.put(run.effectRunId, artifact))
    if (put._tag === "Failure") {
      const effect = call.tool.contract.risk === "read" ? "none" : "present"
      return { outcome: failed("execution_failed", effect, put.failure.message, outcome.millis), refs }
    }
    refs.push(put.success)
  }
  return { outcome, refs, ...seen }
})

/** What is known when the execution itself did not answer. */
const outcomeOf = (call: Admitted, exit: Exit.Exit<Judged, unknown>, { began, lost }: Progress): Judged => {
  if (Exit.isSuccess(exit)) return exit.value
  if (!began) {
    const effect = lost ? "unknown" : "none"
    return { outcome: failed("cancelled", effect, "the run was stopped before this call ran", 0) }
  }
  const effect = unseenEffect(call.tool.contract)
  const outcome = Cause.hasInterrupts(exit.cause)
    ? failed("cancelled", effect, "the run was stopped while this call was running", 0)
    : failed("crashed", effect, "the runtime failed while this call was running", 0)
  return { outcome }
}

interface Settled {
  readonly closed: Closed
  readonly error: LedgerError | undefined
}

/** The ledger heard of the outcome another way, a late answer say, and its first definite word stands. */
const adopted = Effect.fnUntraced(function* (run: RunContext, key: string, closed: Closed) {
  const known = yield* run.ledger.get(key)
  const outcome = known === undefined ? undefined : knownOutcome(known.entry)
  return outcome === undefined ? closed : { ...closed, outcome: outcomeFrom(outcome) }
})

/** What became of an outcome that depended on statements: the database may have refused one. */
const asKept = (closed: Closed, outcome: SettledOutcome, kept: SettledOutcome): Closed =>
  sameOutcome(outcome, kept)
    ? closed
    : { refs: closed.refs, outcome: { ...outcomeFrom(kept), millis: closed.outcome.millis } }

/** Makes the outcome durable before anybody is told. If that fails, nobody knows what a later reader will find. */
const settle = (run: RunContext, call: Admitted, progress: Progress, closed: Closed): Effect.Effect<Settled> => {
  const { key } = call
  if (key === undefined) return Effect.succeed({ closed, error: undefined })
  const outcome = settledOutcome(closed.outcome)
  const record = Effect.suspend(() => {
    const staged = closed.outcome._tag === "Succeeded" ? closed.outcome.staged : undefined
    if (staged !== undefined) {
      // An execution that has just answered is an open attempt: only that may have its statements executed.
      if (!progress.open) return Effect.die(new Error(`${call.record.callId} staged statements in no attempt`))
      return Effect.map(run.ledger.commit(key, outcome, staged), (kept) => asKept(closed, outcome, kept))
    }
    if (progress.open) return Effect.as(run.ledger.settle(key, outcome), closed)
    // The attempt itself is closed as unknown; what was found out since is added.
    const known = outcome.state === "unknown" || progress.closed
    return Effect.as(known ? Effect.void : run.ledger.late(key, outcome), closed)
  })
  return record.pipe(
    Effect.catchIf(
      ({ reason }) => reason === "settled",
      () => adopted(run, key, closed)
    ),
    Effect.map((closed): Settled => ({ closed, error: undefined })),
    Effect.catchTag("LedgerError", (error) => {
      const outcome = failed("outcome_unknown", "unknown", "what this call came to could not be recorded", 0)
      return Effect.succeed({ closed: { ...closed, outcome }, error })
    })
  )
}

/** Closes the record of an execution, in memory and in the trace. */
const finish = Effect.fnUntraced(function* (run: RunContext, call: Admitted, closed: Closed, millis: number) {
  const { key, record, tool } = call
  const { evidence, outcome, refs } = closed
  const answer = answerOf(outcome)
  record.outcome = outcome
  record.answer = answer
  run.artifacts.push(...refs)
  run.budget.artifacts += refs.length
  run.budget.toolMillis += millis
  const { compensation } = tool.contract
  const there = outcome._tag === "Succeeded" || outcome.effect === "present"
  if (compensation !== undefined && there) run.undoable.push({ by: compensation, call: record.callId })
  yield* run.trace.append(
    ...refs.map((ref) => artifactEvent(run, call, ref)),
    finishedEvent(run, call, closed, millis),
    ...(key === undefined ? [] : [settledEvent(run, record, call.step, key, stateOf(outcome), false, evidence)])
  )
  for (const artifact of refs) run.emit({ _tag: "ArtifactWritten", callId: record.callId, artifact })
  const left = tool.contract.risk === "read" ? "none" : "present"
  const effect = outcome._tag === "Succeeded" ? left : outcome.effect
  run.emit({ _tag: "CallFinished", callId: record.callId, tool: tool.name, answer, millis, effect })
})

/** Outcomes that arrive after their deadline: always for the ledger, for the trace as long as it is open. */
const lateInto = (run: RunContext, call: Admitted) => (outcome: ToolOutcome) => {
  const { key, record, step, tool } = call
  // What it staged is not executed: the attempt is over, and another may be under way.
  const staged = outcome._tag === "Succeeded" && outcome.staged !== undefined
  if (key !== undefined && !staged) {
    // The error's own words may hold the key and the place of the ledger: logs are told neither.
    const warn = ({ reason }: LedgerError) =>
      Effect.logWarning(`the late outcome of ${record.callId} could not be recorded in the ledger (${reason})`)
    const told = Effect.flatMap(judgeOnce(run, call, outcome), (judged) => run.ledger.late(key, settledOutcome(judged)))
    run.background(Effect.catchTag(told, "LedgerError", warn))
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

/** One hand-over to the pool. The precondition is looked at again if the call had to wait for its turn there. */
const handOver = (run: RunContext, call: Admitted, progress: Progress): Effect.Effect<ToolOutcome> => {
  const { arguments: args, key, record, tool } = call
  const settings = key === undefined ? run.settings.tools : { ...run.settings.tools, idempotencyKey: key }
  const ready =
    tool.terms.pre === undefined
      ? {}
      : {
          ready: Effect.map(unmetAfter(run, record, call.step, "queue"), (moved) =>
            moved === undefined ? undefined : unready(record, moved)
          )
        }
  return Effect.suspend(() => {
    const deadlineMillis = deadlineOf(run, tool)
    const detached = { began: () => void progress.running++, ended: () => void progress.running-- }
    const about = { callId: record.callId, runId: run.runId, tool, arguments: args }
    const admitted = { ...about, deadlineMillis, settings, ...ready, detached }
    const current = {
      run,
      callId: record.callId,
      tool: tool.name,
      step: call.step,
      deadlineMillis,
      attempt: progress.tried.length + 1
    }
    return Effect.provideService(run.pool.run(admitted, lateInto(run, call)), CurrentCall, current)
  })
}

/** Puts the start on the record. Not on the record, not executed. */
const startedEvents = (run: RunContext, call: Admitted, attempt: number): ReadonlyArray<TraceInput> => {
  const { key, record, sequence, step, tool } = call
  const deadline_ms = finite(deadlineOf(run, tool))
  return [
    ...(key === undefined ? [] : [intentEvent(run, call, key, attempt)]),
    {
      type: "tool_execution_started",
      step,
      phase: "execute",
      data: { call: record.callId, tool: tool.name, call_seq: sequence, deadline_ms }
    }
  ]
}

/** An effect whose outcome nobody here can find out: a person has to. All attempts are listed, earlier processes' too. */
export const escalate = Effect.fnUntraced(function* (
  run: RunContext,
  { record, step, tool }: Pick<Admitted, "record" | "step" | "tool">,
  key: string
): Effect.fn.Return<Stop, TraceError | LedgerError> {
  const known = yield* run.ledger.get(key)
  const attempts = known?.entry.attempts ?? []
  const first = attempts[0]?.at ?? 0
  yield* run.trace.append({
    type: "effect_escalated",
    step,
    data: {
      call: record.callId,
      tool: tool.name,
      key: run.trace.digest(key, record.arguments?.raw),
      attempts: attempts.map(({ at, settled }) => ({
        at_ms: round3(at - first),
        kind: settled?.outcome.kind ?? null,
        effect: settled?.outcome.effect ?? "unknown"
      }))
    }
  })
  return { _tag: "Escalated", detail: `${tool.name} (${record.callId}): its outcome is unknown`, key }
})

/** What may be done, and what came before it. */
export interface Right {
  /** Counts from 1. */
  readonly attempt: number
  /** An earlier attempt under the key may have had its effect. */
  readonly lost: boolean
}

/** Performs the call under the right that was given, and returns a reason to stop if it found one. */
export const execute = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  { attempt, lost }: Right,
  restore: Restore
): Effect.fn.Return<Stop | undefined, TraceError | LedgerError> {
  const { key, record, tool } = call
  const progress = newProgress(attempt, lost)
  const started = yield* Effect.exit(run.trace.append(...startedEvents(run, call, attempt)))
  if (Exit.isFailure(started)) {
    // The finish closes the start, should the trace take lines again.
    const outcome = lost
      ? failed("outcome_unknown", "unknown", "an earlier attempt of this call may have had its effect", 0)
      : failed("not_executed", "none", "the run could not be recorded", 0)
    const { closed } = yield* settle(run, call, progress, { outcome, refs: [] })
    yield* finish(run, call, closed, 0)
    yield* started
    return undefined
  }
  run.emit({ _tag: "CallStarted", callId: record.callId, tool: tool.name })
  run.point = "tool"
  const before = nowMillis(run.clock)
  const work = performAttempts(run, call, progress, handOver(run, call, progress))
  const exit = yield* Effect.exit(restore(unlessStopped(run, work)))
  run.point = "after-tool"
  const judged = outcomeOf(call, exit, progress)
  const settled = yield* settle(run, call, progress, yield* withArtifacts(run, call, judged))
  const finished = yield* Effect.exit(finish(run, call, settled.closed, nowMillis(run.clock) - before))
  // A defect stays one, whatever else went wrong after it; so does a record that broke during the work.
  if (Exit.isFailure(exit) && !Cause.hasInterrupts(exit.cause)) return yield* Effect.failCause(exit.cause)
  if (settled.error !== undefined) return yield* settled.error
  yield* finished
  const { outcome } = settled.closed
  const unknown = outcome._tag === "Failed" && outcome.effect === "unknown" && Exit.isSuccess(exit)
  return unknown && key !== undefined ? yield* escalate(run, call, key) : undefined
})
