import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import * as Admission from "../../../src/effects/serve/Admission.ts"

const limits = { sessions: 2, queue: 1, keyConcurrency: 2, keyPerMinute: Infinity }

const making = (more: Partial<Admission.AdmissionLimits> = {}) => {
  const refused: Array<string> = []
  return { refused, admission: Admission.make({ ...limits, ...more }, (reason) => void refused.push(reason)) }
}

describe("admission", () => {
  it.effect("lets so many of one key in at a time, and again when one has left", () =>
    Effect.gen(function* () {
      const { admission, refused } = making({ queue: 8 })
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* admission.enter("ann")
          yield* admission.enter("ann")
          const { code, retryAfter, status } = yield* Effect.flip(admission.enter("ann"))
          assert.deepStrictEqual([status, code], [429, "concurrency_limit_exceeded"])
          assert.isAbove(retryAfter ?? 0, 0)
          yield* admission.enter("bob")
          assert.deepStrictEqual([admission.inside(), admission.waiting()], [2, 1])
        })
      )
      assert.deepStrictEqual(refused, ["concurrency"])
      assert.deepStrictEqual([admission.inside(), admission.waiting()], [0, 0])
      yield* Effect.scoped(admission.enter("ann"))
    })
  )

  it.effect("lets so many in that there is a session or a place in the queue for each", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { admission } = making({ keyConcurrency: 9 })
        for (const key of ["a", "b", "c"]) yield* admission.enter(key)
        const { code, status } = yield* Effect.flip(admission.enter("d"))
        assert.deepStrictEqual([status, code], [503, "overloaded"])
      })
    )
  )

  it.effect("counts a minute back from now, and says when there is room again", () =>
    Effect.gen(function* () {
      const { admission } = making({ keyPerMinute: 2 })
      const once = Effect.scoped(admission.enter("ann"))
      yield* once
      yield* TestClock.adjust("20 seconds")
      yield* once
      yield* TestClock.adjust("10 seconds")
      const { retryAfter, status } = yield* Effect.flip(once)
      assert.deepStrictEqual([status, retryAfter], [429, 30])
      yield* Effect.scoped(admission.enter("bob"))
      yield* TestClock.adjust("30 seconds")
      yield* once
      assert.strictEqual((yield* Effect.flip(once)).retryAfter, 20)
    })
  )

  it.effect("counts a minute as it passes, and not by a clock that somebody sets back", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("2 days")
      const { admission } = making({ keyPerMinute: 1 })
      const once = Effect.scoped(admission.enter("ann"))
      yield* once
      yield* TestClock.setTime(86_400_000)
      assert.strictEqual((yield* Effect.flip(once)).retryAfter, 60)
      yield* TestClock.adjust("60 seconds")
      yield* once
    })
  )
})
