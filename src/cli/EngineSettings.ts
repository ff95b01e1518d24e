/**
 * What the command line says about how a local model is evaluated: looked at before anything is opened, and named by its
 * flags where only the engine can tell that it does not go. The engine itself knows no flags.
 */
import * as Console from "effect/Console"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Settings } from "../effects/SettingFields.ts"
import { EngineError } from "../engine/EngineError.ts"
import { type UsageError, usage } from "./Ending.ts"
import { problemAt } from "./Places.ts"
import { inline } from "./Printable.ts"

type Words = Pick<Settings, "cacheType" | "flashAttention" | "lora">

/** What is certain before the model is known. */
export const check = ({ cacheType, flashAttention, lora }: Words): Effect.Effect<void, UsageError> => {
  for (const { path } of lora) {
    const problem = problemAt(path, "File")
    if (problem !== undefined) return usage(`--lora ${path}: ${problem}`)
  }
  return cacheType !== "f16" && flashAttention === false ? withoutAttention(cacheType) : Effect.void
}

/** The model that ships is evaluated without flash attention unless that is asked for. */
export const checkTiny = ({ cacheType, flashAttention }: Words): Effect.Effect<void, UsageError> =>
  cacheType !== "f16" && flashAttention === "auto" ? withoutAttention(cacheType) : Effect.void

const withoutAttention = (cacheType: string): Effect.Effect<never, UsageError> =>
  usage(
    `--cache-type ${cacheType}: it needs flash attention, which is off here; say --flash-attention on, or leave --cache-type out`
  )

/** The engine opens a context of `most` tokens where more are asked for: said once, with the reason. */
export const sayCut = (asked: number | undefined, most: number | undefined, why: string): Effect.Effect<void> =>
  asked === undefined || most === undefined || asked <= most
    ? Effect.void
    : Console.error(`writ: --context ${asked} is cut to ${most}: ${inline(why)}`)

type Device = Settings["gpu"] | undefined

const inFlags = (error: EngineError, gpu: Device): EngineError =>
  error.reason !== "unavailable" || gpu === undefined || gpu === "auto" || gpu === false
    ? error
    : new EngineError({
        reason: error.reason,
        message: `--gpu ${gpu}: it cannot be used here; say --gpu off, or --gpu auto for what there is. ${error.message}`,
        cause: error
      })

/** A device that was named and is not there fails with the words that name another. Any other trouble stays as it is. */
export const explained = <A, E, R>(
  layer: Layer.Layer<A, E | EngineError, R>,
  gpu: Device
): Layer.Layer<A, E | EngineError, R> =>
  Layer.catchTag(layer, "EngineError", (error) => {
    const failed: Effect.Effect<Context.Context<A>, EngineError> = Effect.fail(inFlags(error as EngineError, gpu))
    return Layer.effectContext(failed)
  }) as Layer.Layer<A, E | EngineError, R>
