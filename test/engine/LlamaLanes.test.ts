import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { afterAll, describe } from "vitest"
import type { Priority } from "../../src/engine/Generation.ts"
import { Lanes } from "../../src/engine/LlamaLanes.ts"
import { text } from "../../src/engine/Prompt.ts"
import { kinds, logOf, open, opening, request, seeded, speak, system, tokensOf } from "../kit/speaking.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-lanes-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const minutes = 240_000
const [, [, modelPath]] = kinds(directory) as [unknown, readonly [string, string]]
const long = [text("many words and more of them. ".repeat(72))]

/** Some pieces of a prompt that take one turn of the loop each, and a line for each in `order`. */
const prompt = (lanes: Lanes, name: string, priority: Priority, pieces: number, order: Array<string>) =>
  lanes.within(priority, async () => {
    for (let at = 0; at < pieces; at++) {
      await lanes.turn(priority)
      order.push(name)
      await Promise.resolve()
      lanes.stepped(priority)
    }
  })

describe("Lanes", () => {
  it.live("a higher priority goes first, and a lower one goes after eight steps of it all the same", () =>
    Effect.gen(function* () {
      const lanes = new Lanes()
      const order: Array<string> = []
      const high = prompt(lanes, "high", 5, 40, order)
      const low = prompt(lanes, "low", 1, 4, order)
      yield* Effect.promise(() => Promise.all([high, low]))
      const lows = order.flatMap((name, at) => (name === "low" ? [at] : []))
      assert.strictEqual(lows.length, 4)
      assert.isAtLeast(lows[0]!, 7)
      for (const [index, at] of lows.entries()) assert.isBelow(at - (lows[index - 1] ?? 0), 11)
      assert.isBelow(lows.at(-1)!, order.lastIndexOf("high"))
    })
  )

  it.live("whoever does not want its turn any more waits one step of the others for that, and not eight", () =>
    Effect.gen(function* () {
      const lanes = new Lanes()
      let over = false
      let gone = false
      yield* Effect.promise(() =>
        lanes.within(5, async () => {
          const turn = lanes
            .turn(1, () => over)
            .then(() => {
              gone = true
            })
          lanes.stepped(5)
          await Promise.resolve()
          over = true
          assert.isFalse(gone)
          lanes.stepped(5)
          await turn
        })
      )
    })
  )

  it.live("equals do not wait for each other, and nobody waits for a lower one", () =>
    Effect.gen(function* () {
      const lanes = new Lanes()
      const order: Array<string> = []
      const all = [
        prompt(lanes, "one", 3, 6, order),
        prompt(lanes, "two", 3, 6, order),
        prompt(lanes, "low", 2, 1, order)
      ]
      yield* Effect.promise(() => Promise.all(all))
      for (let at = 0; at < 8; at += 2) assert.notStrictEqual(order[at], order[at + 1])
    })
  )

  it.live("who waits goes on as soon as the others are done, also where they failed", () =>
    Effect.gen(function* () {
      const lanes = new Lanes()
      const order: Array<string> = []
      let fail = (_: Error): void => {}
      const high = lanes.within(4, () => new Promise<void>((_, reject) => (fail = reject)))
      const low = prompt(lanes, "low", 1, 2, order)
      yield* Effect.promise(() => Promise.resolve())
      assert.deepStrictEqual(order, [])
      fail(new Error("over"))
      yield* Effect.ignore(Effect.tryPromise(() => high))
      yield* Effect.promise(() => low)
      assert.deepStrictEqual(order, ["low", "low"])
    })
  )
})

