/**
 * Puts a past run's context back into a fresh session: every committed message is evaluated once, in order, and the open
 * turn comes back with its calls, answered where their outcome is certain. Re-evaluation is equivalent to the context that
 * was lost, not bit-equal to it (prefill and decode round differently).
 */
import * as Effect from "effect/Effect"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { Action, AssistantTurn, RenderOptions } from "../engine/codecs/Codec.ts"
import { opensReasoning } from "../engine/codecs/Thinking.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { MessageCall } from "../engine/Message.ts"
import { flatten, type Segment, type Span, text } from "../engine/Prompt.ts"
import type { Answer } from "../tools/ToolCall.ts"
import { spentRecorded } from "./Beginning.ts"
import { putAgain } from "./EngineLife.ts"
import { hear } from "./Hearing.ts"
import { bringState } from "./KeptState.ts"
import type { Past, PastEntry, ToldAnswer } from "./Past.ts"
import {
  type CallRecord,
  closingOf,
  heardBy,
  nowMillis,
  type OpenTurn,
  openingOptions,
  type RunContext,
  renderOptions,
  type Session
} from "./RunContext.ts"
import { type Entry, proseAfter } from "./Transcript.ts"

const parse = (run: RunContext, raw: string, options: RenderOptions): Action => {
  const { codec } = run.session
  const reasoningOpen = opensReasoning(codec, options)
  const parser = codec.parser({ tools: heardBy(run.session), reasoningOpen })
  parser.push(raw)
  return hear(run, parser.end("eog").action, "eog").action
}

const callsOf = (action: Action): ReadonlyArray<MessageCall> =>
  action._tag === "ToolCalls"
    ? action.calls.map(({ arguments: args, id, name }) => ({
        name,
        arguments: args,
        ...(id === undefined ? {} : { id })
      }))
    : []

/** What the model wrote, as segments: its own markers are control again where the codec would have written the same text. */
const written = (run: RunContext, raw: string, action: Action, options: RenderOptions): ReadonlyArray<Segment> => {
  if (action._tag === "Malformed") return [text(raw)]
  const content = action._tag === "FinalText" ? action.text : action.textBefore
  const reasoning = action.reasoning === undefined ? {} : { reasoning: action.reasoning }
  const turn = { role: "assistant", content, ...reasoning, calls: callsOf(action) } as const
  const segments = run.session.codec.written(turn, options)
  return flatten(segments) === raw ? segments : [text(raw)]
}

interface Restored {
  /** What the turn was, for an assistant's. */
  readonly action?: Action
  readonly segments: ReadonlyArray<Segment>
  /** Those of its opening. */
  readonly options?: RenderOptions
  readonly entry: (span: Span) => Entry
}

/** A turn of which only the parts are known. */
const spoken = (run: RunContext, turn: AssistantTurn): Restored => {
  const { codec } = run.session
  const options = openingOptions(run)
  const { calls = [], content, reasoning } = turn
  const segments = codec.written(turn, options)
  const said = reasoning === undefined ? {} : { reasoning }
  const action: Action =
    calls.length === 0
      ? { _tag: "FinalText", text: content, ...said }
      : {
          _tag: "ToolCalls",
          calls: calls.map((call, ordinal) => ({ ordinal, ...call })),
          textBefore: content,
          textAfter: "",
          ...said
        }
  return {
    action,
    options,
    segments: [...codec.opening(options), ...segments, ...closingOf(codec, calls.length > 0)],
    entry: (span) => ({
      kind: "assistant",
      turn: calls.length === 0 ? "final" : "calls",
      raw: flatten(segments),
      content,
      ...said,
      calls,
      span
    })
  }
}

const turnKind = {
  assistant_tool_call: "calls",
  assistant_malformed: "malformed",
  assistant_partial: "partial",
  assistant_question: "question"
} as const

