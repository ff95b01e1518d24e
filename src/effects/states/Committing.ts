/**
 * Gives every call of the open turn its one answer and queues the answers in call order. When the run stops here, the
 * answers are recorded as uncommitted and stay owed to the session. Uninterruptible: a stop waits for its end.
 */
import * as Effect from "effect/Effect"
import type { ArtifactRef } from "../../actors/ArtifactStore.ts"
import type { TraceInput } from "../../actors/TraceEvent.ts"
import type { TraceError } from "../../actors/TraceWriter.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import { text } from "../../engine/Prompt.ts"
import { type Answer, answerText } from "../../tools/ToolCall.ts"
import { excerpt } from "../Excerpt.ts"
import {
  type CallRecord,
  type OpenTurn,
  type PreparedAnswer,
  type QueuedAnswers,
  type RunContext,
  toolLabel
} from "../RunContext.ts"
import { done, preparing, type State, type Stop } from "../State.ts"

const skippedAnswer = (why: string): Answer => ({
  ok: false,
  kind: "not_executed",
  errors: [{ path: "", reason: `skipped: ${why}; nothing was executed` }]
})

/** Keeps the whole of a long result where the model's excerpt points to. Without an artifact store there is only the excerpt. */
const keepWhole = Effect.fnUntraced(function* (run: RunContext, turn: number, record: CallRecord, answer: Answer) {
  if (!answer.ok) return undefined
  const whole = typeof answer.result === "string" ? answer.result : JSON.stringify(answer.result)
  const extension = typeof answer.result === "string" ? "txt" : "json"
  const ref: ArtifactRef | undefined = yield* run.artifactStore
    .put(run.effectRunId, {
      name: `result-${record.callId}.${extension}`,
      mediaType: extension === "txt" ? "text/plain" : "application/json",
      bytes: Buffer.from(whole)
    })
    .pipe(Effect.catchTag("ArtifactError", () => Effect.succeed(undefined)))
  if (ref === undefined) return undefined
  run.artifacts.push(ref)
  run.budget.artifacts++
  const data = {
    call: record.callId,
    artifact_id: run.trace.text(ref.artifactId),
    name: run.trace.text(ref.name),
    sha256: ref.sha256,
    size_bytes: ref.bytes,
    media_type: run.trace.text(ref.mediaType),
    producer_tool: record.proposed.name
  }
  yield* run.trace.append({ type: "artifact_written", step: `model-${turn}`, data })
  return ref.artifactId
})

/** Bytes an answer may have: the limit, and no more tokens than a quarter of the context. A token is at least a byte. */
const fitTokens = Effect.fnUntraced(function* (run: RunContext, answer: Answer, artifact: string | undefined) {
  const quarter = Math.floor(run.session.model.contextTokens / 4)
  let maxBytes = run.settings.limits.resultBytes
  let fitted = excerpt(answer, maxBytes, artifact)
  while (maxBytes > quarter) {
    const tokens = yield* run.session.context.measure([text(answerText(fitted))])
    if (tokens <= quarter) break
    const bytes = Buffer.byteLength(answerText(fitted))
    maxBytes = Math.max(quarter, Math.floor((Math.min(bytes, maxBytes) * quarter) / tokens) - 1)
    fitted = excerpt(answer, maxBytes, artifact)
  }
  return fitted
})

const prepare = Effect.fnUntraced(function* (run: RunContext, turn: number, record: CallRecord, stopping: boolean) {
  const answer = record.answer!
  const whole = answerText(answer)
  const bytes = Buffer.byteLength(whole)
  const { id, name } = record.proposed
  const prepared = (text: string): PreparedAnswer => ({
    name,
    text,
    truncated: text !== whole,
    ...(id === undefined ? {} : { id })
  })
  const { limits } = run.settings
  const quarter = run.session.model.contextTokens / 4
  if (bytes <= limits.resultBytes && bytes <= quarter) return prepared(whole)
  // When stopping, the engine may be the reason: nothing is asked of it, and a token is at least a byte.
  if (stopping) return prepared(answerText(excerpt(answer, Math.min(limits.resultBytes, quarter))))
  const fitting = yield* fitTokens(run, answer, undefined)
  if (fitting === answer) return prepared(whole)
  const artifact = yield* keepWhole(run, turn, record, answer)
  return prepared(answerText(yield* fitTokens(run, answer, artifact)))
})

