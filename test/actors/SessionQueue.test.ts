import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { queued } from "../../src/actors/SessionQueue.ts"
import { EngineError } from "../../src/engine/EngineError.ts"
import type { Priority } from "../../src/engine/Generation.ts"
import type { Model } from "../../src/engine/Model.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"
import { SessionWait } from "../../src/engine/SessionWait.ts"

/** A model with so many places. `taken` says how many are in use, `most` how many ever were. */
const places = (count: number) => {
  const { model } = ScriptedModel.make({ turns: [] })
  const state = { taken: 0, most: 0 }
  const free = Effect.suspend(() => {
    if (state.taken >= count) return Effect.fail(new EngineError({ reason: "no_session", message: "all are taken" }))
    state.taken++
    state.most = Math.max(state.most, state.taken)
    return Effect.void
  })
  const limited: Model["Service"] = {
    ...model,
    session: Effect.acquireRelease(Effect.andThen(Effect.yieldNow, free), () =>
      Effect.sync(() => {
        state.taken--
      })
    ).pipe(Effect.andThen(model.session))
  }
  return { limited, state }
}

/** Takes a place, notes it, and holds it until told. */
const taker = Effect.fnUntraced(function* (
  model: Model["Service"],
  log: Array<string>,
  name: string,
  wait: { readonly priority?: Priority; readonly seconds?: number } = {}
) {
  const scope = yield* Scope.make()
  const wanted = { priority: wait.priority ?? (3 as const), seconds: wait.seconds ?? 60 }
  const taking = model.session.pipe(
    Effect.provideService(SessionWait, wanted),
    Scope.provide(scope),
    Effect.tap(() => Effect.sync(() => void log.push(name)))
  )
  const fiber = yield* Effect.forkChild(taking, { startImmediately: true })
  const settled = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true })
  yield* settled
  return { fiber, leave: Effect.andThen(Scope.close(scope, Exit.void), settled) }
})

describe("a line for sessions", () => {
  it.effect("lets whoever comes first in first, and nobody in while all places are taken", () =>
    Effect.gen(function* () {
      const { limited, state } = places(1)
      const model = queued(limited)
      const log: Array<string> = []
      const a = yield* taker(model, log, "a")
      const b = yield* taker(model, log, "b")
      const c = yield* taker(model, log, "c")
      assert.deepStrictEqual(log, ["a"])
      yield* a.leave
      assert.deepStrictEqual(log, ["a", "b"])
      yield* b.leave
      yield* c.leave
      assert.deepStrictEqual([log, state.most, state.taken], [["a", "b", "c"], 1, 0])
    })
  )

  it.effect("lets the more urgent in before those who came earlier", () =>
    Effect.gen(function* () {
      const model = queued(places(1).limited)
      const log: Array<string> = []
      let holder = yield* taker(model, log, "first")
      const rest = [
        yield* taker(model, log, "low", { priority: 1 }),
        yield* taker(model, log, "middle"),
        yield* taker(model, log, "high", { priority: 5 }),
        yield* taker(model, log, "high too", { priority: 5 })
      ]
      for (const next of [rest[2]!, rest[3]!, rest[1]!, rest[0]!]) {
        yield* holder.leave
        holder = next
      }
      assert.deepStrictEqual(log, ["first", "high", "high too", "middle", "low"])
    })
  )

  it.effect("does not let a newcomer overtake whoever waits, though a place is free at that moment", () =>
    Effect.gen(function* () {
      const model = queued(places(1).limited)
      const log: Array<string> = []
      const a = yield* taker(model, log, "a")
      const b = yield* taker(model, log, "b")
      const leaving = yield* Effect.forkChild(a.leave, { startImmediately: true })
      const c = yield* taker(model, log, "c")
      yield* Fiber.join(leaving)
      assert.deepStrictEqual(log, ["a", "b"])
      yield* b.leave
      assert.deepStrictEqual(log, ["a", "b", "c"])
      yield* c.leave
    })
  )

  it.effect("passes the place on when whoever was next has gone", () =>
    Effect.gen(function* () {
      const { limited, state } = places(1)
      const model = queued(limited)
      const log: Array<string> = []
      const a = yield* taker(model, log, "a")
      const b = yield* taker(model, log, "b")
      const c = yield* taker(model, log, "c")
      yield* Fiber.interrupt(b.fiber)
      yield* a.leave
      assert.deepStrictEqual([log, state.taken], [["a", "c"], 1])
      yield* c.leave
    })
  )

  it.effect("fails by name when the time is up, and when too many wait already", () =>
    Effect.gen(function* () {
      const model = queued(places(1).limited, 1)
      const log: Array<string> = []
      yield* taker(model, log, "a")
      const b = yield* taker(model, log, "b", { seconds: 5 })
      const c = yield* taker(model, log, "c")
      const full = yield* Effect.flip(Fiber.join(c.fiber))
      assert.strictEqual(full.reason, "no_session")
      assert.match(full.message, /1 other waits already/)
      yield* TestClock.adjust("5 seconds")
      const late = yield* Effect.flip(Fiber.join(b.fiber))
      assert.strictEqual(late.reason, "no_session")
      assert.match(late.message, /for 5 s/)
      const d = yield* taker(model, log, "d")
      assert.isUndefined(d.fiber.pollUnsafe(), "there is a place in the line again")
    })
  )

  it.effect("fails at once for whoever does not want to wait", () =>
    Effect.gen(function* () {
      const model = queued(places(1).limited)
      const log: Array<string> = []
      yield* taker(model, log, "a")
      const error = yield* Effect.flip(Effect.scoped(model.session))
      assert.deepStrictEqual([error.reason, error.message], ["no_session", "all are taken"])
    })
  )

  it.effect("serves everybody, whatever comes and goes in whatever order", () =>
    Effect.gen(function* () {
      const { limited, state } = places(3)
      const model = queued(limited, 1000)
      let served = 0
      const one = (at: number) =>
        Effect.scoped(
          Effect.gen(function* () {
            yield* model.session
            for (let step = 0; step < at % 7; step++) yield* Effect.yieldNow
            served++
          })
        ).pipe(Effect.provideService(SessionWait, { priority: ((at % 5) + 1) as Priority, seconds: 60 }))
      const fibers = []
      for (let at = 0; at < 200; at++) {
        const fiber = yield* Effect.forkChild(one(at), { startImmediately: at % 2 === 0 })
        if (at % 11 === 0) fibers.push(Effect.as(Fiber.interrupt(fiber), 0))
        else fibers.push(Effect.as(Fiber.join(fiber), 1))
      }
      const joined = yield* Effect.all(fibers, { concurrency: "unbounded" })
      assert.isAtLeast(
        served,
        joined.reduce<number>((sum, one) => sum + one, 0)
      )
      assert.deepStrictEqual([state.taken, state.most], [0, 3])
    })
  )
})
