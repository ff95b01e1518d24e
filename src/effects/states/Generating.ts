/**
 * One speculative turn: streamed through the codec, kept when it became an action, rolled back when it did not.
 * A plain answer that hits the token limit is continued once; what is still cut then is partial, never an answer.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { LedgerError } from "../../actors/EffectLedgerError.ts"
import type { EventData, Role, TraceInput } from "../../actors/TraceEvent.ts"
import { TraceError } from "../../actors/TraceWriter.ts"
import type { Action } from "../../engine/codecs/Codec.ts"
import { opensReasoning } from "../../engine/codecs/Thinking.ts"
import { EngineError } from "../../engine/EngineError.ts"
import type { EndReason, GenerationEvent, TurnUsage } from "../../engine/Generation.ts"
import type { Segment, Span } from "../../engine/Prompt.ts"
import { noteRecoveries, restartedIn } from "../EngineLife.ts"
import { handOver } from "../HandingOver.ts"
import { enterPhase, hear, type Saying } from "../Hearing.ts"
import { Meter } from "../Meter.ts"
import {
  type CallRecord,
  closingOf,
  heardBy,
  nowMillis,
  type OpenTurn,
  openingOptions,
  phaseNow,
  type Restore,
  type RunContext,
  repairStop,
  rollBack,
  round3,
  showing
} from "../RunContext.ts"
import { sampleTurns } from "../Sampling.ts"
import { admitting, committing, done, type State } from "../State.ts"
import { type Entry, proseAfter } from "../Transcript.ts"
import { TurnReader } from "../TurnReader.ts"
import { requestOf } from "../TurnRequest.ts"

interface Finished {
  readonly attempt: number
  readonly reason: EndReason
  readonly usage: TurnUsage
  readonly thinkClosed?: number
}

interface Heard extends Saying {
  readonly last: Finished
}

interface Concluded extends Heard {
  readonly span: Span
}

/** Without a span: nothing of it stays. */
interface Spoke extends Heard {
  readonly span?: Span
}

/** Streams one engine turn to its end. */
const stream = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  attempt: number,
  opening: ReadonlyArray<Segment>,
  reader: TurnReader
) {
  const request = requestOf(run, turn, 2 * run.sampled + attempt, attempt > 0)
  const step = `model-${turn}`
  let finished: Finished | undefined
  const committed_len = yield* run.session.context.length
  if (attempt === 0) run.budget.turns++
  run.budget.generations++
  yield* run.trace.append({
    type: "model_call_started",
    step,
    data: {
      turn,
      attempt,
      seed: request.sampling.seed,
      max_tokens: request.maxTokens,
      committed_len,
      constrained: request.grammar !== undefined,
      phase: phaseNow(run)
    }
  })
  const meter = new Meter(run, turn)
  const receive = (event: GenerationEvent): Effect.Effect<void, TraceError> => {
    if (event._tag === "Prefill") {
      run.emit(event)
      return Effect.void
    }
    if (event._tag === "End") {
      const { reason, thinkClosed, usage } = event
      finished = { attempt, reason, usage, ...(thinkClosed === undefined ? {} : { thinkClosed }) }
      return Effect.void
    }
    run.point = "generation"
    reader.push(event.text, event.tokens)
    meter.push(event.tokens.length)
    if (!run.trace.options.tokenEvents) return Effect.void
    const count = event.tokens.length
    // Pieces spell what no rule would find in any of them.
    const spelled = run.trace.options.content && run.trace.options.redact === undefined
    const data = spelled ? { count, ids: event.tokens, text: event.text } : { count }
    return run.trace.append({ type: "generation_token", step, phase: "decode", data })
  }
  yield* Stream.runForEach(run.session.context.turn(opening, request), receive)
  if (finished === undefined) {
    return yield* new EngineError({ reason: "failed", message: "the engine's turn ended without saying how" })
  }
  return finished
})

