/**
 * Is the engine there? It is asked something that evaluates nothing, however many want to know at a time. An engine on a
 * server is taken to be there: anybody may ask for the health of this one, and nobody may have others asked by that.
 */
import * as Effect from "effect/Effect"
import type { Model } from "../../engine/Model.ts"

export interface EngineWatch {
  /** False where it does not answer: it is lost, or about to be opened again. */
  readonly isThere: Effect.Effect<boolean>
}

/** How long an answer may take, and how long it counts. */
const patience = "5 seconds"
const memory = "1 second"

export const make = ({ identity, tokenize }: Model["Service"]): Effect.Effect<EngineWatch> => {
  if (identity.engine === "openai") return Effect.succeed({ isThere: Effect.succeed(true) })
  const asked = Effect.matchEffect(
    Effect.suspend(() => tokenize([])),
    {
      onFailure: () => Effect.succeed(false),
      onSuccess: () => Effect.succeed(true)
    }
  )
  const inTime = Effect.timeoutOrElse(asked, { duration: patience, orElse: () => Effect.succeed(false) })
  return Effect.map(Effect.cachedWithTTL(inTime, memory), (isThere) => ({ isThere }))
}
