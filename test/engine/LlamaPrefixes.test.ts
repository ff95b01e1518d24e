import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, describe } from "vitest"
import type { LlamaEngine } from "../../src/engine/LlamaModel.ts"
import { type Segment, text } from "../../src/engine/Prompt.ts"
import { kinds, logOf, open, say, seeded, speak, system, user } from "../kit/speaking.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-prefixes-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const minutes = 240_000
const tools = (count: number) => [...system, text("A tool and what it is for. ".repeat(count))]

/** What a session says after a prompt, and how many tokens of it were loaded. */
const hear = (engine: LlamaEngine, prompt: ReadonlyArray<Segment>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const before = { ...engine.counters }
      const session = yield* engine.session
      const { end } = yield* session.commit(prompt)
      const reused = engine.counters.reusedTokens - before.reusedTokens
      const evaluated = engine.counters.evaluatedTokens - before.evaluatedTokens
      assert.deepStrictEqual(yield* logOf(session), [...(yield* engine.tokenize(prompt))])
      // The last token waits for the turn.
      assert.strictEqual(reused + evaluated, end - 1)
      yield* session.commit(user("hello"))
      const first = yield* say(session, seeded(3, { maxTokens: 40 }))
      yield* session.commit(user("again"))
      const said = [first, yield* speak(session, seeded(4, { maxTokens: 40 }))]
      return { reused, end, said }
    })
  )

/** State files that are there, by the directories this process makes for them. */
const stateFiles = (): ReadonlyArray<string> =>
  ["/dev/shm", Os.tmpdir()]
    .filter((home) => Fs.existsSync(home))
    .flatMap((home) =>
      Fs.readdirSync(home)
        .filter((name) => name.startsWith(`writ-state-${process.pid}-`))
        .flatMap((name) => Fs.readdirSync(Path.join(home, name)).map((file) => Path.join(home, name, file)))
    )

for (const [name, modelPath] of kinds(directory)) {
  describe(`prefixes over ${name}`, () => {
    it.live(
      "what a session begins with is evaluated once, and the next one that begins so says the same",
      () =>
        Effect.gen(function* () {
          const options = { modelPath, sequences: 2, contextTokens: 2048 }
          const fresh = yield* open({ ...options, reuse: "never" })
          const engine = yield* open({ ...options, reuse: "always" })
          const expected = yield* hear(fresh, tools(20))
          assert.strictEqual(expected.reused, 0)
          const first = yield* hear(engine, tools(20))
          const second = yield* hear(engine, tools(20))
          assert.strictEqual(first.reused, 0)
          assert.strictEqual(second.reused, second.end - 1)
          assert.deepStrictEqual(first.said, expected.said)
          assert.deepStrictEqual(second.said, expected.said)
        }),
      minutes
    )

    it.live(
      "of a prompt that goes another way in its middle, whole pieces are used where a state can be divided",
      () =>
        Effect.gen(function* () {
          const options = { modelPath, sequences: 1, contextTokens: 2048 }
          const fresh = yield* open({ ...options, reuse: "never" })
          const engine = yield* open({ ...options, reuse: "always" })
          yield* hear(engine, [...tools(20), text("One way.")])
          const other = [...tools(20), text("And quite another. ".repeat(10))]
          const { reused, said } = yield* hear(engine, other)
          const same = (yield* engine.tokenize(tools(20))).length
          if (name.includes("checkpoint") || name.includes("window")) assert.strictEqual(reused, 0)
          else {
            assert.strictEqual(reused % 64, 0)
            assert.isAbove(reused, same - 64)
          }
          assert.deepStrictEqual(said, (yield* hear(fresh, other)).said)
        }),
      minutes
    )
  })
}

describe("prefixes", () => {
  const [, [, modelPath]] = kinds(directory) as [unknown, readonly [string, string]]
  const options = { modelPath, sequences: 1, contextTokens: 4096, reuse: "always" } as const

  it.live(
    "a state that is not what was saved is never loaded: the prompt is evaluated",
    () =>
      Effect.gen(function* () {
        const engine = yield* open(options)
        const { said } = yield* hear(engine, tools(20))
        const [path] = stateFiles()
        assert.isDefined(path)
        const whole = Fs.readFileSync(path!)
        const flipped = Buffer.from(whole)
        flipped[whole.length >> 1]! ^= 1
        for (const damaged of [whole.subarray(0, whole.length / 2), flipped, Buffer.alloc(0)]) {
          const [at] = stateFiles()
          Fs.writeFileSync(at!, damaged)
          const again = yield* hear(engine, tools(20))
          assert.strictEqual(again.reused, 0)
          assert.deepStrictEqual(again.said, said)
        }
        for (const file of stateFiles()) Fs.rmSync(file)
        assert.strictEqual((yield* hear(engine, tools(20))).reused, 0)
      }),
    minutes
  )

  it.live(
    "no more than eight states are kept, and none outlives its engine",
    () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const engine = yield* Scope.provide(open(options), scope)
        for (let index = 0; index < 10; index++) yield* hear(engine, [text(`${index} is another way to begin.`)])
        assert.strictEqual(stateFiles().length, 8)
        // The oldest two made room.
        const last = yield* hear(engine, [text("9 is another way to begin.")])
        assert.strictEqual(last.reused, last.end - 1)
        assert.strictEqual((yield* hear(engine, [text("0 is another way to begin.")])).reused, 0)
        yield* Scope.close(scope, Exit.void)
        assert.deepStrictEqual(stateFiles(), [])
      }),
    minutes
  )

  it.live(
    "by default nothing is saved of a short prompt",
    () =>
      Effect.gen(function* () {
        const engine = yield* open({ ...options, reuse: "measured" })
        yield* hear(engine, system)
        assert.deepStrictEqual(stateFiles(), [])
        assert.strictEqual((yield* hear(engine, system)).reused, 0)
      }),
    minutes
  )

  it.live(
    "a session that was stopped while it began leaves nothing wrong behind",
    () =>
      Effect.gen(function* () {
        const engine = yield* open(options)
        yield* hear(engine, tools(20))
        const session = yield* engine.session
        yield* session.commit(tools(20))
        yield* session.rewind(0)
        assert.deepStrictEqual(yield* logOf(session), [])
        yield* session.commit(tools(20))
        yield* session.commit(user("hello"))
        const { counters } = engine
        const { kv } = yield* session.snapshot
        assert.isAbove(counters.reusedTokens, kv.length)
      }),
    minutes
  )
})
