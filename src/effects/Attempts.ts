/**
 * Performs a call as often as its contract and the task allow: a lost answer is asked for again with the original key,
 * after growing waits, until the outcome is known or the attempts are used up. Where the contract can look for the effect,
 * it looks first. Nothing else is ever repeated, and a repeat is never a new decision.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SettledOutcome } from "../actors/EffectLedgerEntry.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import type { TraceError } from "../actors/TraceWriter.ts"
import { classOf } from "../tools/AttemptClass.ts"
import type { Answer, Failed, ToolOutcome } from "../tools/ToolCall.ts"
import { type BackoffState, next, resume } from "./Backoff.ts"
import { intentOf, settledOutcome } from "./Effects.ts"
import { type Admitted, intentEvent } from "./ExecutionEvents.ts"
import { look } from "./legality/ContractTerms.ts"
import { unmetAfter } from "./legality/Precondition.ts"
import type { Refusal } from "./legality/Refusal.ts"
import { type Judged, judge } from "./Postcondition.ts"
import { gatesOf } from "./Profile.ts"
import { type CallRecord, nowMillis, type RunContext, round3, wallLeft } from "./RunContext.ts"

export interface Tried {
  readonly at_ms: number
  readonly kind: string | null
  readonly effect: "none" | "present" | "unknown"
}

/** What happened so far. Lives outside the attempts, so that an interruption does not lose it. */
export interface Progress {
  /** The ledger waits for what the current attempt comes to. */
  open: boolean
  /** Attempts on the record of the ledger, those of earlier processes included. */
  made: number
  readonly tried: Array<Tried>
  /** Work was handed to the pool. */
  began: boolean
  /** An attempt may have had its effect, and nothing has shown since that it had none. */
  lost: boolean
  /** The ledger knows for certain what the last attempt came to. */
  closed: boolean
  /** Attempts that were given up and are still at work somewhere. */
  running: number
}

/** `lost`: an attempt of an earlier process may have had its effect. */
export const newProgress = (made: number, lost: boolean): Progress => ({
  open: true,
  made,
  tried: [],
  began: false,
  lost,
  closed: false,
  running: 0
})

type Fault = TraceError | LedgerError

/** May this failure be followed by another attempt? */
const mayRetry = (run: RunContext, { tool }: Admitted, outcome: Failed): boolean => {
  // A request that was taken is not sent again because nobody can see yet what became of it.
  if (outcome.kind === "outcome_unknown" || classOf(outcome.kind, outcome.effect) !== "timeout") return false
  // Without time for a call none of them ever starts.
  if (run.settings.limits.toolMillis === 0) return false
  const rule = gatesOf(run.settings.gates.profile, tool.contract).retry
  if (tool.contract.risk === "read") return rule === "auto" && tool.contract.retry === "safe"
  return rule !== "never"
}

/** Is there something to be found out, or to be tried again? */
const isOpen = (run: RunContext, call: Admitted, outcome: Failed): boolean =>
  mayRetry(run, call, outcome) ||
  (outcome.effect === "unknown" && call.tool.terms.probe !== undefined && call.tool.contract.ledger === "observe")

/** The call had begun, and its precondition stopped it before the tool did anything. */
export const unready = (record: CallRecord, { errors, kind, stage }: Refusal): Failed => {
  record.failedAt = stage
  return { _tag: "Failed", kind, errors, effect: "none", millis: 0 }
}

/** What the ledger says an attempt came to, in the form of an execution's outcome. */
export const outcomeFrom = ({ answer, effect, kind }: SettledOutcome): ToolOutcome => {
  const told = JSON.parse(answer) as Answer
  if (told.ok) return { _tag: "Succeeded", result: told.result, artifacts: [], millis: 0 }
  return { _tag: "Failed", kind: kind ?? told.kind, errors: told.errors, effect, millis: 0 }
}

/**
 * Looks for the effect of a lost attempt. Nothing where the contract cannot look, or sees nothing clear; and as long as an
 * attempt is `atWork`, that its effect is not there is not clear.
 */
export const probed = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  key: string,
  atWork: () => boolean = () => false
): Effect.fn.Return<ToolOutcome | "absent" | undefined, TraceError> {
  const { probe } = call.tool.terms
  if (probe === undefined || call.tool.contract.ledger !== "observe") return undefined
  // Asked before the look: what ends meanwhile may have had its effect after it.
  const working = atWork()
  const answer = yield* look("probe", () => probe(call.arguments, key), run.settings.tools)
  const seen = Result.isSuccess(answer) ? answer.success : ({ _tag: "Unclear" } as const)
  const found = seen._tag === "Absent" && working ? ({ _tag: "Unclear" } as const) : seen
  yield* run.trace.append({
    type: "effect_probed",
    step: call.step,
    data: {
      call: call.record.callId,
      tool: call.tool.name,
      key: run.trace.digest(key, call.record.arguments?.raw),
      found: found._tag === "Present" ? "present" : found._tag === "Absent" ? "absent" : "unclear"
    }
  })
  if (found._tag === "Present") return { _tag: "Succeeded", result: found.result, artifacts: [], millis: 0 }
  return found._tag === "Absent" ? "absent" : undefined
})

