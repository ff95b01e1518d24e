/** Names of assembled runs (R-AILLY-3): `2026-11-30T13-07-42Z-4f9a2c-research`. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

/** The time from the Clock, in UTC and whole seconds, six hex digits from Random, the assembly's name. */
export const make = (assembly: string): Effect.Effect<string> =>
  Effect.gen(function* () {
    const now = DateTime.formatIso(yield* DateTime.now)
    const salt = yield* Random.nextIntBetween(0, 0xffffff)
    return `${now.slice(0, 19).replaceAll(":", "-")}Z-${salt.toString(16).padStart(6, "0")}-${assembly}`
  })