const restored = (run: RunContext, entry: Exclude<PastEntry, { readonly kind: "tool" }>): Restored => {
  const { codec } = run.session
  switch (entry.kind) {
    case "system": {
      const implicit = entry.content === ""
      const segments = codec.system(implicit ? undefined : entry.content, renderOptions(run))
      return { segments, entry: (span) => ({ kind: "system", content: entry.content, implicit, span }) }
    }
    case "user":
      return { segments: codec.user(entry.content), entry: (span) => ({ ...entry, span }) }
    case "marker": {
      const { content, removed } = entry
      return { segments: codec.user(content), entry: (span) => ({ kind: "marker", removed, content, span }) }
    }
    case "feedback": {
      const segments = codec.answers([{ name: "", text: entry.content }])
      return { segments, entry: (span) => ({ kind: "feedback", code: entry.code, content: entry.content, span }) }
    }
    case "assistant": {
      if (entry.spoken !== undefined) return spoken(run, entry.spoken)
      const options = entry.options ?? openingOptions(run)
      const action = parse(run, entry.raw, options)
      const closing = closingOf(codec, action._tag === "ToolCalls")
      const segments = [...codec.opening(options), ...written(run, entry.raw, action, options), ...closing]
      const content =
        action._tag === "FinalText" ? action.text : action._tag === "ToolCalls" ? action.textBefore : entry.raw
      const reasoning = action.reasoning === undefined ? {} : { reasoning: action.reasoning }
      const turn = turnKind[entry.role as keyof typeof turnKind] ?? "final"
      const calls = callsOf(action)
      return {
        action,
        options,
        segments,
        entry: (span) => ({
          kind: "assistant",
          turn,
          raw: entry.raw,
          content,
          ...proseAfter(action),
          ...reasoning,
          calls,
          span
        })
      }
    }
  }
}

type ToolEntry = Extract<PastEntry, { readonly kind: "tool" }>

/** Answers of one turn are one message; everything else stands alone. */
const groups = (
  entries: ReadonlyArray<PastEntry>
): ReadonlyArray<ReadonlyArray<ToolEntry> | Exclude<PastEntry, ToolEntry>> => {
  const out: Array<Array<ToolEntry> | Exclude<PastEntry, ToolEntry>> = []
  for (const entry of entries) {
    const last = out.at(-1)
    if (entry.kind !== "tool") out.push(entry)
    else if (Array.isArray(last)) last.push(entry)
    else out.push([entry])
  }
  return out
}

/** The model's own id of each call of a turn: answers of some families name it. */
const idsOf = (last: Action | undefined): ReadonlyArray<string | undefined> =>
  last?._tag === "ToolCalls" ? last.calls.map(({ id }) => id) : []

const answersOf = (
  run: RunContext,
  group: ReadonlyArray<ToolEntry>,
  ids: ReadonlyArray<string | undefined>
): ReadonlyArray<Segment> =>
  run.session.codec.answers(
    group.map(({ content, id: known, name }, at) => {
      const id = known ?? ids[at]
      return { name, text: content, ...(id === undefined ? {} : { id }) }
    })
  )

/**
 * Evaluates messages, puts each into the transcript as it enters the context, and returns what the last turn was. `took` is
 * told how many entries that were, and where. Interrupted, it stops between two of them. What is `there` in the context
 * already, one span for each message, is not evaluated.
 */
export const evaluateEntries = Effect.fnUntraced(function* (
  run: RunContext,
  entries: ReadonlyArray<PastEntry>,
  took: (count: number, span: Span) => void,
  there: ReadonlyArray<Span> = []
): Effect.fn.Return<Action | undefined, EngineError> {
  const { context, transcript } = run.session
  const told = (done: number, total: number) => run.emit({ _tag: "Prefill", done, total })
  const commit = (segments: ReadonlyArray<Segment>, put: (span: Span) => void) =>
    Effect.uninterruptibleMask((interruptible) => {
      const known = there[done++]
      const committing = putAgain(context.commit(segments, told, run.settings.priority))
      return Effect.map(interruptible(known === undefined ? committing : Effect.succeed(known)), put)
    })
  let done = 0
  let last: Action | undefined
  for (const group of groups(entries)) {
    if (!("kind" in group)) {
      yield* commit(answersOf(run, group, idsOf(last)), (span) => {
        took(group.length, span)
        for (const { callId, content, name } of group) transcript.append({ kind: "tool", callId, name, content, span })
      })
      continue
    }
    const { action, entry, options, segments } = restored(run, group)
    last = action ?? last
    yield* commit(segments, (span) => {
      took(1, span)
      transcript.append(entry(span), options)
      if (group.kind === "system") run.session.opened = true
      if (group.kind === "user" && run.past !== undefined) run.userPending = false
    })
  }
  return last
})

const roles = {
  final: "assistant_final",
  calls: "assistant_tool_call",
  malformed: "assistant_malformed",
  partial: "assistant_partial",
  question: "assistant_question"
} as const

