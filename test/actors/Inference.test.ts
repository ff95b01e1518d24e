import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as fc from "fast-check"
import { afterAll, beforeAll, describe } from "vitest"
import { layerWorker, makeWorker, type WorkerModel } from "../../src/actors/Inference.ts"
import type { GenerationEvent, TurnRequest } from "../../src/engine/Generation.ts"
import { Model, type ModelSession } from "../../src/engine/Model.ts"
import { control, text } from "../../src/engine/Prompt.ts"
import { makeGguf } from "../kit/gguf.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-inference-"))
const shipped = Path.resolve(import.meta.dirname, "../../models/tiny-tool-agent/tiny-tool-agent-q8_0.gguf")
const write = (name: string, bytes: Uint8Array | string) => {
  const path = Path.join(directory, name)
  Fs.writeFileSync(path, bytes)
  return path
}
const open = (modelPath: string, sequences = 2) =>
  makeWorker({ modelPath, sequences, threads: 1, gpu: false, verify: true })

const system = [control("<|im_start|>system\n"), text("You are a small local assistant."), control("<|im_end|>\n")]
const user = (value: string) => [control("<|im_start|>user\n"), text(value), control("<|im_end|>\n")]
const opening = [control("<|im_start|>assistant\n")]
const closing = [control("<|im_end|>\n")]
const request = (more: Partial<TurnRequest> = {}): TurnRequest => ({
  maxTokens: 24,
  stops: [],
  sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 1 },
  ...more
})
const seeded = (seed: number) => request({ sampling: { temperature: 1.2, topK: 40, topP: 0.95, seed } })

const tokensOf = (events: ReadonlyArray<GenerationEvent>) =>
  events.flatMap((event) => (event._tag === "Piece" ? event.tokens : []))
const textOf = (events: ReadonlyArray<GenerationEvent>) =>
  events.map((event) => (event._tag === "Piece" ? event.text : "")).join("")
const endOf = (events: ReadonlyArray<GenerationEvent>) => {
  const last = events.at(-1)
  return last?._tag === "End" ? last : assert.fail("the last event is not End")
}
const speak = (session: ModelSession, asked: TurnRequest) => Stream.runCollect(session.turn(opening, asked))

const suites = [
  ["the shipped model", () => shipped, 300],
  ["a model that must checkpoint", () => write("hybrid.gguf", makeGguf({ arch: "qwen35", muteEog: true })), 1200]
] as const

