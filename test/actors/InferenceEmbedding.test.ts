import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { afterAll, describe } from "vitest"
import { makeEmbedder } from "../../src/actors/Inference.ts"
import { makeControl } from "../../src/engine/LlamaControl.ts"
import { load } from "../../src/engine/LlamaEmbedding.ts"
import { makeGguf } from "../kit/gguf.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-embedder-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const modelPath = Path.join(directory, "random.gguf")
Fs.writeFileSync(modelPath, makeGguf({ dim: 128, ff: 512, layers: 4 }))

const options = { modelPath, threads: 1, gpu: false } as const
const texts = ["It is 5.", "Bananas are yellow.", "It is 5."]
const long = "abcdfg ".repeat(500)

describe("an embedder in a thread", () => {
  it.live(
    "makes the vectors that the model makes without a thread, to the last digit, and says who it is",
    () =>
      Effect.gen(function* () {
        const shares: Array<number> = []
        const there = yield* makeEmbedder(options, (share) => shares.push(share))
        const here = yield* load(options, makeControl())
        assert.deepStrictEqual(yield* there.embed(texts), yield* here.embed(texts))
        assert.deepStrictEqual(there.identity, here.identity)
        assert.strictEqual(there.identity.name, "random.gguf")
        assert.isAbove(shares.length, 0)
      }),
    240_000
  )

  it.live(
    "fails typed for a text that is too long and for a model that makes no vectors",
    () =>
      Effect.gen(function* () {
        const { embed } = yield* makeEmbedder({ ...options, contextTokens: 256 })
        const tooLong = yield* Effect.flip(embed([long]))
        assert.strictEqual(tooLong._tag, "EngineError")
        assert.strictEqual(tooLong.reason, "context_overflow")
        assert.strictEqual((yield* embed(texts)).length, 3)
        const grades = Path.join(directory, "grades.gguf")
        Fs.writeFileSync(grades, makeGguf({ pooling: 4 }))
        const none = yield* Effect.flip(Effect.scoped(makeEmbedder({ ...options, modelPath: grades })))
        assert.strictEqual(none.reason, "unsupported")
      }),
    240_000
  )

  it.live(
    "whoever waits can leave, and the others get their vectors",
    () =>
      Effect.gen(function* () {
        const { embed } = yield* makeEmbedder(options)
        const expected = yield* embed(texts)
        const leaving = yield* Effect.forkChild(embed([long, long, long]), { startImmediately: true })
        const staying = yield* Effect.forkChild(embed(texts), { startImmediately: true })
        yield* Effect.yieldNow
        yield* Fiber.interrupt(leaving)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(leaving)))
        assert.deepStrictEqual(yield* Fiber.join(staying), expected)
        assert.deepStrictEqual(yield* embed(texts), expected)
      }),
    240_000
  )

  it.live(
    "closed while it works, the work fails, the thread ends, and what is asked later is refused",
    () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const { embed } = yield* Scope.provide(makeEmbedder(options), scope)
        const fiber = yield* Effect.forkChild(embed([long, long, long, long]), { startImmediately: true })
        yield* Effect.yieldNow
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* Fiber.await(fiber))._tag, "Failure")
        assert.strictEqual((yield* Effect.flip(embed(["abc"]))).reason, "lost")
      }),
    240_000
  )
})
