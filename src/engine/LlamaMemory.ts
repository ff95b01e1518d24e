/**
 * What a context takes of the main memory, before it is allocated: by the library's own estimate, against what is there and
 * what may be used. Says what would fit instead. Allocates nothing.
 */
import * as Effect from "effect/Effect"
import type { LlamaModel as NativeModel } from "node-llama-cpp"
import { EngineError } from "./EngineError.ts"
import { toEngineError } from "./LlamaFailure.ts"
import type * as LlamaTuning from "./LlamaTuning.ts"

export interface WantedContext extends ReturnType<typeof LlamaTuning.estimateOptions> {
  readonly contextSize: number
  readonly sequences: number
}

/** Contexts are proposed in steps of so many tokens. */
const step = 256

/** The most of 1 to `most` that holds, or 0; where it holds it holds for all that is less. */
const largest = Effect.fnUntraced(function* (
  most: number,
  holds: (count: number) => Effect.Effect<boolean, EngineError>
): Effect.fn.Return<number, EngineError> {
  let [low, high] = [0, most]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (yield* holds(middle)) low = middle
    else high = middle - 1
  }
  return low
})

const mib = (bytes: number): string => `${Math.ceil(bytes / 2 ** 20)} MiB`

/**
 * Bytes of main memory. The cache alone is computed first, because the library's full estimate takes minutes where the cache is
 * absurdly large: where that is over the limit already, it is what is said.
 */
const bytesOf = Effect.fnUntraced(function* (
  model: NativeModel,
  wanted: WantedContext,
  limit: number
): Effect.fn.Return<number, EngineError> {
  const asked = { ...wanted, modelGpuLayers: model.gpuLayers, swaFullCache: true }
  const cache = model.fileInsights.estimateContextResourceRequirements({ ...asked, includeGraphOverhead: false }).cpuRam
  if (cache > limit) return cache
  const whole = Effect.tryPromise({
    try: () => model.fileInsights.estimateContextResourceRequirementsV2(asked),
    catch: toEngineError
  })
  return (yield* whole).cpuRam
})

/** What would fit: shorter sessions, or fewer. */
const instead = Effect.fnUntraced(function* (
  model: NativeModel,
  wanted: WantedContext,
  limit: number
): Effect.fn.Return<string, EngineError> {
  const { contextSize, sequences } = wanted
  const fits = (change: Partial<WantedContext>) =>
    Effect.map(bytesOf(model, { ...wanted, ...change }, limit), (bytes) => bytes <= limit)
  const steps = yield* largest(Math.floor((contextSize - 1) / step), (count) => fits({ contextSize: count * step }))
  const fewer = yield* largest(sequences - 1, (count) => fits({ sequences: count }))
  const said = [
    ...(steps === 0 ? [] : [`${sequences} sessions of ${steps * step} tokens`]),
    ...(fewer === 0 ? [] : [`${fewer} of ${contextSize}`])
  ]
  return said.length === 0 ? "Not even a short context would fit." : `What would fit: ${said.join(", or ")}.`
})

/** Refuses a context that does not fit the memory, or the part of it that contexts may take (`budget`, in bytes). */
export const affordable = Effect.fnUntraced(function* (
  model: NativeModel,
  wanted: WantedContext,
  name: string,
  budget: number | undefined
): Effect.fn.Return<void, EngineError> {
  const available = process.availableMemory()
  const limit = Math.min(available, budget ?? Infinity)
  const needed = yield* bytesOf(model, wanted, limit)
  if (needed <= limit) return
  const there = limit === budget ? `${mib(limit)} are allowed` : `${mib(limit)} are available`
  return yield* new EngineError({
    reason: "not_enough_memory",
    message:
      `${name} with ${wanted.sequences} sessions of ${wanted.contextSize} tokens needs about ${mib(needed)}, ` +
      `${there}. ${yield* instead(model, wanted, limit)}`
  })
})