/** After the last of the text, so that whoever shows both has them in order. */
const generated = ({ emit }: RunContext, turn: number, { usage }: Finished): void =>
  emit({ _tag: "Generated", turn, tokens: usage.outputTokens, millis: usage.decodeMillis, ended: true })

const finishedEvent = (
  run: RunContext,
  turn: number,
  { attempt, reason, thinkClosed, usage }: Finished,
  raw: string
): TraceInput => {
  run.budget.outputTokens += usage.outputTokens
  run.budget.prefillTokens += usage.prefillTokens
  run.budget.engineMillis += usage.prefillMillis + usage.decodeMillis
  const data: EventData<"model_call_finished"> = {
    turn,
    attempt,
    stop_reason: reason,
    prefill_tokens: usage.prefillTokens,
    output_tokens: usage.outputTokens,
    prefill_ms: round3(usage.prefillMillis),
    decode_ms: round3(usage.decodeMillis),
    ...(thinkClosed === undefined ? {} : { think_closed: thinkClosed }),
    text: run.trace.text(raw)
  }
  return { type: "model_call_finished", step: `model-${turn}`, data }
}

/** Is there room, and a reason, to let a cut plain answer go on once? */
const mayContinue = Effect.fnUntraced(function* (run: RunContext, action: Action, first: Finished, opening: number) {
  if (
    !run.settings.continued ||
    run.session.context.endsTurns === true ||
    first.reason !== "length" ||
    action._tag !== "FinalText"
  )
    return false
  const used = (yield* run.session.context.length) + opening + first.usage.outputTokens
  return used + run.settings.phases[phaseNow(run)].outputTokens + 16 <= run.session.model.contextTokens
})

/** What waited to be shown is an answer. */
const showAnswer = (reader: TurnReader, { action, says }: Heard): void => {
  if (action._tag === "FinalText" && says === undefined) reader.release()
}

/** The speculative part: one engine turn, or two when the first was a plain answer cut by the token limit. */
const speculate = Effect.fnUntraced(function* (run: RunContext, turn: number, reader: TurnReader) {
  const opening = run.session.codec.opening(openingOptions(run))
  enterPhase(run, turn)
  run.sampled = yield* sampleTurns(run, turn, opening)
  const first = yield* stream(run, turn, 0, opening, reader)
  const action = reader.end(first.reason)
  const size = first.reason === "length" ? yield* run.session.context.measure(opening) : 0
  const goesOn = yield* mayContinue(run, action, first, size)
  const once: Heard = { ...hear(run, action, first.reason), last: first }
  if (!goesOn) showAnswer(reader, once)
  generated(run, turn, first)
  if (!goesOn) return once
  // A stop that comes with the last event finds nothing counted that is not on record.
  yield* Effect.suspend(() => run.trace.append(finishedEvent(run, turn, first, reader.raw)))
  reader.reopen()
  const last = yield* stream(run, turn, 1, [], reader)
  const whole: Heard = { ...hear(run, reader.end(last.reason), last.reason), last }
  showAnswer(reader, whole)
  generated(run, turn, last)
  return whole
})

const reasonOf = (run: RunContext, cause: Cause.Cause<EngineError | TraceError | LedgerError>) => {
  if (Cause.hasDies(cause)) return "defect"
  if (Cause.hasInterrupts(cause)) return run.stopRequest?._tag === "Limit" ? "limit" : "cancelled"
  const error = Cause.squash(cause)
  if (error instanceof LedgerError) return "ledger_error"
  return error instanceof TraceError ? "trace_error" : "engine_error"
}