for (const [name, path, longTurn] of suites) {
  describe(`Inference over ${name}`, () => {
    let worker: WorkerModel
    const scope = Scope.makeUnsafe()
    beforeAll(
      () =>
        Effect.runPromise(
          Effect.map(Scope.provide(open(path()), scope), (made) => {
            worker = made
          })
        ),
      240_000
    )
    afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)), 240_000)
    const log = (session: ModelSession) =>
      Effect.map(worker.snapshot(session), ({ kv, pending }) => [...kv, ...pending])

    it.live(
      "a turn that nobody reads along comes as one piece behind the first, and is the same turn",
      () =>
        Effect.gen(function* () {
          const session = yield* worker.model.session
          yield* session.commit([...system, ...user("hello")])
          const whole = yield* speak(session, request({ live: false, maxTokens: longTurn }))
          yield* session.rollback
          const live = yield* speak(session, request({ maxTokens: longTurn }))
          assert.isAtMost(whole.filter(({ _tag }) => _tag === "Piece").length, 2)
          assert.deepStrictEqual([tokensOf(whole), textOf(whole)], [tokensOf(live), textOf(live)])
          assert.strictEqual(endOf(whole).reason, endOf(live).reason)
        }).pipe(Effect.scoped),
      240_000
    )

    it.live(
      "the log is the tokens of what was committed and kept, in spans without gaps",
      () =>
        Effect.gen(function* () {
          const session = yield* worker.model.session
          const first = yield* session.commit([...system, ...user("hello")])
          const events = yield* speak(session, request())
          const kept = yield* session.keep(closing)
          const second = yield* session.commit(user("again"))
          assert.strictEqual(first.start, 0)
          assert.strictEqual(kept.start, first.end)
          assert.strictEqual(second.start, kept.end)
          assert.strictEqual(yield* session.length, second.end)
          const expected = [
            ...(yield* worker.model.tokenize([...system, ...user("hello")])),
            ...(yield* worker.model.tokenize(opening)),
            ...tokensOf(events),
            ...(yield* worker.model.tokenize(closing)),
            ...(yield* worker.model.tokenize(user("again")))
          ]
          assert.deepStrictEqual(yield* log(session), expected)
        }),
      240_000
    )

    it.live(
      "a turn rolled back leaves no trace, and the same turn comes again",
      () =>
        Effect.gen(function* () {
          const session = yield* worker.model.session
          yield* session.commit([...system, ...user("What is 2 + 2?")])
          const before = yield* log(session)
          for (const asked of [request(), seeded(7)]) {
            const first = yield* speak(session, asked)
            yield* session.rollback
            assert.deepStrictEqual(yield* log(session), before)
            const again = yield* speak(session, asked)
            yield* session.rollback
            assert.deepStrictEqual(tokensOf(again), tokensOf(first))
            assert.strictEqual(textOf(again), textOf(first))
          }
          const other = yield* worker.model.session
          yield* other.commit([...system, ...user("What is 2 + 2?")])
          assert.deepStrictEqual(tokensOf(yield* speak(other, seeded(7))), tokensOf(yield* speak(session, seeded(7))))
        }),
      240_000
    )

    it.live(
      "no committed token is evaluated twice",
      () =>
        Effect.gen(function* () {
          const session = yield* worker.model.session
          const start = (yield* worker.stats).evaluatedTokens
          yield* session.commit([...system, ...user("one")])
          for (const value of ["two", "three", "four"]) {
            const length = yield* session.length
            const { usage } = endOf(yield* speak(session, request({ maxTokens: 5 })))
            const opened = (yield* worker.model.tokenize(opening)).length
            // the opening, and the one token that was known and not yet evaluated
            assert.strictEqual(usage.prefillTokens, opened + 1)
            assert.isAtLeast(yield* session.length, length)
            yield* session.keep(closing)
            yield* session.commit(user(value))
          }
          const { kv } = yield* worker.snapshot(session)
          assert.strictEqual((yield* worker.stats).evaluatedTokens - start, kv.length)
        }),
      240_000
    )

    it.live(
      "an interrupted prefill leaves nothing behind",
      () =>
        Effect.gen(function* () {
          const long = [text("many words and more of them ".repeat(50))]
          /** True if the interruption met the prefill; one that came too late says nothing. */
          const attempt = Effect.fnUntraced(function* (asTurn: boolean) {
            const session = yield* worker.model.session
            yield* session.commit(system)
            const before = yield* log(session)
            const started = (yield* worker.stats).evaluatedTokens
            const work = asTurn ? Stream.runDrain(session.turn(long, request())) : Effect.asVoid(session.commit(long))
            const fiber = yield* Effect.forkChild(work, { startImmediately: true })
            while ((yield* worker.stats).evaluatedTokens === started) yield* Effect.yieldNow
            yield* Fiber.interrupt(fiber)
            if (!Exit.hasInterrupts(yield* Fiber.await(fiber))) return false
            assert.deepStrictEqual(yield* log(session), before)
            assert.strictEqual(yield* session.length, before.length)
            return true
          }, Effect.scoped)
          for (const asTurn of [false, true]) {
            let met = false
            for (let i = 0; !met && i < 20; i++) met = yield* attempt(asTurn)
            assert.isTrue(met)
          }
        }),
      240_000
    )

    it.live(
      "a turn interrupted while it decodes leaves nothing behind, also where it is only read in part",
      () =>
        Effect.gen(function* () {
          const session = yield* worker.model.session
          yield* session.commit([...system, ...user("list the files")])
          const before = yield* log(session)
          let met = false
          for (let seed = 0; !met && seed < 20; seed++) {
            const turn = session.turn(opening, { ...seeded(seed), maxTokens: longTurn })
            const seen = yield* Queue.unbounded<GenerationEvent>()
            const fiber = yield* Effect.forkChild(Stream.runForEach(turn, (event) => Queue.offer(seen, event)))
            while ((yield* Queue.take(seen))._tag === "Prefill") {
              // not decoding yet
            }
            yield* Fiber.interrupt(fiber)
            met = Exit.hasInterrupts(yield* Fiber.await(fiber))
            if (met) assert.deepStrictEqual(yield* log(session), before)
            yield* session.rollback
          }
          assert.isTrue(met)
          yield* Stream.runDrain(Stream.take(session.turn(opening, request()), 1))
          assert.deepStrictEqual(yield* log(session), before)
          yield* speak(session, request())
          yield* session.rollback
          assert.deepStrictEqual(yield* log(session), before)
        }),
      240_000
    )

    it.live(
      "what cannot fit is refused before anything is evaluated",
      () =>
        Effect.gen(function* () {
          const session = yield* worker.model.session
          yield* session.commit(system)
          const start = yield* worker.stats
          const endless = [text("word ".repeat(5000))]
          assert.strictEqual((yield* Effect.flip(session.commit(endless))).reason, "context_overflow")
          const tooLong = yield* Effect.flip(Stream.runDrain(session.turn(opening, request({ maxTokens: 100_000 }))))
          assert.strictEqual(tooLong.reason, "context_overflow")
          assert.deepStrictEqual(yield* worker.stats, start)
          assert.isAbove(yield* session.measure(endless), worker.model.identity.contextTokens)
        }),
      240_000
    )

    it.live(
      "requests out of order are refused and change nothing",
      () =>
        Effect.gen(function* () {
          const session = yield* worker.model.session
          const empty = yield* Effect.flip(Stream.runDrain(session.turn([], request())))
          assert.strictEqual(empty.reason, "bad_request")
          assert.strictEqual((yield* Effect.flip(session.keep(closing))).reason, "bad_request")
          yield* session.rollback
          yield* session.commit(system)
          yield* speak(session, request({ maxTokens: 3 }))
          assert.strictEqual((yield* Effect.flip(session.commit(user("x")))).reason, "bad_request")
          assert.strictEqual((yield* Effect.flip(speak(session, request()))).reason, "bad_request")
          yield* session.keep(closing)
          yield* session.commit(user("x"))
        }),
      240_000
    )

    it.live(
      "two sessions decode at once and hear what they would hear alone",
      () =>
        Effect.gen(function* () {
          const alone = yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* worker.model.session
              yield* session.commit([...system, ...user("hello")])
              return tokensOf(yield* speak(session, seeded(11)))
            })
          )
          const sessions = yield* Effect.all([worker.model.session, worker.model.session])
          const both = yield* Effect.forEach(
            sessions,
            Effect.fnUntraced(function* (session) {
              yield* session.commit([...system, ...user("hello")])
              return tokensOf(yield* speak(session, seeded(11)))
            }),
            { concurrency: "unbounded" }
          )
          assert.deepStrictEqual(both, [alone, alone])
          assert.strictEqual((yield* Effect.flip(worker.model.session)).reason, "no_session")
        }),
      240_000
    )

    it.live(
      "whatever is asked and wherever it is interrupted, log and boundary agree",
      () =>
        Effect.gen(function* () {
          const session = yield* worker.model.session
          yield* session.commit(system)
          const step = fc.record({
            op: fc.constantFrom("commit", "keep", "drop"),
            yields: fc.nat(40),
            seed: fc.nat(1000),
            stop: fc.boolean()
          })
          for (const { op, seed, stop, yields } of fc.sample(step, { numRuns: 40, seed: 21 })) {
            const before = yield* log(session)
            const work =
              op === "commit"
                ? session.commit(user("x".repeat(seed % 90)))
                : Effect.andThen(
                    Stream.runDrain(session.turn(opening, { ...seeded(seed), maxTokens: 12 })),
                    op === "keep" ? session.keep(closing) : Effect.asVoid(session.rollback)
                  )
            const fiber = yield* Effect.forkChild(work, { startImmediately: true })
            // a round trip to the thread is a step of its work, give or take one
            for (let i = 0; stop && i < yields; i++) yield* worker.stats
            const exit = yield* stop ? Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber)) : Fiber.await(fiber)
            if (exit._tag === "Failure" && !Exit.hasInterrupts(exit)) {
              const failed = yield* Effect.flip(exit)
              assert.strictEqual(failed.reason, "context_overflow")
              break
            }
            // an interruption between turn and keep leaves a turn that was finished
            yield* session.rollback
            const after = yield* log(session)
            assert.strictEqual(yield* session.length, after.length)
            assert.deepStrictEqual(after.slice(0, before.length), before)
            if (exit._tag === "Failure" || op === "drop") assert.deepStrictEqual(after, before)
          }
        }),
      240_000
    )
  })
}

