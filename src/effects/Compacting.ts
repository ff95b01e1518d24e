/**
 * Makes room in a full context, at a boundary: the oldest exchanges leave it, each whole (a task up to the next, replies to
 * questions included), so that no call is without its answer. System text and tools are not touched, and neither is the last
 * exchange. What stays is evaluated again behind them as it was, after a marker that says how much is missing. Nothing is
 * summed up.
 */
import * as Effect from "effect/Effect"
import type { TraceInput } from "../actors/TraceEvent.ts"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { Span } from "../engine/Prompt.ts"
import { evaluateEntries, pastOf } from "./Restoring.ts"
import { nowMillis, type RunContext } from "./RunContext.ts"
import type { Entry } from "./Transcript.ts"

/** What there was no room for: a turn, or a message that is to be evaluated before it; and the tokens that takes. */
export interface Wanted {
  readonly for: "turn" | "message"
  readonly tokens: number
}

const markerText = (removed: number): string =>
  removed === 1
    ? "[One earlier exchange of this conversation was removed to make room. What was said in it is no longer shown.]"
    : `[${removed} earlier exchanges of this conversation were removed to make room. What was said in them is no longer shown.]`

/** Where the exchanges of a conversation begin. What stands before the first task goes with it. */
const beginnings = (entries: ReadonlyArray<Entry>, from: number): ReadonlyArray<number> => {
  const tasks = entries.flatMap((entry, at) =>
    at >= from && entry.kind === "user" && entry.reply === undefined ? [at] : []
  )
  return tasks.length === 0 ? [] : [from, ...tasks.slice(1)]
}

/** Tokens from an entry on. Answers that wait have none yet. */
const tokensFrom = (entries: ReadonlyArray<Entry>, at: number): number => {
  const first = entries.slice(at).find(({ span }) => span !== undefined)?.span
  const last = entries.findLast(({ span }) => span !== undefined)?.span
  return first === undefined || last === undefined ? 0 : Math.max(0, last.end - first.start)
}

interface Choice {
  /** Entries that stay in front: system and tools. */
  readonly prefix: number
  readonly prefixTokens: number
  /** Entries that go. */
  readonly entries: number
  readonly exchanges: number
  /** Exchanges that are gone then, those of before included. */
  readonly removed: number
}

const removedBefore = (entries: ReadonlyArray<Entry>): number =>
  entries.reduce((sum, entry) => (entry.kind === "marker" ? entry.removed : sum), 0)

/** How much has to go; nothing if that would not help. */
const choose = Effect.fnUntraced(function* (
  run: RunContext,
  wanted: Wanted
): Effect.fn.Return<Choice | undefined, EngineError> {
  const { codec, context, model, transcript } = run.session
  const { entries } = transcript
  const first = entries[0]
  if (first?.kind !== "system") return undefined
  const prefixTokens = first.span.end
  const starts = beginnings(entries, 1)
  // A task that waits is the last exchange itself, unless the one before it still waits for answers.
  const waits = entries.at(-1)?.span === undefined
  const droppable = run.userPending && !waits ? starts.length : starts.length - 1
  const room = model.contextTokens - prefixTokens
  for (let exchanges = 1; exchanges <= droppable; exchanges++) {
    const end = starts[exchanges] ?? entries.length
    const kept = tokensFrom(entries, end)
    const enough = kept <= room * run.settings.context.keep || exchanges === droppable
    if (!enough || kept + wanted.tokens > room) continue
    const removed = removedBefore(entries) + exchanges
    // The marker takes room as well, and may take more than a short exchange leaves.
    const marker = yield* context.measure(codec.user(markerText(removed)))
    if (marker + kept + wanted.tokens <= room) return { prefix: 1, prefixTokens, entries: end - 1, exchanges, removed }
  }
  return undefined
})

/** Evaluates what was set aside, in order. Interrupted, what is not back yet stays aside, for whoever uses the session next. */
const putBack = Effect.fnUntraced(function* (
  run: RunContext,
  took: (span: Span) => void
): Effect.fn.Return<void, EngineError> {
  const { transcript } = run.session
  const waiting = transcript.aside.filter(({ span, kind }) => span === undefined && kind !== "marker")
  const evaluated = transcript.aside.slice(0, transcript.aside.length - waiting.length)
  const put = evaluated.map((entry) => pastOf(entry, transcript.optionsOf(entry)))
  yield* evaluateEntries(run, put, (count, span) => {
    transcript.takeAside(count)
    took(span)
  })
  transcript.takeAside(waiting.length)
  for (const entry of waiting) transcript.append(entry)
})

const spanOf = ({ end, start }: Span): readonly [number, number] => [start, end]

const history = (start: number, end: number): TraceInput => ({
  type: "session_state_changed",
  step: "run",
  data: { role: "history", span: [start, end], committed_len: end }
})

/** What a compaction that was stopped in its middle had not put back. */
export const putBackRest = (run: RunContext): Effect.Effect<void, EngineError | TraceError> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const start = yield* run.session.context.length
      const before = nowMillis(run.clock)
      let end = start
      const content = run.session.transcript.aside.map((entry) => entry.content).join("\n\n")
      yield* run.trace.flush
      const back = putBack(run, (span) => {
        end = span.end
      })
      const exit = yield* Effect.exit(restore(back))
      run.budget.modelMillis += nowMillis(run.clock) - before
      run.budget.prefillTokens += end - start
      run.trace.note(
        { type: "message_committed", step: "run", data: { role: "history", content: run.trace.text(content) } },
        history(start, end)
      )
      return yield* exit
    })
  )

/** Makes room for what is wanted. `false`: there is nothing that may go and would help, and nothing has changed. */
export const compact = (run: RunContext, wanted: Wanted): Effect.Effect<boolean, EngineError | TraceError> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const choice = run.settings.context.onFull === "compact" ? yield* choose(run, wanted) : undefined
      if (choice === undefined) return false
      const { session, trace } = run
      const { context, transcript } = session
      const { prefix, prefixTokens, removed } = choice
      const before = yield* context.length
      const droppedTokens = before - tokensFrom(transcript.entries, prefix + choice.entries)
      yield* trace.flush
      const began = nowMillis(run.clock)
      yield* context.rewind(prefixTokens)
      transcript.compact(prefix, choice.entries, {
        kind: "marker",
        removed,
        content: markerText(removed),
        span: undefined
      })
      session.frameSizes.clear()
      const kept: Array<Span> = []
      const exit = yield* Effect.exit(restore(putBack(run, (span) => void kept.push(span))))
      const end = kept.at(-1)?.end ?? prefixTokens
      run.budget.modelMillis += nowMillis(run.clock) - began
      run.budget.prefillTokens += end - prefixTokens
      const data = {
        for: wanted.for,
        needed: wanted.tokens,
        before,
        prefix: prefixTokens,
        dropped: [prefixTokens, droppedTokens] as const,
        entries: choice.entries,
        exchanges: choice.exchanges,
        removed,
        kept: kept.map(spanOf),
        left: transcript.aside.length,
        marker: trace.text(markerText(removed))
      }
      trace.note({ type: "context_compacted", step: "run", data }, history(prefixTokens, end))
      run.emit({ _tag: "Compacted", exchanges: choice.exchanges, removed, before, after: end })
      yield* exit
      return true
    })
  )
