import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { ShownCalls } from "../../src/cli/ShownCalls.ts"

describe("calls on the screen", () => {
  it("are right above one line, and no more above the next", () => {
    const calls = new ShownCalls()
    calls.add("call-0-0")
    calls.add("call-0-1")
    assert.isFalse(calls.isAbove("call-0-0"))
    assert.isFalse(calls.isAbove("call-0-1"))
    calls.add("call-0-1")
    assert.isTrue(calls.isAbove("call-0-1"))
    assert.isFalse(calls.isAbove("call-0-1"))
  })

  it.effect("are waited for until they are there", () =>
    Effect.gen(function* () {
      const calls = new ShownCalls()
      const waiting = yield* Effect.forkChild(calls.caughtUp("call-0-0", Number.POSITIVE_INFINITY), {
        startImmediately: true
      })
      for (let turn = 0; turn < 300; turn++) yield* Effect.yieldNow
      assert.isUndefined(waiting.pollUnsafe())
      calls.add("call-0-0")
      yield* Fiber.join(waiting)
    })
  )

  it.effect("are not waited for without end, and not those of the run before", () =>
    Effect.gen(function* () {
      const calls = new ShownCalls()
      calls.add("call-0-0")
      yield* calls.caughtUp("call-0-0", Number.POSITIVE_INFINITY)
      calls.forget()
      const waiting = yield* Effect.forkChild(calls.caughtUp("call-0-0"), { startImmediately: true })
      assert.isUndefined(waiting.pollUnsafe())
      yield* Fiber.join(waiting)
    })
  )
})
