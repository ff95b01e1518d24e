import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { MaxOpsBeforeYield } from "effect/Scheduler"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { afterAll, describe } from "vitest"
import type { EngineError } from "../../src/engine/EngineError.ts"
import type { LlamaSession } from "../../src/engine/LlamaSession.ts"
import { text } from "../../src/engine/Prompt.ts"
import {
  closing,
  freshly,
  kinds,
  logOf,
  open,
  opening,
  request,
  say,
  seeded,
  shipped,
  speak,
  system,
  user
} from "../kit/speaking.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-session-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const minutes = 240_000
const long = text("many words and more of them ".repeat(12))

for (const [name, modelPath] of kinds(directory)) {
  describe(`a session over ${name}`, () => {
    it.live(
      "goes on from an earlier boundary as a session does that never went further",
      () =>
        Effect.gen(function* () {
          const engine = yield* open({ modelPath, sequences: 2, contextTokens: 2048 })
          const session = yield* engine.session
          const talk: ReadonlyArray<(one: LlamaSession) => Effect.Effect<unknown, EngineError>> = [
            (one: LlamaSession) => one.commit(system),
            (one: LlamaSession) => one.commit([...user("hello"), long]),
            (one: LlamaSession) => say(one, seeded(3)),
            (one: LlamaSession) => one.commit(user("again")),
            (one: LlamaSession) => say(one, seeded(4, { maxTokens: 70 }))
          ]
          const logs: Array<ReadonlyArray<number>> = [[]]
          for (const step of talk) {
            yield* step(session)
            logs.push(yield* logOf(session))
          }
          for (const steps of [4, 2, 1]) {
            const log = logs[steps]!
            yield* session.rewind(log.length)
            assert.strictEqual(yield* session.length, log.length)
            assert.deepStrictEqual(yield* logOf(session), log)
            const expected = yield* freshly(
              engine,
              (one) => Effect.forEach(talk.slice(0, steps), (step) => step(one)),
              seeded(9, { maxTokens: 40 })
            )
            assert.deepStrictEqual(yield* speak(session, seeded(9, { maxTokens: 40 })), expected)
          }
          yield* session.rewind(0)
          assert.deepStrictEqual(yield* logOf(session), [])
          yield* session.commit(user("other"))
          const other = yield* freshly(engine, (one) => one.commit(user("other")))
          assert.deepStrictEqual(yield* speak(session), other)
        }),
      minutes
    )

    it.live(
      "drops an open turn first, and refuses a length that is no boundary",
      () =>
        Effect.gen(function* () {
          const engine = yield* open({ modelPath, sequences: 1, contextTokens: 1024 })
          const session = yield* engine.session
          yield* session.commit(system)
          const { end } = yield* session.commit(user("hello"))
          const log = yield* logOf(session)
          const first = yield* speak(session)
          const error = yield* Effect.flip(session.rewind(end - 1))
          assert.strictEqual(error.reason, "bad_request")
          assert.deepStrictEqual(yield* logOf(session), log)
          assert.strictEqual((yield* Effect.flip(session.keep(closing))).reason, "bad_request")
          assert.deepStrictEqual(yield* speak(session), first)
          yield* session.rewind(end)
          assert.deepStrictEqual(yield* logOf(session), log)
          assert.deepStrictEqual(yield* speak(session), first)
          yield* session.keep(closing)
          const gone = yield* session.length
          yield* session.rewind(end)
          assert.strictEqual((yield* Effect.flip(session.rewind(gone))).reason, "bad_request")
        }),
      minutes
    )

    it.live(
      "comes back to a boundary of which no checkpoint is left, evaluated again in the same pieces",
      () =>
        Effect.gen(function* () {
          const engine = yield* open({ modelPath, sequences: 2, contextTokens: 2048, chunkTokens: 16 })
          const session = yield* engine.session
          const words = Array.from({ length: 45 }, (_, index) => user(`word ${index} and some more of it`))
          const lengths: Array<number> = []
          for (const segments of words) lengths.push((yield* session.commit(segments)).end)
          for (const steps of [40, 5, 2]) {
            const before = { ...engine.counters }
            const held = (yield* session.snapshot).kv.length
            yield* session.rewind(lengths[steps - 1]!)
            const { kv } = yield* session.snapshot
            const { erasedTokens, evaluatedTokens } = engine.counters
            // Nothing is evaluated that is not counted.
            const grown = evaluatedTokens - before.evaluatedTokens - (erasedTokens - before.erasedTokens)
            assert.strictEqual(held + grown, kv.length)
            if (steps === 5) assert.strictEqual(evaluatedTokens > before.evaluatedTokens, name.includes("checkpoint"))
            const expected = yield* freshly(engine, (one) =>
              Effect.forEach(words.slice(0, steps), (segments) => one.commit(segments))
            )
            assert.deepStrictEqual(yield* speak(session, request()), expected)
            yield* session.rollback
          }
          assert.strictEqual(yield* session.length, lengths[1])
        }),
      minutes
    )
  })
}

describe("a session", () => {
  it.live(
    "whose turn is interrupted, at whatever step of it, is where it was and can be used",
    () =>
      Effect.gen(function* () {
        const session = yield* (yield* open({ modelPath: shipped, sequences: 1, contextTokens: 512 })).session
        yield* session.commit(system)
        const before = yield* logOf(session)
        const turn = Stream.runDrain(session.turn(opening, request({ maxTokens: 2 })))
        // A fiber that gives way at nearly each step can be interrupted at each.
        const stepwise = Effect.provideService(turn, MaxOpsBeforeYield, 4)
        for (let steps = 0, whole = false; !whole; steps++) {
          const fiber = yield* Effect.forkChild(stepwise, { startImmediately: true })
          for (let step = 0; step < steps; step++) yield* Effect.yieldNow
          yield* Fiber.interrupt(fiber)
          whole = Exit.isSuccess(yield* Fiber.await(fiber))
          yield* session.rollback
          assert.deepStrictEqual(yield* logOf(session), before)
          yield* session.commit(user("x"))
          yield* session.rewind(before.length)
        }
      }),
    minutes
  )

  it.live(
    "that is closed tells whoever waits for its prompt or its turn that it is, and not that the engine is gone",
    () =>
      Effect.gen(function* () {
        const [, [, modelPath]] = kinds(directory) as [unknown, readonly [string, string]]
        const engine = yield* open({ modelPath, sequences: 1, contextTokens: 2048 })
        const works: ReadonlyArray<(session: LlamaSession, seen: () => void) => Effect.Effect<unknown, EngineError>> = [
          (session, seen) => session.commit([long, long, long], seen),
          (session, seen) =>
            Stream.runForEach(session.turn([long], request({ maxTokens: 900 })), () => Effect.sync(seen))
        ]
        const fork = Effect.runForkWith(yield* Effect.context<never>())
        for (const work of works) {
          const scope = yield* Scope.make()
          const session = yield* Scope.provide(engine.session, scope)
          let closing: Fiber.Fiber<void> | undefined
          const failed = yield* Effect.flip(
            work(session, () => {
              closing ??= fork(Scope.close(scope, Exit.void))
            })
          )
          assert.deepStrictEqual([failed.reason, failed.message], ["bad_request", "The session is closed."])
          yield* Fiber.join(closing!)
        }
      }),
    minutes
  )
})