describe("Inference", () => {
  it.live(
    "a stop text ends a turn and is its last word",
    () =>
      Effect.gen(function* () {
        const worker = yield* open(shipped)
        const session = yield* worker.model.session
        yield* session.commit([...system, ...user("hello")])
        const whole = textOf(yield* speak(session, request()))
        yield* session.rollback
        const stop = whole.slice(4, 7)
        const events = yield* speak(session, request({ stops: ["never said", stop] }))
        assert.strictEqual(endOf(events).reason, "stop")
        assert.strictEqual(textOf(events), whole.slice(0, whole.indexOf(stop) + stop.length))
        const span = yield* session.keep(closing)
        assert.strictEqual(span.end - span.start, 3 + tokensOf(events).length + 2)
      }),
    240_000
  )

  it.live(
    "a finished turn goes on without an opening, and is kept or dropped as a whole",
    () =>
      Effect.gen(function* () {
        const worker = yield* open(shipped)
        const session = yield* worker.model.session
        const { end: prompt } = yield* session.commit([...system, ...user("hello")])
        const whole = tokensOf(yield* speak(session, request({ maxTokens: 12 })))
        yield* session.rollback
        const begin = speak(session, request({ maxTokens: 5 }))
        const goOn = session.turn([], request({ maxTokens: 7 }))
        const first = yield* begin
        const refused = yield* Effect.flip(speak(session, request()))
        assert.strictEqual(refused.reason, "bad_request")
        const second = yield* Stream.runCollect(goOn)
        assert.deepStrictEqual([...tokensOf(first), ...tokensOf(second)], whole)
        yield* session.rollback
        assert.deepStrictEqual((yield* worker.snapshot(session)).kv.length, prompt - 1)
        // Left in the middle, nothing of it stays; the same again, kept this time.
        yield* begin
        yield* Stream.runDrain(Stream.take(goOn, 2))
        assert.strictEqual(yield* session.length, prompt)
        assert.strictEqual((yield* Effect.flip(session.keep(closing))).reason, "bad_request")
        yield* begin
        yield* Stream.runDrain(goOn)
        const span = yield* session.keep(closing)
        assert.deepStrictEqual(span, { start: prompt, end: prompt + 3 + whole.length + 2 })
      }).pipe(Effect.scoped),
    240_000
  )

  it.live(
    "a family's own mark ends a turn like the model's end token, whatever the file says of it",
    () =>
      Effect.gen(function* () {
        const worker = yield* open(shipped)
        const session = yield* worker.model.session
        yield* session.commit([...system, ...user("hello")])
        const whole = yield* speak(session, request())
        yield* session.rollback
        const tokens = tokensOf(whole)
        const marks = yield* Effect.forEach([...new Set(textOf(whole))], (mark) =>
          Effect.map(worker.model.tokenize([control(mark)]), (ids) => ({ mark, at: tokens.indexOf(ids[0]!) }))
        )
        const { at, mark } = marks.find((one) => one.at > 0) ?? assert.fail("no letter is a token of the answer")
        const events = yield* speak(session, request({ ends: ["a mark that is no token", mark] }))
        assert.strictEqual(endOf(events).reason, "eog")
        assert.deepStrictEqual(tokensOf(events), tokens.slice(0, at))
        const span = yield* session.keep(closing)
        assert.strictEqual(span.end - span.start, 3 + at + 2)
      }),
    240_000
  )

  it.live(
    "tells who answers, and that it is the file that was asked for",
    () =>
      Effect.gen(function* () {
        const { identity } = yield* Model
        assert.strictEqual(identity.engine, "llama")
        assert.strictEqual(identity.name, "tiny-tool-agent-q8_0.gguf")
        assert.strictEqual(identity.quantization, "Q8_0")
        assert.include(identity.template ?? "", "<|im_start|>")
        assert.strictEqual(identity.build?.["threads"], 1)
        assert.strictEqual(identity.build?.["chunkTokens"], 64)
      }).pipe(Effect.provide(layerWorker({ modelPath: shipped, threads: 1, gpu: false }))),
    240_000
  )

  it.live(
    "says how much of the model is loaded and how much of a prompt is read, as it goes",
    () =>
      Effect.gen(function* () {
        const shares: Array<number> = []
        const options = { modelPath: shipped, sequences: 1, threads: 1, gpu: false } as const
        const { model } = yield* makeWorker(options, (share) => shares.push(share))
        assert.isAbove(shares.length, 1)
        assert.isTrue(shares.every((share, at) => share <= 1 && share > (shares[at - 1] ?? -1)))
        assert.strictEqual(shares.at(-1), 1)
        const session = yield* model.session
        const read: Array<readonly [number, number]> = []
        const span = yield* session.commit([text("one two three ".repeat(60))], (done, total) =>
          read.push([done, total])
        )
        const total = span.end - span.start
        assert.isAbove(total, 128)
        // The last token waits for the turn.
        const chunks = Math.ceil((total - 1) / 64)
        assert.deepStrictEqual(
          read,
          Array.from({ length: chunks }, (_, at) => [Math.min(64 * (at + 1), total - 1), total])
        )
      }),
    240_000
  )

  it.live(
    "a file that is not a model fails typed, and the thread ends",
    () =>
      Effect.gen(function* () {
        const good = makeGguf()
        const cases = [
          [Path.join(directory, "none.gguf"), "missing_file"],
          [directory, "missing_file"],
          [write("text.gguf", "hello"), "bad_file"],
          [write("cut.gguf", good.subarray(0, good.length / 2)), "bad_file"]
        ] as const
        for (const [path, reason] of cases) {
          const error = yield* Effect.flip(Effect.scoped(open(path)))
          assert.strictEqual(error._tag, "EngineError")
          assert.strictEqual(error.reason, reason)
        }
      }),
    240_000
  )

  it.live(
    "a load that is interrupted ends, thread included",
    () =>
      Effect.gen(function* () {
        const modelPath = write("wide.gguf", makeGguf({ vocabulary: 60_000 }))
        const fiber = yield* Effect.forkChild(Effect.scoped(open(modelPath)), { startImmediately: true })
        yield* Effect.sleep("1 second")
        yield* Fiber.interrupt(fiber)
        assert.isDefined(yield* Fiber.await(fiber))
      }),
    240_000
  )

  it.live(
    "closing a model while it decodes ends the turn with a typed failure or an interruption",
    () =>
      Effect.gen(function* () {
        const modelPath = write("long.gguf", makeGguf({ muteEog: true }))
        const scope = yield* Scope.make()
        const worker = yield* Scope.provide(open(modelPath), scope)
        const session = yield* Scope.provide(worker.model.session, scope)
        yield* session.commit([text("abc")])
        const started = yield* Queue.unbounded<GenerationEvent>()
        const fiber = yield* Effect.forkChild(
          Stream.runForEach(session.turn([], request({ maxTokens: 3000 })), (event) => Queue.offer(started, event))
        )
        while ((yield* Queue.take(started))._tag !== "Piece") {
          /* prefill */
        }
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* Fiber.await(fiber))._tag, "Failure")
        const after = yield* Effect.flip(session.commit([text("x")]))
        assert.strictEqual(after.reason, "lost")
      }),
    240_000
  )

  afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
})
