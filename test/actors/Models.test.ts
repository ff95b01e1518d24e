import { copyFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { makeWorker } from "../../src/actors/Inference.ts"
import * as Models from "../../src/actors/Models.ts"
import { tinyModel } from "../../src/effects/Wiring.ts"
import { EngineError } from "../../src/engine/EngineError.ts"
import { text } from "../../src/engine/Prompt.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"

const settled = Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true })

/** Scripted models by name, and a log of what is opened and closed. */
const scripted = (options: Omit<Models.ModelsOptions, "open"> = {}) => {
  const log: Array<string> = []
  const hold = new Map<string, Deferred.Deferred<void, EngineError>>()
  const closing = new Map<string, Deferred.Deferred<void>>()
  const made = Models.make({
    ...options,
    open: (name) =>
      Effect.acquireRelease(
        Effect.sync(() => void log.push(`open ${name}`)).pipe(
          Effect.andThen(
            Effect.suspend(() => {
              const held = hold.get(name)
              return held === undefined ? Effect.void : Deferred.await(held)
            })
          ),
          Effect.as(ScriptedModel.make({ turns: [], name }).model)
        ),
        () =>
          Effect.suspend(() => {
            const slow = closing.get(name)
            const closed = Effect.sync(() => void log.push(`close ${name}`))
            return slow === undefined ? closed : Effect.andThen(Deferred.await(slow), closed)
          }),
        { interruptible: true }
      )
  })
  return { made, log, hold, closing }
}

/** Somebody who has a model until told to leave. */
const user = Effect.fnUntraced(function* (models: Models.Models["Service"], name: string) {
  const scope = yield* Scope.make()
  const fiber = yield* Effect.forkChild(Scope.provide(models.use(name), scope), { startImmediately: true })
  yield* settled
  return {
    model: Fiber.join(fiber),
    has: () => fiber.pollUnsafe() !== undefined,
    fiber,
    leave: Effect.andThen(Scope.close(scope, Exit.void), settled)
  }
})

