import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as EngineWatch from "../../../src/effects/serve/EngineWatch.ts"
import { EngineError } from "../../../src/engine/EngineError.ts"
import type { Model } from "../../../src/engine/Model.ts"
import * as ScriptedModel from "../../../src/engine/ScriptedModel.ts"

const own = ScriptedModel.make({ turns: [] }).model

/** An engine that answers what `answer` says now, and how often it was asked. */
const engine = (more: Partial<Model["Service"]> = {}) => {
  let answer: Effect.Effect<ReadonlyArray<number>, EngineError> = Effect.succeed([])
  let asked = 0
  const tokenize = () => {
    asked += 1
    return answer
  }
  const say = (next: typeof answer): void => {
    answer = next
  }
  return { model: { ...own, tokenize, ...more }, asked: () => asked, say }
}

const lost = Effect.fail(new EngineError({ reason: "lost", message: "It is gone." }))

describe("an engine", () => {
  it.effect("is there as long as it answers, and is asked no more than once a second", () =>
    Effect.gen(function* () {
      const { asked, model, say } = engine()
      const { isThere } = yield* EngineWatch.make(model)
      assert.isTrue(yield* isThere)
      say(lost)
      assert.isTrue(yield* isThere)
      assert.strictEqual(asked(), 1)
      yield* TestClock.adjust("1 second")
      assert.isFalse(yield* isThere)
      say(Effect.succeed([]))
      yield* TestClock.adjust("1 second")
      assert.isTrue(yield* isThere)
      assert.strictEqual(asked(), 3)
    })
  )

  it.effect("that says nothing is not waited for, however many want to know", () =>
    Effect.gen(function* () {
      const { asked, model, say } = engine()
      say(Effect.never)
      const { isThere } = yield* EngineWatch.make(model)
      const both = yield* Effect.forkChild(Effect.all([isThere, isThere], { concurrency: 2 }), {
        startImmediately: true
      })
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Fiber.join(both), [false, false])
      assert.strictEqual(asked(), 1)
    })
  )

  it.effect("on a server is not asked by whoever asks for the health of this one", () =>
    Effect.gen(function* () {
      const { asked, model } = engine({ identity: { ...own.identity, engine: "openai" } })
      const { isThere } = yield* EngineWatch.make(model)
      assert.isTrue(yield* isThere)
      assert.strictEqual(asked(), 0)
    })
  )
})