/** A message of this session, as one to be evaluated again. */
export const pastOf = (entry: Entry, options?: RenderOptions): PastEntry => {
  switch (entry.kind) {
    case "assistant":
      return {
        kind: "assistant",
        role: roles[entry.turn],
        raw: entry.raw,
        turn: 0,
        ...(options === undefined ? {} : { options })
      }
    case "tool":
      return { kind: "tool", callId: entry.callId, name: entry.name, content: entry.content }
    case "feedback":
      return { kind: "feedback", code: entry.code, content: entry.content }
    case "marker":
      return { kind: "marker", removed: entry.removed, content: entry.content }
    case "system":
      return { kind: "system", content: entry.content }
    case "user":
      return { kind: "user", content: entry.content, ...(entry.reply === true ? { reply: true } : {}) }
  }
}

/** Beside a question that was said, no call runs. */
const dropped: Answer = {
  ok: false,
  kind: "not_executed",
  errors: [{ path: "", reason: "skipped: the turn asked the user instead; nothing was executed" }]
}

/** One question at a time is answered: the answer is to the first that was open. */
const askedBeside: Answer = {
  ok: false,
  kind: "not_executed",
  errors: [{ path: "", reason: "skipped: another question of this turn was asked; ask again if this is still open" }]
}

/** The turn that was open, with every call in order. `answer` is the user's, for the call that asked. */
const reopen = (
  run: RunContext,
  past: Past,
  action: Action | undefined,
  answer: string | undefined
): OpenTurn | undefined => {
  if (past.openTurn === undefined || action === undefined || action._tag === "FinalText") return undefined
  const { turn } = past.openTurn
  if (action._tag === "Malformed") {
    const told: Answer = { ok: false, kind: "malformed_call", errors: [{ path: "", reason: action.reason }] }
    return { turn, records: [], feedback: { code: action.code, answer: told } }
  }
  let given: Answer | undefined = answer === undefined ? undefined : { ok: true, result: answer }
  const records = action.calls.map((proposed): CallRecord => {
    const callId = `call-${turn}-${proposed.ordinal}`
    const asks = answer !== undefined && run.session.registry.get(proposed.name)?.contract.asksUser === true
    let known = past.questioned ? dropped : past.answers.get(callId)
    if (known === undefined && asks) {
      known = given ?? askedBeside
      given = undefined
    }
    return known === undefined ? { callId, turn, proposed } : { callId, turn, proposed, answer: known }
  })
  return { turn, records }
}

/** Leaves answers to be put before the model by the session's next run, behind all that it holds. */
const owe = (session: Session, told: ReadonlyArray<ToldAnswer>): void => {
  const answers = told.map(({ callId, content, id, name }) => {
    session.transcript.append({ kind: "tool", callId, name, content, span: undefined })
    return { name, text: content, truncated: false, ...(id === undefined ? {} : { id }) }
  })
  session.owed = { turn: { turn: 0, records: [] }, answers }
}

/** Brings `run` to where `past` was: its context, then its open turn. */
export const restore = Effect.fnUntraced(function* (
  run: RunContext,
  past: Past,
  answer: string | undefined
): Effect.fn.Return<void, EngineError | TraceError> {
  const start = yield* run.session.context.length
  const before = nowMillis(run.clock)
  const spans: Array<readonly [number, number]> = []
  const messages = groups(past.entries).length
  const brought = yield* bringState(run.session.context, run.settings.state, past.fromRunId, messages)
  const there = brought._tag === "Loaded" ? brought.spans : []
  const last = yield* evaluateEntries(run, past.entries, (_, span) => void spans.push([span.start, span.end]), there)
  run.budget.modelMillis += nowMillis(run.clock) - before
  const end = yield* run.session.context.length
  run.open = reopen(run, past, last, answer)
  if (past.questioned) run.reply = answer
  run.budget.turns = past.nextTurn
  if (past.conversation) run.userPending = past.asks === true
  if (past.told !== undefined) owe(run.session, past.told)
  yield* run.trace.append(
    {
      type: "run_resumed",
      step: "run",
      data: {
        from_run: past.fromRunId,
        root_run: past.rootRunId,
        from_seq: past.fromSeq,
        next_turn: past.nextTurn,
        ...(answer === undefined ? {} : { spent: spentRecorded(run.spent) }),
        calls: (run.open?.records ?? []).map((record) => ({
          call: record.callId,
          ordinal: record.proposed.ordinal,
          answered: record.answer !== undefined
        })),
        spans,
        ...(brought._tag === "None" ? {} : { kept_state: brought._tag === "Loaded" ? "loaded" : "refused" })
      }
    },
    {
      type: "session_state_changed",
      step: "run",
      data: { role: "history", span: [start, end], committed_len: end }
    }
  )
})
