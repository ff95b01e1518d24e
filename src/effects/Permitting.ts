/**
 * From an admitted call to the right to act: the world is looked at once more where it had time to move, the ledger is asked,
 * and what it knows already is told instead of done. An earlier attempt without an outcome is resolved by the tool's ledger
 * mode: sent again with its key, looked for, or left to a person.
 */
import * as Effect from "effect/Effect"
import type { LedgerEntry, SettledOutcome } from "../actors/EffectLedgerEntry.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import type { TraceError } from "../actors/TraceWriter.ts"
import { leavesNothing } from "../tools/Contract.ts"
import type { Answer } from "../tools/ToolCall.ts"
import { pause, probed } from "./Attempts.ts"
import { next, resume } from "./Backoff.ts"
import * as Effects from "./Effects.ts"
import { type Admitted, settledEvent } from "./ExecutionEvents.ts"
import { expired } from "./legality/Approving.ts"
import { inquire } from "./legality/Inquiry.ts"
import { unmetAfter } from "./legality/Precondition.ts"
import { refusal, reject } from "./legality/Refusal.ts"
import { escalate, execute, type Right } from "./Performing.ts"
import { judge } from "./Postcondition.ts"
import { gatesOf } from "./Profile.ts"
import { type CallRecord, type Restore, type RunContext, unlessStopped } from "./RunContext.ts"
import type { Stop } from "./State.ts"

type Fault = TraceError | LedgerError

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
  yield* run.trace.append(settledEvent(run, record, step, key, state, true))
})

const known = (
  run: RunContext,
  record: CallRecord,
  step: string,
  key: string,
  { answer, effect, state }: SettledOutcome
) => {
  record.replayedEffect = effect
  return replay(run, record, step, key, state, JSON.parse(answer) as Answer)
}

const nobodyKnows = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  key: string
): Effect.fn.Return<Stop, Fault> {
  yield* replay(run, call.record, call.step, key, "unknown", Effects.unknownAnswer(key))
  return yield* escalate(run, call, key)
})

/** An execution is counted when it gets the right to act. */
const perform = (run: RunContext, call: Omit<Admitted, "sequence" | "step">, right: Right, restore: Restore) => {
  const sequence = ++run.budget.toolCalls
  return execute(run, { ...call, sequence, step: `tool-${sequence - 1}` }, right, restore)
}

/** May the attempts go on where an earlier process left them? Waits as long as the next one has to. */
const mayGoOn = Effect.fnUntraced(function* (run: RunContext, call: Admitted, entry: LedgerEntry, restore: Restore) {
  const { contract } = call.tool
  const rule = gatesOf(run.settings.gates.profile, contract).retry
  // No rule for repeating by itself: being run again is somebody's decision, and one more inquiry is what they asked for.
  if (contract.retry === "never" || rule === "never") return run.settings.gates.profile.retry !== "dangerous"
  const state = resume(entry.attempts.length, run.settings.gates.retry)
  const step = next(state, run.settings.gates.retry)
  if (step._tag === "Escalate") return false
  return yield* restore(unlessStopped(run, pause(run, call, Effects.lostAttempt, state, step.delayMillis)))
})

/** An attempt of an earlier process, or of another run, whose outcome nobody recorded. Holds no right to act yet. */
const resolve = Effect.fnUntraced(function* (
  run: RunContext,
  call: Admitted,
  key: string,
  entry: LedgerEntry,
  restore: Restore
): Effect.fn.Return<Stop | undefined, Fault> {
  const { contract } = call.tool
  if (contract.ledger === "none") return yield* nobodyKnows(run, call, key)
  const found = yield* restore(unlessStopped(run, probed(run, call, key)))
  if (found !== undefined && found !== "absent") {
    const { outcome } = yield* restore(unlessStopped(run, judge(run, call, found)))
    const settled = Effects.settledOutcome(outcome)
    if (settled.state === "unknown") return yield* nobodyKnows(run, call, key)
    yield* run.ledger.late(key, settled)
    yield* known(run, call.record, call.step, key, settled)
    return undefined
  }
  if (contract.ledger === "observe" && found === undefined) return yield* nobodyKnows(run, call, key)
  if (contract.ledger !== "observe" && !(yield* mayGoOn(run, call, entry, restore))) {
    return yield* nobodyKnows(run, call, key)
  }
  if (found === "absent" && !(yield* stillReady(run, call.record, call.step, "backoff"))) return undefined
  const again = yield* run.ledger.retake(Effects.intentOf(run, call.record, call.tool, call.arguments, key))
  if (again._tag === "New") {
    const lost = found !== "absent" && !leavesNothing(contract)
    return yield* perform(run, call, { attempt: entry.attempts.length + 1, lost }, restore)
  }
  if (again._tag !== "Settled") return yield* nobodyKnows(run, call, key)
  yield* known(run, call.record, call.step, key, again.outcome)
  return undefined
})

/** Looks at the precondition once more; where it no longer holds the call is refused. */
const stillReady = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  step: string,
  after: Parameters<typeof unmetAfter>[3]
) {
  const unready = yield* unmetAfter(run, record, step, after)
  if (unready === undefined) return true
  // It may no longer hold because this very attempt was made meanwhile: then the ledger has the answer.
  const { arguments: args, tool } = record
  if (tool !== undefined && args !== undefined) {
    const asked = yield* inquire(run, record, tool, args)
    if (asked._tag === "Inquiry" && after !== "backoff") return true
  }
  yield* reject(run, step, record, unready)
  return false
})

const tooLate = refusal("refused", "approval", "the approval had expired when the call was to run; propose it again")

/** What the world may have done since the call was admitted. */
const moved = (run: RunContext, record: CallRecord): "approval" | "calls" | undefined => {
  if (record.inquiry === true) return undefined
  if (record.approvedAt !== undefined) return "approval"
  return (run.open?.records ?? []).some((other) => other !== record && other.outcome !== undefined)
    ? "calls"
    : undefined
}

const permitted = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  record: CallRecord,
  restore: Restore
): Effect.fn.Return<Stop | undefined, Fault> {
  const { arguments: args, tool } = record
  if (tool === undefined || args === undefined) {
    return yield* Effect.die(new Error(`${record.callId} was not admitted`))
  }
  yield* unlessStopped(run, Effect.void)
  const step = `model-${turn}`
  if (expired(run, record)) return yield* Effect.as(reject(run, step, record, tooLate), undefined)
  const after = moved(run, record)
  if (after !== undefined && !(yield* stillReady(run, record, step, after))) return undefined
  if (tool.contract.risk !== "read") yield* run.trace.flush
  const permit = yield* Effects.begin(run, record, tool, args)
  const call = { record, tool, arguments: args, key: permit.key }
  switch (permit._tag) {
    case "Act":
      return yield* perform(run, call, { attempt: permit.attempt, lost: false }, restore)
    case "Known":
      yield* known(run, record, step, permit.key, permit.outcome)
      return undefined
    case "Refused":
      yield* replay(run, record, step, permit.key, "failed", permit.answer)
      return undefined
    case "Unknown":
      return yield* resolve(run, { ...call, sequence: 0, step }, permit.key, permit.entry, restore)
  }
})

/**
 * Performs the call of `record`, which must have been admitted, and returns a reason to stop if it found one. Typed failures
 * are failures of the record, not of the tool.
 */
export const performAdmitted = (
  run: RunContext,
  turn: number,
  record: CallRecord
): Effect.Effect<Stop | undefined, TraceError | LedgerError> =>
  Effect.uninterruptibleMask((restore) => permitted(run, turn, record, restore))
