/** Evaluates what is queued, then checks the limits at the boundary and that the next turn fits the context. */
import * as Effect from "effect/Effect"
import type { TraceInput } from "../../actors/TraceEvent.ts"
import type { TraceError } from "../../actors/TraceWriter.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import type { Segment, Span } from "../../engine/Prompt.ts"
import { answerText } from "../../tools/ToolCall.ts"
import { compact, putBackRest } from "../Compacting.ts"
import { restore } from "../Restoring.ts"
import {
  nowMillis,
  openingOptions,
  phaseNow,
  type QueuedAnswers,
  type RunContext,
  renderOptions,
  rollBack,
  toolLabel,
  wallLeft
} from "../RunContext.ts"
import { spokenIn } from "../Spoken.ts"
import { admitting, committing, done, generating, type State, type Stop } from "../State.ts"
import type { Entry } from "../Transcript.ts"

/** Evaluates segments; the record of it is shielded, so that what is in the context is in the trace. */
const evaluate = (
  run: RunContext,
  segments: ReadonlyArray<Segment>,
  record: (span: Span) => ReadonlyArray<TraceInput>
): Effect.Effect<void, EngineError | TraceError> =>
  Effect.uninterruptibleMask((interruptible) => {
    const before = nowMillis(run.clock)
    const told = (done: number, total: number) => run.emit({ _tag: "Prefill", done, total })
    const commit = Effect.andThen(
      run.trace.flush,
      interruptible(run.session.context.commit(segments, told, run.settings.priority))
    )
    return Effect.map(commit, (span) => {
      run.budget.modelMillis += nowMillis(run.clock) - before
      run.budget.prefillTokens += span.end - span.start
      run.trace.note(...record(span))
    })
  })

/** Evaluates segments; where they do not fit, room is made for them, if the run may do that, for as long as there is some to make. */
const withRoom = (
  run: RunContext,
  segments: ReadonlyArray<Segment>,
  record: (span: Span) => ReadonlyArray<TraceInput>
): Effect.Effect<void, EngineError | TraceError> =>
  Effect.catchIf(
    evaluate(run, segments, record),
    (error): error is EngineError =>
      error._tag === "EngineError" &&
      error.reason === "context_overflow" &&
      run.settings.context.onFull === "compact" &&
      run.session.opened,
    Effect.fnUntraced(function* (error) {
      const tokens = (yield* run.session.context.measure(segments)) + run.settings.limits.outputTokens
      if (!(yield* compact(run, { for: "message", tokens }))) return yield* error
      yield* withRoom(run, segments, record)
    })
  )

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
  withRoom(run, run.session.codec.answers(queued.answers), (span) => {
    run.session.transcript.commitOpen(span)
    run.open = undefined
    run.queued = undefined
    return [...answerEvents(run, queued), stateChanged(roleOf(queued), `model-${queued.turn.turn}`, span)]
  })

/** Answers to a turn of an earlier run of this session. Their calls are in that run's trace; here they are messages. */
const evaluateOwed = (run: RunContext, owed: QueuedAnswers) =>
  withRoom(run, run.session.codec.answers(owed.answers), (span) => {
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

const evaluateUser = (run: RunContext, content: string) =>
  withRoom(run, run.session.codec.user(content), (span) => {
    // One of the two: the task comes first, and what is said to a question after everything else.
    const task = run.userPending
    if (task) run.userPending = false
    else run.reply = undefined
    run.session.transcript.append({ kind: "user", content, ...(task ? {} : { reply: true }), span })
    return [
      { type: "message_committed", step: "user", data: { role: "user", content: run.trace.text(content) } },
      stateChanged("user", "user", span)
    ]
  })

/** Tokens a turn takes around what is generated: its opening and closing. They are the same for every turn of a session. */
const frameSize = Effect.fnUntraced(function* (run: RunContext) {
  const { codec, context, frameSizes } = run.session
  const options = openingOptions(run)
  const kind = `${options.after} ${options.thinking}`
  const known = frameSizes.get(kind)
  if (known !== undefined) return known
  const opening = yield* context.measure(codec.opening(options))
  const closing = yield* context.measure(codec.closing)
  frameSizes.set(kind, opening + closing)
  return opening + closing
})

const fits = Effect.fnUntraced(function* (run: RunContext) {
  const frame = yield* frameSize(run)
  const used = yield* run.session.context.length
  const needed = frame + run.settings.phases[phaseNow(run)].outputTokens
  const { contextTokens } = run.session.model
  if (used + needed <= contextTokens) return undefined
  const detail = `${used} tokens are used and a turn needs up to ${needed} more, but the context holds ${contextTokens}`
  return { needed, detail }
})

/** The question that was said, and that nobody has answered: only the end of the record was missing. */
const questionIn = ({
  content,
  contentAfter = ""
}: Extract<Entry, { readonly kind: "assistant" }>): Stop | undefined => {
  const said = spokenIn(content + contentAfter, { clarify: true, handOver: false })
  return said?._tag === "Clarify" ? { _tag: "NeedsInput", question: said.question } : undefined
}

/** On to the turn, if it fits, or room can be made for it. */
const towardsTurn = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number
): Effect.fn.Return<State, EngineError | TraceError> {
  for (;;) {
    const lacking = yield* fits(run)
    if (lacking === undefined) return generating(turn)
    run.point = "prefill"
    const made = yield* compact(run, { for: "turn", tokens: lacking.needed })
    run.point = "preparing"
    if (!made) return done({ _tag: "ContextExhausted", detail: lacking.detail })
  }
})

export const preparing = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number
): Effect.fn.Return<State, EngineError | TraceError> {
  run.point = "prefill"
  if (run.session.turnLeft) yield* rollBack(run.session)
  if (run.past !== undefined) {
    yield* restore(run, run.past.past, run.past.answer)
    const { conversation, questioned } = run.past.past
    run.past = undefined
    const last = run.session.transcript.entries.at(-1)
    const asked =
      questioned === true && run.reply === undefined && last?.kind === "assistant" ? questionIn(last) : undefined
    if (asked !== undefined) return run.open === undefined ? done(asked) : committing(run.open.turn, asked)
    // The answer was there; only the end of the record was missing.
    if (conversation !== true && last?.kind === "assistant" && last.turn === "final")
      return done({ _tag: "Completed", text: last.content })
  }
  if (run.session.transcript.aside.length > 0) yield* putBackRest(run)
  if (run.session.owed !== undefined) yield* evaluateOwed(run, run.session.owed)
  if (!run.session.opened) yield* evaluateSystem(run)
  if (run.userPending) yield* evaluateUser(run, run.task)
  // A turn that came back open has calls to decide about; one with a mistake only its feedback.
  if (run.open !== undefined && run.queued === undefined) {
    return run.open.feedback === undefined ? admitting(run.open.turn) : committing(run.open.turn)
  }
  if (run.queued !== undefined) yield* evaluateAnswers(run, run.queued)
  if (run.reply !== undefined) yield* evaluateUser(run, run.reply)
  run.point = "preparing"
  if (wallLeft(run) <= 0) return done({ _tag: "Limit", kind: "wall_time" })
  if (run.budget.turns >= run.settings.limits.modelTurns) return done({ _tag: "Limit", kind: "model_turns" })
  return yield* towardsTurn(run, turn)
})