/** Waits, on the record. False when the run has no time left for it. */
export const pause = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  outcome: Failed,
  state: BackoffState,
  delayMillis: number
) {
  if (delayMillis >= wallLeft(run)) return false
  yield* run.trace.append({
    type: "retry_scheduled",
    step: call.step,
    phase: "execute",
    data: {
      call: call.record.callId,
      tool: call.tool.name,
      attempt: state.n,
      of: run.settings.gates.retry.attempts,
      delay_ms: round3(delayMillis),
      class: classOf(outcome.kind, outcome.effect)
    }
  })
  yield* Effect.sleep(delayMillis)
  return true
})

/** The right to try once more under the same key, or what the key came to in the meantime. */
const retaken = (run: RunContext, call: Admitted, key: string, progress: Progress) =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      const begun = yield* run.ledger.retake(intentOf(run, call.record, call.tool, call.arguments, key))
      if (begun._tag === "Settled") return outcomeFrom(begun.outcome)
      if (begun._tag !== "New") return undefined
      progress.open = true
      progress.closed = false
      progress.made++
      yield* run.trace.append(intentEvent(run, call, key, progress.made))
      return "again" as const
    })
  )

/** One failed attempt, closed in the ledger: only then may anybody try again under its key. */
const closeAttempt = (run: RunContext, key: string, progress: Progress, outcome: Failed) =>
  Effect.uninterruptible(
    Effect.suspend(() => {
      if (!progress.open) return Effect.void
      progress.open = false
      progress.closed = outcome.effect !== "unknown"
      return run.ledger.settle(key, settledOutcome(outcome))
    })
  )

type Following = { readonly outcome: ToolOutcome } | "again"

/** The look was conclusive: nothing was done. */
const absent = (outcome: Failed): Failed => ({ ...outcome, effect: "none" })

/** What follows a lost answer: a look, and where a repeat is allowed a wait and another right to act. */
const followed = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  progress: Progress,
  outcome: Failed
): Effect.fn.Return<Following, Fault> {
  const repeat = mayRetry(run, call, outcome)
  const { key } = call
  const policy = run.settings.gates.retry
  const observes = call.tool.contract.ledger === "observe"
  if (key !== undefined) yield* closeAttempt(run, key, progress, outcome)
  const atWork = () => progress.running > 0
  let found = key === undefined ? undefined : yield* probed(run, call, key, atWork)
  for (;;) {
    if (found === "absent") progress.lost = false
    else if (found !== undefined) return { outcome: found }
    if (!repeat) return { outcome: found === "absent" ? absent(outcome) : outcome }
    const state = resume(key === undefined ? progress.tried.length : progress.made, policy)
    const step = next(state, policy)
    if (step._tag === "Escalate" || !(yield* pause(run, call, outcome, state, step.delayMillis))) return { outcome }
    if (key === undefined) return "again"
    // What was not there before the wait may be there now. And without an answer from the look, repeating the effect would
    // be a guess: only the look is repeated.
    if (observes) found = yield* probed(run, call, key, atWork)
    if (observes && found === undefined) progress.made++
    if (observes && found !== "absent") continue
    const right = yield* retaken(run, call, key, progress)
    if (right === "again") return "again"
    return { outcome: right ?? outcome }
  }
})

/** Failures of an attempt that never reached the tool: they say nothing about the attempt before it. */
const neverRan: ReadonlySet<string> = new Set(["not_executed", "precondition_failed", "stale_contract", "cancelled"])

/** The last attempt left nothing because it never began; the one before it may have left something. */
const stillLost = (judged: Judged, outcome: Failed): Judged => {
  if (outcome.effect !== "none" || !neverRan.has(outcome.kind)) return judged
  const errors = [{ path: "", reason: "an earlier attempt of this call may have had its effect" }, ...outcome.errors]
  return { outcome: { ...outcome, kind: "outcome_unknown", effect: "unknown", errors } }
}

/** The other side was not reached: that says nothing of an earlier attempt, whose answer is still not known. */
const afterLost = (progress: Progress, judged: Judged): Judged => {
  const { outcome } = judged
  if (!progress.lost || outcome._tag === "Succeeded" || outcome.effect !== "none") return judged
  return classOf(outcome.kind, outcome.effect) === "timeout" ? { outcome: { ...outcome, effect: "unknown" } } : judged
}

/** `once` hands the work to the pool and is told how often it was handed over before. */
export const perform = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  progress: Progress,
  once: Effect.Effect<ToolOutcome>
): Effect.fn.Return<Judged, Fault> {
  for (;;) {
    const at_ms = round3(nowMillis(run.clock) - run.startedAt)
    progress.began = true
    const judged = afterLost(progress, yield* judge(run, call, yield* once))
    const { outcome } = judged
    if (outcome._tag === "Succeeded") return judged
    progress.tried.push({ at_ms, kind: outcome.kind, effect: outcome.effect })
    if (outcome.effect === "unknown") progress.lost = true
    if (!isOpen(run, call, outcome)) return progress.lost ? stillLost(judged, outcome) : judged
    const following = yield* followed(run, call, progress, outcome)
    if (following !== "again") {
      const adopted = following.outcome
      return adopted === outcome ? judged : yield* judge(run, call, adopted)
    }
    const moved = call.key === undefined ? yield* unmetAfter(run, call.record, call.step, "backoff") : undefined
    if (moved !== undefined) return { outcome: unready(call.record, moved) }
  }
})
