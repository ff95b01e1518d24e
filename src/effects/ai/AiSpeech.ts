/**
 * One turn of a request: lease a session, bring it up to date, generate, read, settle. A turn that can stand in the
 * conversation is kept; anything else, an interruption included, leaves the session at the boundary before the turn.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Action, Codec, Visible } from "../../engine/codecs/Codec.ts"
import { EngineError } from "../../engine/EngineError.ts"
import type { EndReason, GenerationEvent, TurnRequest, TurnUsage } from "../../engine/Generation.ts"
import type { Segment } from "../../engine/Prompt.ts"
import { closingOf } from "../RunContext.ts"
import { type AiPlan, beginningOf, missing, thinkingOf } from "./AiPlan.ts"
import { type AiSettings, defaultMaxTokens, samplingOf } from "./AiSettings.ts"
import type { Warm, WarmSessions } from "./WarmSessions.ts"

/** Tokens of one request, as far as an engine counts them. */
export interface AiUsage {
  readonly inputTokens: number
  /** Of these, what the session held already. */
  readonly cachedTokens: number
  readonly outputTokens: number
  /** Tokens up to the end of the reasoning; 0 where there was none. */
  readonly reasoningTokens: number
}

export interface Ended {
  readonly _tag: "Ended"
  readonly action: Action
  readonly reason: EndReason
  readonly usage: AiUsage
  readonly turn: TurnUsage
  /** Makes the turn part of the session, which then holds `key` as well. */
  readonly keep: (key: string) => Effect.Effect<void, EngineError>
}

export type Speech = Visible | Ended

/** A whole turn as one value: nothing in it is a call, and nothing in it is a mark. */
class ValueReader {
  #text = ""
  readonly push = (text: string): ReadonlyArray<Visible> => {
    this.#text += text
    return [{ _tag: "Text", text }]
  }
  readonly end = (): { readonly visible: ReadonlyArray<Visible>; readonly action: Action } => ({
    visible: [],
    action: { _tag: "FinalText", text: this.#text }
  })
}

/** Up to date and ready for the turn. Interrupted or failed, the session is where it was. */
const prepare = Effect.fnUntraced(function* (warm: Warm, plan: AiPlan): Effect.fn.Return<void, EngineError> {
  const { codec, context } = warm.session
  const segments = missing(codec, plan, warm.keys.length)
  if (segments.length === 0) {
    warm.keys = plan.keys
    return
  }
  yield* Effect.uninterruptibleMask((restore) =>
    restore(context.commit(segments)).pipe(
      Effect.tap((span) =>
        Effect.sync(() => {
          warm.keys = plan.keys
          warm.length = span.end
        })
      )
    )
  )
})

/** Tokens the turn may take: what is asked for, or what is left. */
const roomFor = Effect.fnUntraced(function* (
  warm: Warm,
  opening: ReadonlyArray<Segment>,
  wanted: number
): Effect.fn.Return<number, EngineError> {
  const { codec, context, model } = warm.session
  const closing = Math.max(
    yield* context.measure(closingOf(codec, false)),
    yield* context.measure(closingOf(codec, true))
  )
  const left = model.contextTokens - warm.length - (yield* context.measure(opening)) - closing
  if (left >= 1) return Math.min(wanted, left)
  return yield* new EngineError({
    reason: "context_overflow",
    message: `The conversation leaves no room for an answer in ${model.contextTokens} tokens. Shorten it.`
  })
})

export const speak = (
  sessions: WarmSessions,
  plan: AiPlan,
  settings: AiSettings,
  seed: number
): Stream.Stream<Speech, EngineError> =>
  Stream.unwrap(
    Effect.gen(function* (): Effect.fn.Return<Stream.Stream<Speech, EngineError>, EngineError, Scope.Scope> {
      const warm = yield* sessions.lease(plan.keys)
      const { codec, context, model } = warm.session
      const cached = warm.length
      yield* prepare(warm, plan)
      const { grammar, opening, reasoningOpen } = beginningOf(codec, plan, settings, model.engine === "llama")
      const request: TurnRequest = {
        maxTokens: yield* roomFor(warm, opening, Math.max(1, settings.maxTokens ?? defaultMaxTokens)),
        sampling: samplingOf(settings, seed),
        // A value may spell what ends a turn elsewhere; its grammar knows where it ends.
        stops: plan.object !== undefined && grammar !== undefined ? [] : codec.stops,
        ends: codec.ends,
        ...(grammar === undefined ? {} : { grammar }),
        ...thinkingOf(codec, plan, settings, reasoningOpen)
      }
      const input = warm.length + (yield* context.measure(opening))
      const reader =
        plan.object !== undefined && grammar !== undefined
          ? new ValueReader()
          : codec.parser({ tools: plan.object === undefined ? plan.tools.heard : [], reasoningOpen })
      const keep = (action: Action) => (key: string) => keepTurn(warm, codec, action, key)
      return context.turn(opening, request).pipe(
        Stream.mapAccumArray(
          () => new Hearing(reader, { input, cached }, keep),
          (hearing, events) => [hearing, events.flatMap(hearing.take)] as const
        )
      )
    })
  )

interface Reader {
  readonly push: (text: string, tokens?: ReadonlyArray<number>) => ReadonlyArray<Visible>
  readonly end: (reason: EndReason) => { readonly visible: ReadonlyArray<Visible>; readonly action: Action }
}

/** What an engine tells of a turn, as what was said in it. */
class Hearing {
  readonly #reader: Reader
  readonly #counts: { readonly input: number; readonly cached: number }
  readonly #keep: (action: Action) => Ended["keep"]
  #tokens = 0
  #reasoning = 0

  constructor(
    reader: Reader,
    counts: { readonly input: number; readonly cached: number },
    keep: (action: Action) => Ended["keep"]
  ) {
    this.#reader = reader
    this.#counts = counts
    this.#keep = keep
  }

  readonly take = (event: GenerationEvent): ReadonlyArray<Speech> => {
    if (event._tag === "Prefill") return []
    if (event._tag === "Piece") {
      const seen = this.#reader.push(event.text, event.tokens)
      this.#tokens += event.tokens.length
      if (seen.some(({ _tag }) => _tag === "Reasoning")) this.#reasoning = this.#tokens
      return seen
    }
    const { action, visible } = this.#reader.end(event.reason)
    const usage = {
      inputTokens: this.#counts.input,
      cachedTokens: this.#counts.cached,
      outputTokens: event.usage.outputTokens,
      reasoningTokens: this.#reasoning
    }
    return [
      ...visible,
      { _tag: "Ended", action, reason: event.reason, usage, turn: event.usage, keep: this.#keep(action) }
    ]
  }
}

const keepTurn = (warm: Warm, codec: Codec, action: Action, key: string): Effect.Effect<void, EngineError> =>
  Effect.uninterruptible(
    Effect.map(warm.session.context.keep(closingOf(codec, action._tag === "ToolCalls")), (span) => {
      warm.keys = [...warm.keys, key]
      warm.length = span.end
    })
  )
