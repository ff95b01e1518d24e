import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { setImmediate } from "node:timers/promises"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as fc from "fast-check"
import { afterAll, describe } from "vitest"
import type { EngineError } from "../../src/engine/EngineError.ts"
import type { GenerationEvent } from "../../src/engine/Generation.ts"
import type { LlamaEngine } from "../../src/engine/LlamaModel.ts"
import type { LlamaSession } from "../../src/engine/LlamaSession.ts"
import { text } from "../../src/engine/Prompt.ts"
import { closing, kinds, logOf, open, opening, seeded, speak, tokensOf, user } from "../kit/speaking.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-sequences-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))

/** Chunks are small, so that a prefill has many places to be stopped at. */
const options = { sequences: 2, contextTokens: 640, chunkTokens: 8, reuse: "always" } as const

const operations = ["commit", "keep", "drop", "part", "rewind", "nowhere", "full", "rollback"] as const

const step = fc.record({
  op: fc.constantFrom(...operations, "commit", "keep", "keep", "drop"),
  size: fc.nat(60),
  seed: fc.nat(1000),
  /** Interrupted once so many more tokens are evaluated. */
  stop: fc.option(fc.nat(50), { nil: undefined })
})
type Step = typeof step extends fc.Arbitrary<infer A> ? A : never

/** What is in the log for good: how each part of it came about, and all tokens up to its end. */
interface Part {
  readonly log: ReadonlyArray<number>
  readonly again: (session: LlamaSession) => Effect.Effect<unknown, EngineError>
}

const next = Effect.promise(() => setImmediate())

/** One session driven by random steps, and what must be true of it after each. */
class Drive {
  readonly engine: LlamaEngine
  readonly session: LlamaSession
  readonly parts: Array<Part> = []
  readonly met = new Map<string, number>()

  constructor(engine: LlamaEngine, session: LlamaSession) {
    this.engine = engine
    this.session = session
  }

  get log(): ReadonlyArray<number> {
    return this.parts.at(-1)?.log ?? []
  }

  /** Runs it, interrupted where the step says so. */
  readonly #run = <A>(work: Effect.Effect<A, EngineError>, { stop }: Step) =>
    Effect.gen({ self: this }, function* () {
      const { counters } = this.engine
      const from = counters.evaluatedTokens
      const fiber = yield* Effect.forkChild(work, { startImmediately: true })
      if (stop === undefined) return yield* Fiber.await(fiber)
      while (counters.evaluatedTokens - from < stop && fiber.pollUnsafe() === undefined) yield* next
      yield* Fiber.interrupt(fiber)
      return yield* Fiber.await(fiber)
    })

