import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { queued } from "../../src/actors/SessionQueue.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { EngineError } from "../../src/engine/EngineError.ts"
import { Model } from "../../src/engine/Model.ts"
import { layerScripted } from "../../src/testing.ts"
import * as TestTools from "../kit/tools.ts"

/** The model, with one session at a time and a line before it. */
const single = Effect.map(Model, (model) => {
  let taken = false
  const place = Effect.acquireRelease(
    Effect.suspend(() => {
      if (taken) return Effect.fail(new EngineError({ reason: "no_session", message: "it is taken" }))
      taken = true
      return Effect.void
    }),
    () =>
      Effect.sync(() => {
        taken = false
      })
  )
  return queued({ ...model, session: Effect.andThen(place, model.session) })
})

const run = Effect.fnUntraced(function* (task: string, options: { readonly waitSeconds?: number } = {}) {
  const { registry } = yield* TestTools.make()
  const { text } = yield* Agent.run({ task, tools: registry, ...options })
  return text
})

const slow = { text: "first", prefillMillis: 5_000 }

describe("runs that want a session while all are in use", () => {
  it.effect("wait for one, and fail by name where they do not want to, or not for so long", () =>
    Effect.gen(function* () {
      const model = yield* single
      const start = (...args: Parameters<typeof run>) =>
        Effect.forkChild(Effect.provideService(run(...args), Model, model), { startImmediately: true })
      const first = yield* start("a")
      const second = yield* start("b")
      const third = yield* start("c", { waitSeconds: 0 })
      const fourth = yield* start("d", { waitSeconds: 2 })
      const refused = yield* Effect.flip(Fiber.join(third))
      assert.strictEqual(refused._tag === "EngineError" ? refused.reason : refused._tag, "no_session")
      yield* TestClock.adjust("2 seconds")
      const late = yield* Effect.flip(Fiber.join(fourth))
      assert.match(late.message, /No session of script was free for 2 s/)
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* Fiber.join(first), "first")
      assert.strictEqual(yield* Fiber.join(second), "second")
    }).pipe(Effect.provide(layerScripted({ turns: [slow, "second"] })))
  )
})
