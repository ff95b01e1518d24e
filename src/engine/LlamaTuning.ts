/**
 * What may be changed about how a model is evaluated: attention, the cache's numbers, adapters. Options as data, what the
 * library is told for them, and what of it is on record. All of it changes numbers, so all of it is in the provenance.
 */
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import type { LlamaContextOptions } from "node-llama-cpp"
import { badRequest, EngineError } from "./EngineError.ts"
import * as GgufFile from "./GgufFile.ts"
import type { Library } from "./LlamaLibrary.ts"

/** How the cache of a context keeps its numbers: in 16, about 8.5, or about 4.5 bits. */
export type CacheType = "f16" | "q8_0" | "q4_0"

/** A LoRA adapter in a GGUF file. */
export interface Adapter {
  readonly path: string
  /** Default 1. */
  readonly scale?: number
}

export interface Tuning {
  /** Default `auto`: where the device has it. */
  readonly flashAttention?: "auto" | boolean
  /**
   * Default `f16`. The others save memory and change what the model writes; the library calls them experimental. They need
   * flash attention.
   */
  readonly cacheType?: CacheType
  /** Applied in this order to every session. */
  readonly lora?: ReadonlyArray<Adapter>
}

const types = { f16: "F16", q8_0: "Q8_0", q4_0: "Q4_0" } as const

/** Looks at the adapters' files and at what does not go together, before native code does. */
export const check = Effect.fnUntraced(function* ({
  cacheType = "f16",
  flashAttention,
  lora = []
}: Tuning): Effect.fn.Return<void, EngineError> {
  if (cacheType !== "f16" && flashAttention === false) {
    return yield* badRequest(
      `A cache in ${cacheType} needs flash attention, which is off. Switch it on, or keep the cache in f16.`
    )
  }
  for (const { path } of lora) yield* GgufFile.read(path)
})

/** What the context is made with. */
export const contextOptions = ({
  cacheType,
  flashAttention,
  lora = []
}: Tuning): Pick<
  LlamaContextOptions,
  "flashAttention" | "experimentalKvCacheKeyType" | "experimentalKvCacheValueType" | "lora"
> => ({
  ...(flashAttention === undefined ? {} : { flashAttention }),
  ...(cacheType === undefined || cacheType === "f16"
    ? {}
    : { experimentalKvCacheKeyType: types[cacheType], experimentalKvCacheValueType: types[cacheType] }),
  ...(lora.length === 0 ? {} : { lora: { adapters: lora.map(({ path, scale = 1 }) => ({ filePath: path, scale })) } })
})

/** Of a cache in fewer bits the library does not say why it cannot be. */
export const explained =
  ({ cacheType = "f16" }: Tuning, name: string, explain: (cause: unknown) => EngineError) =>
  (cause: unknown): EngineError =>
    cacheType !== "f16" && cause instanceof Error && cause.message === "Failed to create context"
      ? new EngineError({
          reason: "bad_request",
          message: `${name} cannot keep its context in ${cacheType}: its heads do not divide into blocks of 32, or this device has no flash attention for it. Keep the cache in f16.`,
          cause
        })
      : explain(cause)

/** The same for the library's estimate of what a context needs. */
export const estimateOptions = (library: Library, { cacheType = "f16" }: Tuning) => {
  const type = library.GgmlType[types[cacheType]]
  return { kvCacheKeyType: type, kvCacheValueType: type }
}

/** What goes on record: nothing where nothing was asked for. Adapters with their weight and SHA-256. */
export const buildOf = Effect.fnUntraced(function* ({
  cacheType,
  lora = []
}: Tuning): Effect.fn.Return<Readonly<Record<string, string>>, EngineError> {
  const adapters: Array<string> = []
  for (const { path, scale = 1 } of lora) {
    adapters.push(`${Path.basename(path)}=${scale} sha256:${yield* GgufFile.sha256(path)}`)
  }
  return {
    ...(cacheType === undefined || cacheType === "f16" ? {} : { cacheType }),
    ...(adapters.length === 0 ? {} : { lora: adapters.join(", ") })
  }
})
