/** What a local model is asked for besides the prompt: for all requests of a layer, or for those of one region. */
import * as Context from "effect/Context"
import type { Sampling } from "../../engine/Generation.ts"
import type { ValueBounds } from "../../engine/WholeTurn.ts"

export interface AiSettings {
  /** Tokens of a response, reasoning included; fewer where the context has no room for them. Default 1024. */
  readonly maxTokens?: number
  /** Default 0: the same prompt gives the same text. */
  readonly temperature?: number
  readonly topK?: number
  readonly topP?: number
  /** Default: drawn from `Random` for each request. */
  readonly seed?: number
  /** Asked of families that can think. Absent: what the family does by itself. */
  readonly thinking?: boolean
  /** Tokens that reasoning may take. Default: as many as the response. */
  readonly thinkTokens?: number
  /** Limits for texts and lists of an object whose schema sets none; without, a small model may never end a text. */
  readonly objectBounds?: ValueBounds
  /** Calls and objects are held to their schema by a grammar. Default true. */
  readonly constrained?: boolean
}

/** Settings of a region; they go before those of the layer. */
export const CurrentSettings = Context.Reference<AiSettings>("effect-writ/effects/ai/CurrentSettings", {
  defaultValue: () => ({})
})

const sampling = { temperature: 0, topK: 40, topP: 0.95 }

export const samplingOf = (settings: AiSettings, seed: number): Sampling => ({
  temperature: settings.temperature ?? sampling.temperature,
  topK: settings.topK ?? sampling.topK,
  topP: settings.topP ?? sampling.topP,
  seed
})

export const defaultMaxTokens = 1024
