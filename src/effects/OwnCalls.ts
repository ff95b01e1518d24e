/** Tools whose calls are no business of the pool: they are taken before whatever else runs tools, and run where the program runs. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { ToolPool } from "../actors/ToolPool.ts"
import type { RunCall } from "../actors/ToolPoolRunner.ts"

/** How a call is performed; `undefined` where it is somebody else's. */
export type OwnCall = (...call: Parameters<RunCall>) => ReturnType<RunCall> | undefined

/** @param make what takes calls first; `owner` is the scope of the layer, for work that outlives its call */
export const takingCalls = (make: (owner: Scope.Scope) => OwnCall): Layer.Layer<ToolPool, never, ToolPool> =>
  Layer.effect(
    ToolPool,
    Effect.gen(function* () {
      const others = yield* ToolPool
      const own = make(yield* Effect.scope)
      return ToolPool.of({ run: (call, late) => own(call, late) ?? others.run(call, late) })
    })
  )
