/** Names of runs. Calls and steps are named after their place in the run, so only the run needs a name from outside. */
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"

export class Ids extends Context.Service<
  Ids,
  {
    /** A run's id: file-name safe, new each time. */
    readonly run: Effect.Effect<string>
  }
>()("effect-writ/actors/Ids") {}

/** `20261130-061812-4f9a2c`: UTC time from the Clock and six hex digits from Random. */
export const layer: Layer.Layer<Ids> = Layer.succeed(
  Ids,
  Ids.of({
    run: Effect.gen(function* () {
      const now = DateTime.formatIso(yield* DateTime.now)
      const salt = yield* Random.nextIntBetween(0, 0xffffff)
      const [day = "", time = ""] = now.replaceAll(/[-:]/g, "").split("T")
      return `${day}-${time.slice(0, 6)}-${salt.toString(16).padStart(6, "0")}`
    })
  })
)

/** `run-1`, `run-2`, …: for tests whose traces must be the same each time. */
export const layerSequence: Layer.Layer<Ids> = Layer.sync(Ids, () => {
  let next = 0
  return Ids.of({ run: Effect.sync(() => `run-${++next}`) })
})