const rolledBack = Effect.fnUntraced(function* (
  run: RunContext,
  turn: number,
  reader: TurnReader,
  cause: Cause.Cause<EngineError | TraceError | LedgerError>
) {
  // An engine that is gone cannot roll back and has nothing left to roll back; one that breaks does so after the record.
  const rolled = yield* Effect.exit(rollBack(run.session))
  if (reader.shown) run.emit({ _tag: "Retracted", turn, reason: "rolled_back" })
  // What was there again before the turn is no part of how it ended: said behind it, the turn would have died with its engine.
  if (!restartedIn(cause)) noteRecoveries(run)
  const committed_len = yield* run.session.context.length
  const recorded = yield* Effect.exit(
    run.trace.append({
      type: "turn_rolled_back",
      step: `model-${turn}`,
      data: { turn, reason: reasonOf(run, cause), committed_len }
    })
  )
  if (Exit.isFailure(rolled) && Cause.hasDies(rolled.cause)) return yield* Effect.die(Cause.squash(rolled.cause))
  return yield* recorded
})

const roleOf = ({ action, last, says }: Heard): Role => {
  if (action._tag === "ToolCalls") return "assistant_tool_call"
  if (action._tag === "Malformed") return "assistant_malformed"
  if (says !== undefined) return "assistant_question"
  return last.reason === "length" ? "assistant_partial" : "assistant_final"
}

const parsedEvent = (run: RunContext, turn: number, { action, says }: Heard): TraceInput => {
  const { text } = run.trace
  const reasoning = action.reasoning === undefined ? {} : { reasoning: text(action.reasoning) }
  const at = { type: "assistant_action_parsed", step: `model-${turn}`, phase: "parse" } as const
  if (action._tag === "FinalText") {
    const read = says === undefined ? "final_text" : says._tag === "HandOver" ? "hand_over" : "clarify"
    return { ...at, data: { action: read, count: 0, ...reasoning } }
  }
  if (action._tag === "ToolCalls") {
    const prose = action.textBefore === "" ? {} : { text: text(action.textBefore) }
    const asks = says === undefined ? {} : { asks: true }
    return { ...at, data: { action: "tool_calls", count: action.calls.length, ...asks, ...prose, ...reasoning } }
  }
  const { code, excerpt, ordinal, partial, position, reason } = action
  const data = {
    code,
    reason: text(reason),
    excerpt: text(excerpt),
    position,
    ...(ordinal === undefined ? {} : { ordinal })
  }
  return { ...at, data: { action: "malformed", count: partial.length, ...data, ...reasoning } }
}

/** The kept turn in transcript and trace. What follows (a call, feedback, the end of the run) is recorded in the same breath. */
const record = (run: RunContext, turn: number, reader: TurnReader, concluded: Concluded): void => {
  const { action, last, span } = concluded
  const role = roleOf(concluded)
  const calls = action._tag === "ToolCalls" ? action.calls : []
  const options = openingOptions(run)
  const entry: Entry = {
    kind: "assistant",
    turn:
      role === "assistant_tool_call"
        ? "calls"
        : (role.slice("assistant_".length) as "final" | "malformed" | "partial" | "question"),
    raw: reader.raw,
    content: action._tag === "FinalText" ? action.text : action._tag === "ToolCalls" ? action.textBefore : reader.raw,
    ...proseAfter(action),
    ...(action.reasoning === undefined ? {} : { reasoning: action.reasoning }),
    calls: calls.map(({ arguments: args, id, name }) => ({
      name,
      arguments: args,
      ...(id === undefined ? {} : { id })
    })),
    span
  }
  run.session.transcript.append(entry, options)
  run.trace.note(finishedEvent(run, turn, last, reader.raw), parsedEvent(run, turn, concluded), {
    type: "session_state_changed",
    step: `model-${turn}`,
    data: { role, span: [span.start, span.end], committed_len: span.end }
  })
  if (action._tag === "Malformed") run.trace.note(malformedAttempt(turn, action))
}

/** Text that was to be a call and is none counts as an attempt like any other: the first test stopped it. */
const malformedAttempt = (turn: number, { ordinal = 0 }: Extract<Action, { _tag: "Malformed" }>): TraceInput => ({
  type: "legality_checked",
  step: `model-${turn}`,
  phase: "validate",
  data: {
    call: `call-${turn}-${ordinal}`,
    ordinal,
    tool: "",
    schema: "fail",
    scopes: "not_evaluated",
    pre: "not_evaluated",
    cause: "malformed",
    blocked_by: ["schema"],
    class: "schema",
    stage: "parse"
  }
})