const queue = Effect.fnUntraced(function* (run: RunContext, open: OpenTurn, stopping: boolean) {
  const { feedback, records, turn } = open
  const { transcript } = run.session
  if (feedback !== undefined) {
    const content = answerText(feedback.answer)
    transcript.append({ kind: "feedback", code: feedback.code, content, span: undefined })
    return { turn: open, answers: [{ name: "", text: content, truncated: false }] }
  }
  const answers: Array<PreparedAnswer> = []
  for (const record of records) answers.push(yield* prepare(run, turn, record, stopping))
  for (const [at, { callId, proposed }] of records.entries()) {
    transcript.append({ kind: "tool", callId, name: proposed.name, content: answers[at]!.text, span: undefined })
  }
  return { turn: open, answers }
})

const uncommitted = (run: RunContext, queued: QueuedAnswers, reason: string): ReadonlyArray<TraceInput> => {
  const { feedback, records, turn } = queued.turn
  const step = `model-${turn}`
  if (feedback !== undefined) return [{ type: "feedback_uncommitted", step, data: { code: feedback.code, reason } }]
  return records.map((record, at): TraceInput => {
    const about = {
      call: record.callId,
      ordinal: record.proposed.ordinal,
      tool: toolLabel(run, record.proposed.name),
      reason
    }
    if (record.skipped) return { type: "call_skipped", step, data: about }
    return {
      type: "tool_result_uncommitted",
      step,
      data: { ...about, effect: effectOf(record), answer: run.trace.text(queued.answers[at]!.text) }
    }
  })
}

/** What is known to be left of a call. One that succeeded left something behind unless it only reads. */
const effectOf = ({ outcome, replayed, tool }: CallRecord) => {
  if (outcome?._tag === "Failed") return outcome.effect
  if (outcome !== undefined) return tool?.contract.risk === "read" ? "none" : "present"
  return replayed === "succeeded" ? "present" : replayed === "unknown" ? "unknown" : "none"
}

const why = (stop: Stop): string => {
  switch (stop._tag) {
    case "Limit":
      return `the run reached its limit of ${stop.kind.replaceAll("_", " ")}`
    case "Cancelled":
      return "the run was cancelled"
    case "NeedsInput":
      return "the run stopped to ask the user"
    case "AwaitingApproval":
      return "the run waits for an approval"
    default:
      return "the run stopped"
  }
}

const commit = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  stop: Stop | undefined
): Effect.fn.Return<State, EngineError | TraceError> {
  run.point = "commit"
  const { open } = run
  if (open === undefined) return stop === undefined ? preparing(turn + 1) : done(stop)
  for (const record of open.records) {
    if (record.answer !== undefined) continue
    record.answer = skippedAnswer(stop === undefined ? "no decision was made" : why(stop))
    record.skipped = true
    run.budget.skipped++
    const tool = record.proposed.name
    run.emit({ _tag: "CallSkipped", callId: record.callId, tool, reason: stop?._tag ?? "" })
  }
  const queued = run.queued ?? (yield* queue(run, open, stop !== undefined))
  if (stop === undefined) {
    run.queued = queued
    return preparing(turn + 1)
  }
  run.session.owed = queued
  run.queued = undefined
  run.open = undefined
  yield* run.trace.append(...uncommitted(run, queued, stop._tag))
  return done(stop)
})

export const committing = (
  run: RunContext,
  turn: number,
  stop: Stop | undefined
): Effect.Effect<State, EngineError | TraceError> => Effect.uninterruptible(commit(run, turn, stop))
