/** Engines over the four kinds of models a cache can be cut in differently, and short ways to talk to their sessions. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { EngineError } from "../../src/engine/EngineError.ts"
import type { GenerationEvent, TurnRequest } from "../../src/engine/Generation.ts"
import { makeControl } from "../../src/engine/LlamaControl.ts"
import { type LlamaEngine, type LlamaOptions, load } from "../../src/engine/LlamaModel.ts"
import type { LlamaSession } from "../../src/engine/LlamaSession.ts"
import type { ModelSession } from "../../src/engine/Model.ts"
import { control, text } from "../../src/engine/Prompt.ts"
import { type GgufRecipe, makeGguf } from "./gguf.ts"

export const shipped = Path.resolve(import.meta.dirname, "../../models/tiny-tool-agent/tiny-tool-agent-q8_0.gguf")

const recipes: Readonly<Record<string, GgufRecipe>> = {
  "random weights": { muteEog: true },
  "a model that must checkpoint": { arch: "qwen35", muteEog: true },
  "a sliding window": { arch: "gemma3", muteEog: true }
}

/** Name and path of each: the shipped model, plain attention, recurrent layers, a sliding window. Files go to `directory`. */
export const kinds = (directory: string): ReadonlyArray<readonly [name: string, path: string]> => [
  ["the shipped model", shipped],
  ...Object.entries(recipes).map(([name, recipe]) => {
    const path = Path.join(directory, `${recipe.arch ?? "llama"}.gguf`)
    if (!Fs.existsSync(path)) Fs.writeFileSync(path, makeGguf(recipe))
    return [name, path] as const
  })
]

/** In this thread, with the whole cache compared to the log after each operation. */
export const open = (options: LlamaOptions) => load({ threads: 1, gpu: false, verify: true, ...options }, makeControl())

export const system = [
  control("<|im_start|>system\n"),
  text("You are a small local assistant."),
  control("<|im_end|>\n")
]
export const user = (value: string) => [control("<|im_start|>user\n"), text(value), control("<|im_end|>\n")]
export const opening = [control("<|im_start|>assistant\n")]
export const closing = [control("<|im_end|>\n")]

export const request = (more: Partial<TurnRequest> = {}): TurnRequest => ({
  maxTokens: 16,
  stops: [],
  sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 1 },
  ...more
})
export const seeded = (seed: number, more: Partial<TurnRequest> = {}): TurnRequest =>
  request({ sampling: { temperature: 1.2, topK: 40, topP: 0.95, seed }, ...more })

export const tokensOf = (events: ReadonlyArray<GenerationEvent>): ReadonlyArray<number> =>
  events.flatMap((event) => (event._tag === "Piece" ? event.tokens : []))

/** The tokens of one turn, left open. */
export const speak = (session: ModelSession, asked: TurnRequest = request()) =>
  Effect.map(Stream.runCollect(session.turn(opening, asked)), tokensOf)

/** One turn, kept. */
export const say = (session: ModelSession, asked: TurnRequest = request()) =>
  Effect.tap(speak(session, asked), () => session.keep(closing))

/** All tokens of a session. */
export const logOf = (session: LlamaSession) => Effect.map(session.snapshot, ({ kv, pending }) => [...kv, ...pending])

/** What a fresh session says after the same commits. */
export const freshly = (
  engine: LlamaEngine,
  build: (session: LlamaSession) => Effect.Effect<unknown, EngineError>,
  asked: TurnRequest = request()
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const session = yield* engine.session
      yield* build(session)
      return yield* speak(session, asked)
    })
  )