describe("models that take turns in memory", () => {
  it.effect("opens a model once for all who want it, and keeps it when they have gone", () =>
    Effect.gen(function* () {
      const { log, made } = scripted()
      const models = yield* made
      const [one, two] = [yield* user(models, "a"), yield* user(models, "a")]
      assert.strictEqual(yield* one.model, yield* two.model)
      yield* one.leave
      yield* two.leave
      yield* (yield* user(models, "a")).leave
      assert.deepStrictEqual(log, ["open a"])
      assert.deepStrictEqual(yield* models.loaded, [{ name: "a", users: 0, bytes: 0, ready: true }])
    })
  )

  it.effect("closes the one that was not used for longest, before the next is opened", () =>
    Effect.gen(function* () {
      const { log, made } = scripted({ loaded: 2 })
      const models = yield* made
      for (const name of ["a", "b", "a", "c"]) yield* (yield* user(models, name)).leave
      assert.deepStrictEqual(log, ["open a", "open b", "close b", "open c"])
    })
  )

  it.effect("waits while all are in use, and goes on when one of them is given back", () =>
    Effect.gen(function* () {
      const { log, made } = scripted({ loaded: 1 })
      const models = yield* made
      const a = yield* user(models, "a")
      const b = yield* user(models, "b")
      assert.isFalse(b.has())
      yield* a.leave
      assert.isTrue(b.has())
      assert.deepStrictEqual(log, ["open a", "close a", "open b"])
    })
  )

  it.effect("fails by name when the wait is over, in all and not each time somebody comes or goes", () =>
    Effect.gen(function* () {
      const { made } = scripted({ loaded: 1, waitSeconds: 30, patienceSeconds: 60 })
      const models = yield* made
      yield* user(models, "a")
      const b = yield* user(models, "b")
      yield* TestClock.adjust("20 seconds")
      yield* (yield* user(models, "a")).leave
      yield* TestClock.adjust("10 seconds")
      const error = yield* Effect.flip(b.model)
      assert.strictEqual(error.reason, "no_session")
      assert.match(error.message, /^b could not be loaded.*30 s.*\(a\)/)
    })
  )

  it.effect("lets those who want what is loaded go first, but only for so long", () =>
    Effect.gen(function* () {
      const { log, made } = scripted({ loaded: 1, patienceSeconds: 10 })
      const models = yield* made
      const first = yield* user(models, "a")
      const b = yield* user(models, "b")
      const second = yield* user(models, "a")
      assert.isTrue(second.has())
      yield* TestClock.adjust("10 seconds")
      const third = yield* user(models, "a")
      assert.isFalse(third.has())
      yield* first.leave
      yield* second.leave
      assert.isTrue(b.has())
      assert.isFalse(third.has())
      yield* b.leave
      assert.isTrue(third.has())
      assert.deepStrictEqual(log, ["open a", "close a", "open b", "close b", "open a"])
    })
  )

  it.effect("goes by memory too, and refuses at once what never fits", () =>
    Effect.gen(function* () {
      const sizes: Record<string, number> = { small: 40, middle: 60, large: 100, huge: 200 }
      const { log, made } = scripted({ loaded: 9, memoryBytes: 100, bytes: (name) => Effect.succeed(sizes[name]!) })
      const models = yield* made
      const small = yield* user(models, "small")
      yield* (yield* user(models, "middle")).leave
      const large = yield* user(models, "large")
      assert.isFalse(large.has())
      yield* small.leave
      assert.isTrue(large.has())
      assert.deepStrictEqual(log.slice(-3), ["close small", "close middle", "open large"])
      const error = yield* Effect.flip(Effect.scoped(models.use("huge")))
      assert.strictEqual(error.reason, "not_enough_memory")
    })
  )

  it.effect("opens for whoever still waits, when the one who asked first has left", () =>
    Effect.gen(function* () {
      const { hold, log, made } = scripted()
      hold.set("a", Deferred.makeUnsafe())
      const models = yield* made
      const one = yield* user(models, "a")
      const two = yield* user(models, "a")
      yield* Fiber.interrupt(one.fiber)
      yield* one.leave
      yield* Deferred.succeed(hold.get("a")!, undefined)
      assert.strictEqual((yield* two.model).identity.name, "a")
      assert.deepStrictEqual(log, ["open a"])
      assert.deepStrictEqual(yield* models.loaded, [{ name: "a", users: 1, bytes: 0, ready: true }])
    })
  )

  it.effect("tells all who wait why a model could not be opened, and tries anew for the next", () =>
    Effect.gen(function* () {
      const { hold, made } = scripted({ loaded: 1 })
      hold.set("a", Deferred.makeUnsafe())
      const models = yield* made
      const users = [yield* user(models, "a"), yield* user(models, "a")]
      const b = yield* user(models, "b")
      yield* Deferred.fail(hold.get("a")!, new EngineError({ reason: "bad_file", message: "damaged" }))
      for (const one of users) {
        assert.strictEqual((yield* Effect.flip(one.model)).message, "damaged")
        yield* one.leave
      }
      assert.strictEqual((yield* b.model).identity.name, "b")
      hold.clear()
      yield* b.leave
      assert.strictEqual((yield* (yield* user(models, "a")).model).identity.name, "a")
    })
  )

  it.effect("drops a model when the last one has left it, and opens it anew for the next", () =>
    Effect.gen(function* () {
      const { log, made } = scripted()
      const models = yield* made
      const one = yield* user(models, "a")
      yield* models.drop("a")
      const two = yield* user(models, "a")
      assert.isFalse(two.has())
      yield* one.leave
      yield* two.model
      assert.deepStrictEqual(log, ["open a", "close a", "open a"])
    })
  )

  it.effect("closes everything with its scope, and nobody waits for ever", () =>
    Effect.gen(function* () {
      const { log, made } = scripted({ loaded: 1 })
      const scope = yield* Scope.make()
      const models = yield* Scope.provide(made, scope)
      yield* user(models, "a")
      const b = yield* user(models, "b")
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* Effect.flip(b.model)).reason, "lost")
      assert.deepStrictEqual(log, ["open a", "close a"])
    })
  )

  it.effect("closes what was to make room for somebody who came while everything was being closed", () =>
    Effect.gen(function* () {
      const { closing, log, made } = scripted({ loaded: 2 })
      const scope = yield* Scope.make()
      const models = yield* Scope.provide(made, scope)
      for (const name of ["a", "b"]) yield* (yield* user(models, name)).leave
      const slow = yield* Deferred.make<void>()
      closing.set("a", slow)
      const first = yield* user(models, "c")
      const ending = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      const late = yield* user(models, "d")
      yield* Deferred.succeed(slow, undefined)
      yield* Fiber.join(ending)
      for (const one of [first, late]) assert.strictEqual((yield* Effect.flip(one.model)).reason, "lost")
      assert.deepStrictEqual(log, ["open a", "open b", "close a", "close b"])
    })
  )

  it.effect("closes with its scope what was about to make room, too", () =>
    Effect.gen(function* () {
      const { closing, log, made } = scripted({
        loaded: 2,
        memoryBytes: 2,
        bytes: (name) => Effect.succeed(name.length)
      })
      const scope = yield* Scope.make()
      const models = yield* Scope.provide(made, scope)
      for (const name of ["a", "b"]) yield* (yield* user(models, name)).leave
      const slow = yield* Deferred.make<void>()
      closing.set("a", slow)
      yield* user(models, "cc")
      const ended = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
      yield* settled
      yield* Deferred.succeed(slow, undefined)
      yield* Fiber.join(ended)
      assert.deepStrictEqual(log, ["open a", "open b", "close a", "close b"])
    })
  )

  it.effect(
    "opens one anew that is closed slowly: not before it is gone, and also when whoever dropped it has left",
    () =>
      Effect.gen(function* () {
        const { closing, log, made } = scripted()
        const models = yield* made
        yield* (yield* user(models, "a")).leave
        const slow = yield* Deferred.make<void>()
        closing.set("a", slow)
        const dropping = yield* Effect.forkChild(models.drop("a"), { startImmediately: true })
        yield* settled
        const leaving = yield* Effect.forkChild(Fiber.interrupt(dropping), { startImmediately: true })
        yield* models.drop("a")
        const next = yield* user(models, "a")
        assert.isFalse(next.has())
        assert.deepStrictEqual(log, ["open a"])
        yield* Deferred.succeed(slow, undefined)
        yield* Fiber.join(leaving)
        yield* next.model
        assert.deepStrictEqual(log, ["open a", "close a", "open a"])
      })
  )

  it.live(
    "exchanges two files in one place: each answers in its turn",
    () =>
      Effect.gen(function* () {
        const directory = mkdtempSync(join(tmpdir(), "writ-models-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(directory, { recursive: true, force: true })))
        for (const name of ["one", "two"]) copyFileSync(tinyModel, join(directory, `${name}.gguf`))
        const models = yield* Models.make({
          loaded: 1,
          open: (name) =>
            Effect.map(
              makeWorker({
                modelPath: join(directory, `${name}.gguf`),
                threads: 1,
                gpu: false,
                sequences: 1,
                contextTokens: 256
              }),
              ({ model }) => model
            )
        })
        for (const name of ["one", "two", "one"]) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const model = yield* models.use(name)
              assert.strictEqual(model.identity.name, `${name}.gguf`)
              const session = yield* model.session
              const span = yield* session.commit([text("hello")])
              assert.isAbove(span.end, 0)
            })
          )
          assert.deepStrictEqual(
            (yield* models.loaded).map((one) => one.name),
            [name]
          )
        }
      }).pipe(Effect.scoped),
    300_000
  )
})
