import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { type AdmittedCall, ToolPool } from "../../src/actors/ToolPool.ts"
import { takingCalls } from "../../src/effects/OwnCalls.ts"
import { failed } from "../../src/tools/Execution.ts"

const called = (name: string) => ({ tool: { name } }) as unknown as AdmittedCall

/** A pool whose every outcome says who it is. */
const poolOf = (who: string) => Layer.succeed(ToolPool, ToolPool.of({ run: () => Effect.succeed(saying(who)) }))
const saying = (who: string) => failed("unavailable", "none", who, 0)

const outcomes = (layer: Layer.Layer<ToolPool>, ...names: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const pool = yield* ToolPool
    return yield* Effect.forEach(names, (name) => pool.run(called(name)))
  }).pipe(Effect.provide(layer))

describe("calls that are taken before the pool", () => {
  it.effect("go to the one that takes them, whichever way layers lie, and all others to the pool", () =>
    Effect.gen(function* () {
      const taking = (own: string) =>
        takingCalls(
          () =>
            ({ tool }) =>
              tool.name === own ? Effect.succeed(saying(own)) : undefined
        )
      const layer = taking("a").pipe(Layer.provide(taking("b")), Layer.provide(poolOf("pool")))
      const found = yield* outcomes(layer, "a", "b", "c")
      assert.deepStrictEqual(found, [saying("a"), saying("b"), saying("pool")])
    })
  )

  it.effect("may leave work behind in the scope of the layer, which ends it", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const end = Effect.sync(() => void log.push("ended"))
      const taking = takingCalls((owner) => () => Effect.as(Scope.addFinalizer(owner, end), saying("own")))
      const scope = yield* Scope.make()
      const services = yield* Layer.buildWithScope(Layer.provide(taking, poolOf("pool")), scope)
      yield* Effect.provide(
        Effect.flatMap(ToolPool, ({ run }) => run(called("a"))),
        services
      )
      assert.deepStrictEqual(log, [])
      yield* Scope.close(scope, yield* Effect.exit(Effect.void))
      assert.deepStrictEqual(log, ["ended"])
    })
  )
})
