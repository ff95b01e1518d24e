import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import * as RunId from "../../../../src/effects/conversation/assemble/RunId.ts"

describe("a run's id", () => {
  it.effect("has the time in UTC and whole seconds, six hex digits and the assembly's name", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.UTC(2026, 10, 30, 13, 7, 2, 999))
      assert.match(yield* RunId.make("research"), /^2026-11-30T13-07-02Z-[0-9a-f]{6}-research$/)
    })
  )

  it.effect("differs within a second, and comes from the Clock and from Random alone", () =>
    Effect.gen(function* () {
      const ids = Effect.all(Array.from({ length: 50 }, () => RunId.make("a"))).pipe(Random.withSeed("s"))
      const first = yield* ids
      assert.strictEqual(new Set(first).size, 50)
      assert.deepStrictEqual(yield* ids, first)
    })
  )
})
