/** Evaluates what is queued, then checks the limits at the boundary and that the next turn fits the context. */
import * as Effect from "effect/Effect"
import type { TraceInput } from "../../actors/TraceEvent.ts"
import type { TraceError } from "../../actors/TraceWriter.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import type { Segment, Span } from "../../engine/Prompt.ts"
import { answerText } from "../../tools/ToolCall.ts"
import { restore } from "../Restoring.ts"
import {
  nowMillis,
  openingOptions,
  type QueuedAnswers,
  type RunContext,
  renderOptions,
  rollBack,
  toolLabel,
  wallLeft
} from "../RunContext.ts"
import { admitting, committing, done, generating, type State } from "../State.ts"

/** Evaluates segments; the record of it is shielded, so that what is in the context is in the trace. */
const evaluate = (
  run: RunContext,
  segments: ReadonlyArray<Segment>,
  record: (span: Span) => ReadonlyArray<TraceInput>
): Effect.Effect<void, EngineError | TraceError> =>
  Effect.uninterruptibleMask((restore) => {
    const before = nowMillis(run.clock)
    const told = (done: number, total: number) => run.emit({ _tag: "Prefill", done, total })
    const commit = Effect.andThen(run.trace.flush, restore(run.session.context.commit(segments, told)))
    return Effect.map(commit, (span) => {
      run.budget.modelMillis += nowMillis(run.clock) - before
      run.budget.prefillTokens += span.end - span.start
      run.trace.note(...record(span))
    })
  })

const stateChanged = (role: "system" | "user" | "tool_result" | "feedback", step: string, span: Span): TraceInput => ({
  type: "session_state_changed",
  step,
  data: { role, span: [span.start, span.end], committed_len: span.end }
})

const answerEvents = (run: RunContext, queued: QueuedAnswers): ReadonlyArray<TraceInput> => {
  const { feedback, records, turn } = queued.turn
  const step = `model-${turn}`
  if (feedback !== undefined) {
    const content = run.trace.text(answerText(feedback.answer))
    return [{ type: "feedback_committed", step, data: { code: feedback.code, content } }]
  }
  return records.map((record, at) => ({
    type: "tool_result_committed",
    step,
    data: {
      call: record.callId,
      ordinal: record.proposed.ordinal,
      tool: toolLabel(run, record.proposed.name),
      ok: record.answer?.ok === true,
      truncated: queued.answers[at]!.truncated,
      answer: run.trace.text(queued.answers[at]!.text)
    }
  }))
}

const roleOf = (queued: QueuedAnswers) => (queued.turn.feedback === undefined ? "tool_result" : "feedback")

const evaluateAnswers = (run: RunContext, queued: QueuedAnswers) =>
  evaluate(run, run.session.codec.answers(queued.answers), (span) => {
    run.session.transcript.commitOpen(span)
    run.open = undefined
    run.queued = undefined
    return [...answerEvents(run, queued), stateChanged(roleOf(queued), `model-${queued.turn.turn}`, span)]
  })

/** Answers to a turn of an earlier run of this session. Their calls are in that run's trace; here they are messages. */
const evaluateOwed = (run: RunContext, owed: QueuedAnswers) =>
  evaluate(run, run.session.codec.answers(owed.answers), (span) => {
    const role = roleOf(owed)
    run.session.transcript.commitOpen(span)
    run.session.owed = undefined
    return [
      ...owed.answers.map(
        (answer): TraceInput => ({
          type: "message_committed",
          step: "run",
          data: { role, content: run.trace.text(answer.text), tool: toolLabel(run, answer.name) }
        })
      ),
      stateChanged(role, "run", span)
    ]
  })

const evaluateSystem = (run: RunContext) => {
  const { session } = run
  return evaluate(run, session.codec.system(session.system, renderOptions(run)), (span) => {
    session.opened = true
    const content = session.system ?? ""
    session.transcript.append({ kind: "system", content, implicit: session.system === undefined, span })
    return [
      { type: "message_committed", step: "run", data: { role: "system", content: run.trace.text(content) } },
      stateChanged("system", "run", span)
    ]
  })
}

const evaluateUser = (run: RunContext) =>
  evaluate(run, run.session.codec.user(run.task), (span) => {
    run.userPending = false
    run.session.transcript.append({ kind: "user", content: run.task, span })
    return [
      { type: "message_committed", step: "user", data: { role: "user", content: run.trace.text(run.task) } },
      stateChanged("user", "user", span)
    ]
  })

/** Tokens a turn takes around what is generated: its opening and closing. They are the same for every turn of a session. */
const frameSize = Effect.fnUntraced(function* (run: RunContext) {
  const { codec, context, frameSizes } = run.session
  const options = openingOptions(run)
  const known = frameSizes.get(options.after)
  if (known !== undefined) return known
  const opening = yield* context.measure(codec.opening(options))
  const closing = yield* context.measure(codec.closing)
  frameSizes.set(options.after, opening + closing)
  return opening + closing
})

const fits = Effect.fnUntraced(function* (run: RunContext) {
  const frame = yield* frameSize(run)
  const used = yield* run.session.context.length
  const needed = frame + run.settings.limits.outputTokens
  return used + needed <= run.session.model.contextTokens
    ? undefined
    : `${used} tokens are used and a turn needs up to ${needed} more, but the context holds ${run.session.model.contextTokens}`
})

export const preparing = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number
): Effect.fn.Return<State, EngineError | TraceError> {
  run.point = "prefill"
  if (run.session.turnLeft) yield* rollBack(run.session)
  if (run.past !== undefined) {
    yield* restore(run, run.past.past, run.past.answer)
    const { conversation } = run.past.past
    run.past = undefined
    const last = run.session.transcript.entries.at(-1)
    // The answer was there; only the end of the record was missing.
    if (conversation !== true && last?.kind === "assistant" && last.turn === "final")
      return done({ _tag: "Completed", text: last.content })
  }
  if (run.session.owed !== undefined) yield* evaluateOwed(run, run.session.owed)
  if (!run.session.opened) yield* evaluateSystem(run)
  if (run.userPending) yield* evaluateUser(run)
  // A turn that came back open has calls to decide about; one with a mistake only its feedback.
  if (run.open !== undefined && run.queued === undefined) {
    return run.open.feedback === undefined ? admitting(run.open.turn) : committing(run.open.turn)
  }
  if (run.queued !== undefined) yield* evaluateAnswers(run, run.queued)
  run.point = "preparing"
  if (wallLeft(run) <= 0) return done({ _tag: "Limit", kind: "wall_time" })
  if (run.budget.turns >= run.settings.limits.modelTurns) return done({ _tag: "Limit", kind: "model_turns" })
  const detail = yield* fits(run)
  return detail === undefined ? generating(turn) : done({ _tag: "ContextExhausted", detail })
})
