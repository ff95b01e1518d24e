/**
 * Puts a past run's context back into a fresh session: every committed message is evaluated once, in order, and the open
 * turn comes back with its calls, answered where their outcome is certain. Re-evaluation is equivalent to the context that
 * was lost, not bit-equal to it (prefill and decode round differently).
 */
import * as Effect from "effect/Effect"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { Action, AssistantTurn } from "../engine/codecs/Codec.ts"
import { opensReasoning } from "../engine/codecs/Thinking.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { MessageCall } from "../engine/Message.ts"
import { flatten, type Segment, type Span, text } from "../engine/Prompt.ts"
import type { Answer } from "../tools/ToolCall.ts"
import type { Past, PastEntry } from "./Past.ts"
import {
  type CallRecord,
  closingOf,
  heardBy,
  nowMillis,
  type OpenTurn,
  openingOptions,
  type RunContext,
  renderOptions
} from "./RunContext.ts"
import { type Entry, proseAfter } from "./Transcript.ts"

const parse = (run: RunContext, raw: string): Action => {
  const { codec } = run.session
  const reasoningOpen = opensReasoning(codec, openingOptions(run))
  const parser = codec.parser({ tools: heardBy(run.session), reasoningOpen })
  parser.push(raw)
  return parser.end("eog").action
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
const written = (run: RunContext, raw: string, action: Action): ReadonlyArray<Segment> => {
  if (action._tag === "Malformed") return [text(raw)]
  const content = action._tag === "FinalText" ? action.text : action.textBefore
  const reasoning = action.reasoning === undefined ? {} : { reasoning: action.reasoning }
  const turn = { role: "assistant", content, ...reasoning, calls: callsOf(action) } as const
  const segments = run.session.codec.written(turn, openingOptions(run))
  return flatten(segments) === raw ? segments : [text(raw)]
}

interface Restored {
  /** What the turn was, for an assistant's. */
  readonly action?: Action
  readonly segments: ReadonlyArray<Segment>
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
  assistant_partial: "partial"
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
      return { segments: codec.user(entry.content), entry: (span) => ({ kind: "user", content: entry.content, span }) }
    case "feedback": {
      const segments = codec.answers([{ name: "", text: entry.content }])
      return { segments, entry: (span) => ({ kind: "feedback", code: entry.code, content: entry.content, span }) }
    }
    case "assistant": {
      if (entry.spoken !== undefined) return spoken(run, entry.spoken)
      const action = parse(run, entry.raw)
      const closing = closingOf(codec, action._tag === "ToolCalls")
      const segments = [...codec.opening(openingOptions(run)), ...written(run, entry.raw, action), ...closing]
      const content =
        action._tag === "FinalText" ? action.text : action._tag === "ToolCalls" ? action.textBefore : entry.raw
      const reasoning = action.reasoning === undefined ? {} : { reasoning: action.reasoning }
      const turn = turnKind[entry.role as keyof typeof turnKind] ?? "final"
      const calls = callsOf(action)
      return {
        action,
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

/** Evaluates the past messages and returns what the last turn was. Interrupted or failed, the run has no context to go on with and stops. */
const evaluateEntries = Effect.fnUntraced(function* (run: RunContext, past: Past) {
  const { codec, context, transcript } = run.session
  let last: Action | undefined
  const told = (done: number, total: number) => run.emit({ _tag: "Prefill", done, total })
  for (const group of groups(past.entries)) {
    if (!("kind" in group)) {
      const answers = codec.answers(
        group.map(({ content, id, name }) => ({ name, text: content, ...(id === undefined ? {} : { id }) }))
      )
      const span = yield* context.commit(answers, told)
      for (const { callId, content, name } of group) transcript.append({ kind: "tool", callId, name, content, span })
      continue
    }
    const { action, entry, segments } = restored(run, group)
    last = action ?? last
    transcript.append(entry(yield* context.commit(segments, told)))
    if (group.kind === "system") run.session.opened = true
    if (group.kind === "user") run.userPending = false
  }
  return last
})

/** The turn that was open, with every call in order. `answer` is the user's, for a call that asked. */
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
  const records = action.calls.map((proposed): CallRecord => {
    const callId = `call-${turn}-${proposed.ordinal}`
    const asks = answer !== undefined && run.session.registry.get(proposed.name)?.contract.asksUser === true
    const known = asks ? ({ ok: true, result: answer } as const) : past.answers.get(callId)
    return known === undefined ? { callId, turn, proposed } : { callId, turn, proposed, answer: known }
  })
  return { turn, records }
}

/** Brings `run` to where `past` was: its context, then its open turn. */
export const restore = Effect.fnUntraced(function* (
  run: RunContext,
  past: Past,
  answer: string | undefined
): Effect.fn.Return<void, EngineError | TraceError> {
  const start = yield* run.session.context.length
  const before = nowMillis(run.clock)
  const last = yield* evaluateEntries(run, past)
  run.budget.modelMillis += nowMillis(run.clock) - before
  const end = yield* run.session.context.length
  run.open = reopen(run, past, last, answer)
  run.budget.turns = past.nextTurn
  if (past.conversation) run.userPending = false
  yield* run.trace.append(
    {
      type: "run_resumed",
      step: "run",
      data: {
        from_run: past.fromRunId,
        root_run: past.rootRunId,
        from_seq: past.fromSeq,
        next_turn: past.nextTurn,
        calls: (run.open?.records ?? []).map((record) => ({
          call: record.callId,
          ordinal: record.proposed.ordinal,
          answered: record.answer !== undefined
        }))
      }
    },
    {
      type: "session_state_changed",
      step: "run",
      data: { role: "history", span: [start, end], committed_len: end }
    }
  )
})