/** What a kept turn is owed: an answer to each of its calls, or feedback. It is owed whether or not the turn gets on the record. */
const owed = (turn: number, action: Action): OpenTurn | undefined => {
  if (action._tag === "FinalText") return undefined
  if (action._tag === "Malformed") {
    const answer = { ok: false, kind: "malformed_call", errors: [{ path: "", reason: action.reason }] } as const
    return { turn, records: [], feedback: { code: action.code, answer } }
  }
  const records = action.calls.map(
    (proposed): CallRecord => ({ callId: `call-${turn}-${proposed.ordinal}`, turn, proposed })
  )
  return { turn, records }
}

/** What the run does about the action. */
const follow = (run: RunContext, turn: number, { action, last, says }: Heard): State => {
  if (says?._tag === "Clarify") {
    const asks = { _tag: "NeedsInput", question: says.question } as const
    return action._tag === "ToolCalls" ? committing(turn, asks) : done(asks)
  }
  if (action._tag === "FinalText") {
    return last.reason === "length"
      ? done({ _tag: "Limit", kind: "output_tokens", partialText: action.text })
      : done({ _tag: "Completed", text: action.text })
  }
  if (action._tag === "ToolCalls") {
    for (const { callId, proposed } of run.open?.records ?? []) {
      run.emit({ _tag: "CallProposed", callId, tool: proposed.name, arguments: proposed.arguments })
    }
    return admitting(turn)
  }
  run.emit({ _tag: "Malformed", turn, code: action.code, reason: action.reason })
  return committing(turn, repairStop(run))
}

const generate = Effect.fnUntraced(function* (run: RunContext, turn: number, restore: Restore) {
  run.point = "prefill"
  const before = nowMillis(run.clock)
  const turnsBefore = run.budget.turns
  const { codec } = run.session
  const reasoningOpen = opensReasoning(codec, openingOptions(run))
  const tools = heardBy(run.session)
  const reader = new TurnReader(turn, () => codec.parser({ tools, reasoningOpen }), run.emit, showing(run))
  const concluded = yield* restore(speculate(run, turn, reader)).pipe(
    Effect.flatMap((spoken) =>
      spoken.says?._tag === "HandOver"
        ? Effect.as(rollBack(run.session), spoken as Spoke)
        : Effect.map(
            run.session.context.keep(closingOf(codec, spoken.action._tag === "ToolCalls")),
            (span): Spoke => ({ ...spoken, span })
          )
    ),
    Effect.onExit((exit) => {
      run.budget.modelMillis += nowMillis(run.clock) - before
      // What was stopped before it started leaves nothing to roll back.
      const began = run.budget.turns > turnsBefore
      if (Exit.isSuccess(exit) || !began) return Effect.void
      // A turn that died with its engine is not one that was had.
      if (restartedIn(exit.cause)) run.budget.turns = turnsBefore
      return rolledBack(run, turn, reader, exit.cause)
    })
  )
  const { span } = concluded
  if (span === undefined) {
    if (reader.shown) run.emit({ _tag: "Retracted", turn, reason: "handed_over" })
    run.trace.note(finishedEvent(run, turn, concluded.last, reader.raw), parsedEvent(run, turn, concluded))
    return yield* handOver(run, turn)
  }
  if (reader.shown && concluded.action._tag !== "FinalText") {
    run.emit({ _tag: "Retracted", turn, reason: concluded.action._tag === "ToolCalls" ? "call" : "malformed" })
  }
  run.open = owed(turn, concluded.action)
  if (concluded.action._tag === "Malformed") run.budget.rejected++
  record(run, turn, reader, { ...concluded, span })
  return follow(run, turn, concluded)
})

export const generating = (
  run: RunContext,
  turn: number
): Effect.Effect<State, EngineError | TraceError | LedgerError> =>
  Effect.uninterruptibleMask((restore) => generate(run, turn, restore))