  readonly #settle = (op: string, exit: Exit.Exit<unknown, EngineError>): boolean => {
    const how = Exit.isSuccess(exit) ? "done" : Exit.hasInterrupts(exit) ? "stopped" : "refused"
    this.met.set(`${op} ${how}`, (this.met.get(`${op} ${how}`) ?? 0) + 1)
    if (how === "refused") {
      const reasons = Exit.isFailure(exit)
        ? exit.cause.reasons.map((one) => one._tag === "Fail" && one.error.reason)
        : []
      assert.deepStrictEqual(reasons, [op === "nowhere" ? "bad_request" : "context_overflow"])
    }
    return how === "done"
  }

  readonly #commit = Effect.fnUntraced({ self: this }, function* (this: Drive, one: Step) {
    const segments = user("x".repeat(one.size))
    const exit = yield* this.#run(this.session.commit(segments), one)
    if (!this.#settle("commit", exit)) return
    const log = [...this.log, ...(yield* this.engine.tokenize(segments))]
    this.parts.push({ log, again: (session) => session.commit(segments) })
  })

  readonly #turn = Effect.fnUntraced({ self: this }, function* (this: Drive, one: Step) {
    const asked = seeded(one.seed, { maxTokens: 1 + (one.size % 20) })
    const heard: Array<GenerationEvent> = []
    const turn = Stream.runForEach(this.session.turn(opening, asked), (event) => Effect.sync(() => heard.push(event)))
    if (!this.#settle("turn", yield* this.#run(turn, one))) return
    const said = tokensOf(heard)
    const whole = [...this.log, ...(yield* this.engine.tokenize(opening)), ...said]
    assert.deepStrictEqual(yield* logOf(this.session), whole)
    if (one.op !== "keep") return
    const exit = yield* this.#run(this.session.keep(closing), { ...one, stop: one.seed % 4 === 0 ? 0 : undefined })
    if (!this.#settle("keep", exit)) return
    const log = [...whole, ...(yield* this.engine.tokenize(closing))]
    const again = (session: LlamaSession) => Effect.andThen(speak(session, asked), session.keep(closing))
    this.parts.push({ log, again })
  })

  readonly take = Effect.fnUntraced({ self: this }, function* (this: Drive, one: Step) {
    const { session } = this
    if (one.op === "commit") return yield* this.#commit(one)
    if (one.op === "keep" || one.op === "drop") return yield* this.#turn(one)
    if (one.op === "part") {
      const part = Stream.runDrain(Stream.take(session.turn(opening, seeded(one.seed)), 2))
      return void this.#settle("part", yield* Effect.exit(part))
    }
    if (one.op === "rollback") return yield* session.rollback
    if (one.op === "rewind") {
      const to = one.seed % (this.parts.length + 1)
      this.parts.length = to
      return yield* session.rewind(this.log.length)
    }
    const work = one.op === "full" ? session.commit([text("word ".repeat(700))]) : session.rewind(this.log.length + 1)
    assert.isFalse(this.#settle(one.op, yield* Effect.exit(work)))
  })

  /** A turn that was finished and not kept is dropped; then log, cache and counts agree. */
  readonly check = Effect.fnUntraced({ self: this }, function* (this: Drive) {
    yield* this.session.rollback
    const { kv, pending } = yield* this.session.snapshot
    assert.deepStrictEqual([...kv, ...pending], [...this.log])
    assert.strictEqual(yield* this.session.length, this.log.length)
    const { erasedTokens, evaluatedTokens, reusedTokens } = this.engine.counters
    assert.strictEqual(evaluatedTokens + reusedTokens - erasedTokens, kv.length)
  })
}

for (const [name, modelPath] of kinds(directory)) {
  describe(`over ${name}`, () => {
    it.live(
      "log, stream and cache agree after any operation stopped anywhere, and what comes next is what would have come",
      () =>
        Effect.gen(function* () {
          const engine = yield* open({ modelPath, ...options })
          const met = new Map<string, number>()
          for (const seed of [1, 2, 3]) {
            const before = { ...engine.counters }
            yield* Effect.scoped(
              Effect.gen(function* () {
                const session = yield* engine.session
                const drive = new Drive({ ...engine, counters: since(engine.counters, before) }, session)
                const first: Step = { op: "commit", size: 3, seed: 0, stop: undefined }
                yield* drive.take(first)
                for (const one of fc.sample(step, { numRuns: 60, seed })) {
                  if (drive.parts.length === 0) yield* drive.take(first)
                  yield* drive.take(one)
                  yield* drive.check()
                }
                for (const [what, count] of drive.met) met.set(what, (met.get(what) ?? 0) + count)
                const asked = seeded(77, { maxTokens: 24 })
                // Room for the probe.
                while (drive.log.length + 40 > options.contextTokens) drive.parts.pop()
                yield* session.rewind(drive.log.length)
                const probe = yield* speak(session, asked)
                yield* session.rollback
                assert.deepStrictEqual(yield* speak(session, asked), probe)
                const other = yield* engine.session
                for (const { again } of drive.parts) yield* again(other)
                assert.deepStrictEqual(yield* logOf(other), [...drive.log])
                assert.deepStrictEqual(yield* speak(other, asked), probe)
              })
            )
          }
          for (const what of [
            "commit done",
            "commit stopped",
            "turn done",
            "turn stopped",
            "keep done",
            "keep stopped",
            "full refused",
            "nowhere refused"
          ]) {
            assert.isAbove(met.get(what) ?? 0, 0, what)
          }
        }),
      600_000
    )
  })
}

/** Counts from now on. */
const since = (counters: LlamaEngine["counters"], before: LlamaEngine["counters"]): LlamaEngine["counters"] => ({
  get evaluatedTokens() {
    return counters.evaluatedTokens - before.evaluatedTokens
  },
  get reusedTokens() {
    return counters.reusedTokens - before.reusedTokens
  },
  get erasedTokens() {
    return counters.erasedTokens - before.erasedTokens
  },
  get turns() {
    return counters.turns - before.turns
  }
})
