import { setImmediate } from "node:timers"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describe } from "vitest"
import type { EngineError } from "../../src/engine/EngineError.ts"
import { NativeCalls } from "../../src/engine/LlamaCalls.ts"
import { makeControl } from "../../src/engine/LlamaControl.ts"

/** Stops this thread, and with it everything that could look at a clock. */
const stopped = (millis: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis)

describe("a native call", () => {
  it.live("that does not come back is failed as stalled, and the sequence with it", () =>
    Effect.gen(function* () {
      const control = makeControl()
      const calls = new NativeCalls(control, 40)
      const failed = yield* Effect.flip(
        Effect.tryPromise({
          try: () => calls.run(() => new Promise<never>(() => {})),
          catch: (cause) => cause as EngineError
        })
      )
      assert.strictEqual(failed.reason, "stalled")
      assert.strictEqual(calls.broken, failed)
      calls.close()
    })
  )

  it.live("is not hung because the program was stopped for longer than the limit while it was out", () =>
    Effect.gen(function* () {
      const calls = new NativeCalls(makeControl(), 400)
      // The timers come before the answer when the program goes on.
      const answer = () =>
        new Promise<string>((resolve) => {
          setImmediate(() => {
            setImmediate(() => resolve("there"))
            stopped(1_000)
          })
        })
      assert.strictEqual(yield* Effect.promise(() => calls.run(answer)), "there")
      assert.isUndefined(calls.broken)
      calls.close()
    })
  )

  it.live("of many that each come back in time is none that hangs, however long they take together", () =>
    Effect.gen(function* () {
      const calls = new NativeCalls(makeControl(), 40)
      const soon = () => new Promise<void>((resolve) => setImmediate(resolve))
      const end = performance.now() + 200
      yield* Effect.promise(async () => {
        while (performance.now() < end) await calls.run(soon)
      })
      assert.isUndefined(calls.broken)
      calls.close()
    })
  )
})
