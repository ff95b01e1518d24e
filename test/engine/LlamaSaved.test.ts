import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterAll, describe } from "vitest"
import type { LlamaSession } from "../../src/engine/LlamaSession.ts"
import { text } from "../../src/engine/Prompt.ts"
import { closing, kinds, logOf, open, say, seeded, speak, system, user } from "../kit/speaking.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-saved-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const minutes = 240_000
const asked = seeded(9, { maxTokens: 40 })
const options = { sequences: 2, contextTokens: 1024 }

const talk = (session: LlamaSession) =>
  Effect.gen(function* () {
    yield* session.commit([...system, text("A tool and what it is for. ".repeat(16))])
    yield* session.commit(user("hello"))
    yield* say(session, seeded(3))
    yield* session.commit(user("again"))
    return [...(yield* logOf(session))]
  })

for (const [name, modelPath] of kinds(directory)) {
  describe(`a saved session over ${name}`, () => {
    it.live(
      "goes on in another engine as it would have gone on, and back to its boundaries",
      () =>
        Effect.gen(function* () {
          const path = Path.join(directory, `${name.replaceAll(" ", "-")}.state`)
          const saved = yield* Effect.scoped(
            Effect.gen(function* () {
              const session = yield* (yield* open({ ...options, modelPath })).session
              const log = yield* talk(session)
              const bytes = yield* session.save(path, "one")
              const said = yield* say(session, asked)
              yield* session.rewind(log.length)
              const first = (yield* session.commit(user("more"))).end
              yield* session.rewind(log.length)
              return { log, bytes, said, first }
            })
          )
          assert.strictEqual(saved.bytes, Fs.statSync(path).size + Fs.statSync(`${path}.json`).size)
          const engine = yield* open({ ...options, modelPath, contextTokens: 2048 })
          const session = yield* engine.session
          const { boundaries, label, tokens } = yield* session.load(path)
          assert.strictEqual(label, "one")
          assert.deepStrictEqual([...tokens], saved.log)
          assert.deepStrictEqual(yield* logOf(session), saved.log)
          assert.strictEqual(yield* session.length, saved.log.length)
          assert.strictEqual(boundaries.length, 5)
          assert.strictEqual(engine.counters.evaluatedTokens, 0)
          assert.deepStrictEqual(yield* say(session, asked), saved.said)
          yield* session.rewind(saved.log.length)
          assert.strictEqual((yield* session.commit(user("more"))).end, saved.first)
          // Back into what was loaded, and forward again as the first time.
          const other = yield* engine.session
          for (const at of [3, 2, 1]) {
            yield* session.rewind(boundaries[at]!)
            assert.deepStrictEqual(yield* logOf(session), saved.log.slice(0, boundaries[at]))
          }
          yield* other.commit([...system, text("A tool and what it is for. ".repeat(16))])
          assert.deepStrictEqual(yield* speak(session, asked), yield* speak(other, asked))
        }),
      minutes
    )
  })
}

describe("a saved session", () => {
  const [, [, modelPath]] = kinds(directory) as [unknown, readonly [string, string]]
  const path = Path.join(directory, "one.state")

  it.live(
    "that is not what was saved is refused, and the session is still empty and of use",
    () =>
      Effect.gen(function* () {
        const engine = yield* open({ ...options, modelPath })
        const first = yield* engine.session
        const log = yield* talk(first)
        yield* first.save(path, "one")
        const session = yield* engine.session
        const [state, beside] = [Fs.readFileSync(path), Fs.readFileSync(`${path}.json`)]
        const flipped = (bytes: Buffer, at: number) => {
          const copy = Buffer.from(bytes)
          copy[at]! ^= 1
          return copy
        }
        const damages: ReadonlyArray<readonly [file: string, bytes: Buffer, says: RegExp]> = [
          [path, state.subarray(0, state.length / 2), /length or hash/],
          [path, flipped(state, state.length >> 1), /length or hash/],
          [path, Buffer.alloc(0), /length or hash/],
          [`${path}.json`, flipped(beside, beside.length >> 1), /changed/],
          [`${path}.json`, beside.subarray(0, 40), /changed/],
          [`${path}.json`, Buffer.alloc(0), /changed/]
        ]
        for (const [file, bytes, says] of damages) {
          const whole = Fs.readFileSync(file)
          Fs.writeFileSync(file, bytes)
          const error = yield* Effect.flip(session.load(path))
          assert.strictEqual(error.reason, "bad_file")
          assert.match(error.message, says)
          Fs.writeFileSync(file, whole)
        }
        assert.strictEqual((yield* Effect.flip(session.load(`${path}.none`))).reason, "missing_file")
        assert.deepStrictEqual(yield* logOf(session), [])
        assert.deepStrictEqual([...(yield* session.load(path)).tokens], log)
        assert.strictEqual((yield* Effect.flip(session.load(path))).reason, "bad_request")
      }),
    minutes
  )

  it.live(
    "of another model, of another evaluation, or too long for this context, is refused",
    () =>
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            const session = yield* (yield* open({ ...options, modelPath })).session
            yield* talk(session)
            yield* session.save(path, "one")
          })
        )
        const refusal = (more: Partial<Parameters<typeof open>[0]>) =>
          Effect.scoped(
            Effect.gen(function* () {
              const session = yield* (yield* open({ ...options, modelPath, ...more })).session
              return yield* Effect.flip(session.load(path))
            })
          )
        assert.match((yield* refusal({ chunkTokens: 32 })).message, /chunkTokens/)
        assert.match((yield* refusal({ sequences: 1 })).message, /sequences/)
        assert.strictEqual((yield* refusal({ contextTokens: 512 })).reason, "context_overflow")
        const copy = Path.join(directory, "copy.gguf")
        Fs.copyFileSync(modelPath, copy)
        Fs.utimesSync(copy, 1, 1)
        assert.match((yield* refusal({ modelPath: copy })).message, /fileWritten/)
      }),
    minutes
  )

  it.live(
    "is made at a boundary, of something",
    () =>
      Effect.gen(function* () {
        const session = yield* (yield* open({ ...options, modelPath })).session
        assert.strictEqual((yield* Effect.flip(session.save(path, "one"))).reason, "bad_request")
        yield* session.commit(system)
        yield* speak(session)
        assert.strictEqual((yield* Effect.flip(session.save(path, "one"))).reason, "bad_request")
        yield* session.keep(closing)
        const none = Path.join(directory, "nowhere", "one.state")
        assert.strictEqual((yield* Effect.flip(session.save(none, "one"))).reason, "bad_file")
        assert.isAbove(yield* session.save(path, "one"), 1000)
        assert.strictEqual(Fs.statSync(path).mode & 0o777, 0o600)
      }),
    minutes
  )
})