describe("several sessions of one engine", () => {
  it.live(
    "while one evaluates two thousand tokens another generates at least as many tokens as there are pieces, less a few",
    () =>
      Effect.gen(function* () {
        const engine = yield* open({ modelPath, sequences: 2, contextTokens: 4096, verify: false })
        const [reader, writer] = yield* Effect.all([engine.session, engine.session])
        yield* writer.commit(system)
        let tokens = 0
        const decoding = writer.turn(opening, request({ maxTokens: 1500 }))
        const counting = Stream.runForEach(decoding, (event) =>
          Effect.sync(() => {
            if (event._tag === "Piece") tokens += event.tokens.length
          })
        )
        const fiber = yield* Effect.forkChild(counting, { startImmediately: true })
        while (tokens < 3) yield* Effect.sleep(1)
        const before = tokens
        const pieces: Array<number> = []
        const { end } = yield* reader.commit(long, (done) => pieces.push(done))
        const meanwhile = tokens - before
        assert.isAbove(end, 1990)
        // The last ones may be on their way to the reader.
        assert.isAtLeast(meanwhile, pieces.length - 4)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* logOf(writer), [...(yield* engine.tokenize(system))])
      }),
    minutes
  )

  it.live(
    "of two prompts the one of a higher priority is done first, however late it came",
    () =>
      Effect.gen(function* () {
        const engine = yield* open({ modelPath, sequences: 2, contextTokens: 4096 })
        const [low, high] = yield* Effect.all([engine.session, engine.session])
        const order: Array<string> = []
        let begun = 0
        const first = yield* Effect.forkChild(
          Effect.andThen(
            low.commit(long, () => begun++, 1),
            Effect.sync(() => order.push("low"))
          ),
          { startImmediately: true }
        )
        while (begun === 0) yield* Effect.sleep(1)
        yield* Effect.andThen(
          high.commit(long, undefined, 5),
          Effect.sync(() => order.push("high"))
        )
        yield* Fiber.join(first)
        assert.deepStrictEqual(order, ["high", "low"])
        const expected = [...(yield* engine.tokenize(long))]
        for (const session of [low, high]) assert.deepStrictEqual(yield* logOf(session), expected)
      }),
    minutes
  )

  it.live(
    "stopping one stops no other, and each has in its log what it was told",
    () =>
      Effect.gen(function* () {
        const engine = yield* open({ modelPath, sequences: 4, contextTokens: 2048 })
        const sessions = yield* Effect.all([engine.session, engine.session, engine.session])
        yield* Effect.forEach(sessions, (session) => session.commit(system))
        const before = [...(yield* engine.tokenize([...system, ...opening]))]
        const doomed = yield* engine.session
        const stopping = Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(Effect.andThen(doomed.commit(long), speak(doomed)))
          const { evaluatedTokens } = engine.counters
          while (engine.counters.evaluatedTokens < evaluatedTokens + 200) yield* Effect.sleep(1)
          yield* Fiber.interrupt(fiber)
          return yield* logOf(doomed)
        })
        const talking = Effect.forEach(
          sessions,
          (session, index) => speak(session, seeded(index, { maxTokens: 120 })),
          { concurrency: "unbounded" }
        )
        const [stopped, said] = yield* Effect.all([stopping, talking], { concurrency: "unbounded" })
        assert.deepStrictEqual(stopped, [])
        for (const [index, session] of sessions.entries()) {
          assert.strictEqual(said[index]!.length, 120)
          assert.deepStrictEqual(yield* logOf(session), [...before, ...said[index]!])
        }
      }),
    minutes
  )

  it.live(
    "a reader that does not read holds nobody up, and loses nothing of its own turn",
    () =>
      Effect.gen(function* () {
        const engine = yield* open({ modelPath, sequences: 2, contextTokens: 1024 })
        const asked = seeded(4, { maxTokens: 200 })
        const [slow, quick] = yield* Effect.all([engine.session, engine.session])
        yield* Effect.forEach([slow, quick], (session) => session.commit(system))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const pull = yield* Stream.toPull(slow.turn(opening, asked))
            const events = [...(yield* pull)]
            // Nobody reads the slow one while the other has three turns.
            for (let turn = 0; turn < 3; turn++) {
              assert.strictEqual((yield* speak(quick, asked)).length, 200)
              yield* quick.rollback
            }
            for (;;) {
              const more = yield* Effect.result(pull)
              if (more._tag === "Failure") break
              events.push(...more.success)
            }
            const said = tokensOf(events)
            assert.strictEqual(said.length, 200)
            const before = yield* engine.tokenize([...system, ...opening])
            assert.deepStrictEqual(yield* logOf(slow), [...before, ...said])
            // What waited for it is what its own turn had to say, and no more.
            assert.isAtMost(events.length, said.length + 10)
          })
        )
      }),
    minutes
  )
})
