/**
 * Any engine of Writ as a judge: one question, one reply, greedy, in a session of its own. Knows nothing of grades.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Codec } from "../../engine/codecs/Codec.ts"
import { EngineError } from "../../engine/EngineError.ts"
import type { GenerationEvent } from "../../engine/Generation.ts"
import type { Model } from "../../engine/Model.ts"

export interface JudgeReply {
  /** The answer; empty where the turn is none. */
  readonly text: string
  /** What the engine wrote. */
  readonly raw: string
  readonly tokens: { readonly input: number; readonly output: number }
  readonly millis: number
}

export interface JudgeEngine {
  /** Who judges, for the transcript. */
  readonly model: string
  readonly ask: (system: string, question: string) => Effect.Effect<JudgeReply, EngineError>
}

export interface JudgeOptions {
  readonly model: Model["Service"]
  readonly codec: Codec
  /** Tokens of a reply, 1024 unless given. */
  readonly maxTokens?: number
  readonly seed?: number
}

/** One question at a time: engines have few sessions, and a script has one order. */
export const fromModel = ({ codec, maxTokens = 1024, model, seed = 0 }: JudgeOptions): JudgeEngine => {
  const one = Semaphore.makeUnsafe(1)
  const options = { tools: [], thinking: false }
  const request = { maxTokens, sampling: { temperature: 0, topK: 0, topP: 1, seed }, stops: codec.stops, live: false }
  const ask = Effect.fnUntraced(function* (system: string, question: string) {
    const session = yield* model.session
    yield* session.commit([...codec.system(system, options), ...codec.user(question)])
    const parser = codec.parser({ tools: [] })
    let raw = ""
    let end: Extract<GenerationEvent, { readonly _tag: "End" }> | undefined
    yield* Stream.runForEach(session.turn(codec.opening(options), request), (event) =>
      Effect.sync(() => {
        if (event._tag === "Piece") {
          raw += event.text
          parser.push(event.text, event.tokens)
        }
        if (event._tag === "End") end = event
      })
    )
    if (end === undefined)
      return yield* new EngineError({ reason: "failed", message: "the turn ended without saying how" })
    const { action } = parser.end(end.reason)
    const { decodeMillis, outputTokens, prefillMillis, prefillTokens } = end.usage
    return {
      text: action._tag === "FinalText" ? action.text : "",
      raw,
      tokens: { input: prefillTokens, output: outputTokens },
      millis: Math.round(prefillMillis + decodeMillis)
    }
  })
  return {
    model: model.identity.name,
    ask: (system, question) => one.withPermits(1)(Effect.scoped(ask(system, question)))
  }
}
