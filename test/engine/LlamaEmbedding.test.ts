import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { afterAll, describe } from "vitest"
import { cosine } from "../../src/effects/eval/Embedder.ts"
import { makeControl } from "../../src/engine/LlamaControl.ts"
import { type EmbeddingOptions, load } from "../../src/engine/LlamaEmbedding.ts"
import { type GgufRecipe, makeGguf } from "../kit/gguf.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-embedding-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const write = (name: string, bytes: Uint8Array | string) => {
  const path = Path.join(directory, name)
  Fs.writeFileSync(path, bytes)
  return path
}
const random = (name: string, recipe: GgufRecipe = {}) => write(`${name}.gguf`, makeGguf(recipe))
const shipped = Path.resolve(import.meta.dirname, "../../models/tiny-tool-agent/tiny-tool-agent-q8_0.gguf")

const open = (modelPath: string, more: Partial<EmbeddingOptions> = {}, control = makeControl()) =>
  load({ modelPath, threads: 1, gpu: false, ...more }, control)
const similarity = (a: ReadonlyArray<number>, b: ReadonlyArray<number>) => cosine(a, b) ?? assert.fail("no direction")

/** The mean of vectors. */
const mean = (all: ReadonlyArray<ReadonlyArray<number>>): ReadonlyArray<number> =>
  all[0]!.map((_, at) => all.reduce((sum, one) => sum + one[at]!, 0) / all.length)
const farthest = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): number =>
  Math.max(...a.map((value, at) => Math.abs(value - b[at]!)))

/** In the byte vocabulary each of these characters is a token, however they stand together. */
const letters = (count: number): string => Array.from({ length: count }, (_, at) => "abcdfgjkl"[(at * 7) % 9]).join("")

describe("LlamaEmbedding", () => {
  for (const [name, modelPath] of [
    ["the shipped model", () => shipped],
    ["a model with recurrent layers", () => random("hybrid", { arch: "qwen35" })],
    ["a model that sees texts as a whole", () => random("whole", { pooling: 1, causal: false })]
  ] as const) {
    it.live(
      `equal texts have one vector, others others: ${name}`,
      () =>
        Effect.gen(function* () {
          const { embed } = yield* open(modelPath())
          const long = letters(150)
          const [first, other, again, longer] = yield* embed(["It is 5.", "Bananas are yellow.", "It is 5.", long])
          assert.deepStrictEqual(again, first)
          assert.deepStrictEqual(yield* embed([long, "It is 5."]), [longer!, first!])
          assert.strictEqual(similarity(first!, again!), 1)
          assert.isBelow(similarity(first!, other!), 0.999)
          assert.isBelow(similarity(first!, longer!), 0.999)
          assert.isAbove(first!.length, 32)
          assert.strictEqual(first!.length, other!.length)
        }),
      240_000
    )
  }

  it.live(
    "pools as the file says: over more tokens than a batch has, the mean of them all, the first, the last",
    () =>
      Effect.gen(function* () {
        const text = letters(150)
        const plain = yield* open(random("plain"))
        // A token that sees only what is before it has, in the middle of a text, the vector it has at the end of one.
        const each = yield* plain.embed(Array.from(text, (_, at) => text.slice(0, at + 1)))
        for (const [pooling, said, expected] of [
          [1, "mean", mean(each)],
          [2, "cls", each[0]!],
          [3, "last", each.at(-1)!]
        ] as const) {
          const pooled = yield* open(random(said, { pooling }))
          const [vector] = yield* pooled.embed([text])
          assert.strictEqual(pooled.identity.build?.["pooling"], said)
          assert.isBelow(farthest(vector!, expected), 0.02, said)
          assert.isAbove(farthest(vector!, pooling === 2 ? each[1]! : each[0]!), 0.1, said)
        }
      }),
    240_000
  )

  it.live(
    "a text as long as the context has a vector, one longer by a token is a failure that says so",
    () =>
      Effect.gen(function* () {
        for (const recipe of [{ ctx: 512 }, { ctx: 512, pooling: 1 }]) {
          const embedder = yield* open(random("short", recipe))
          assert.strictEqual(embedder.identity.contextTokens, 512)
          assert.strictEqual((yield* embedder.embed([letters(512)])).length, 1)
          const before = embedder.counters.evaluatedTokens
          const error = yield* Effect.flip(embedder.embed(["fine", letters(513)]))
          assert.strictEqual(error.reason, "context_overflow")
          assert.include(error.message, "Text 2 of 2 has 513 tokens, short.gguf takes 512 at a time")
          assert.strictEqual(embedder.counters.evaluatedTokens, before)
        }
        const less = yield* open(random("less"), { contextTokens: 16 })
        assert.strictEqual((yield* Effect.flip(less.embed([letters(17)]))).reason, "context_overflow")
      }),
    240_000
  )

  it.live(
    "what cannot make a vector is a failure by name",
    () =>
      Effect.gen(function* () {
        const broken = makeGguf()
        broken.fill(0xff, broken.length - 4096)
        for (const [path, reason, said] of [
          [random("grades", { pooling: 4 }), "unsupported", "grades.gguf makes no vectors: it grades pairs"],
          [random("halves", { claims: "t5" }), "unsupported", "halves.gguf makes no vectors: it has an encoder"],
          [Path.join(directory, "nowhere.gguf"), "missing_file", "nowhere.gguf"],
          [write("text.gguf", "no model"), "bad_file", "text.gguf"]
        ] as const) {
          const error = yield* Effect.flip(Effect.scoped(open(path)))
          assert.strictEqual(error.reason, reason)
          assert.include(error.message, said)
        }
        const { embed } = yield* open(write("broken.gguf", broken))
        const error = yield* Effect.flip(embed(["abc"]))
        assert.strictEqual(error.reason, "failed")
        assert.include(error.message, "broken.gguf made no vector")
        const fine = yield* open(random("fine"))
        assert.strictEqual((yield* Effect.flip(fine.embed(["abc", ""]))).reason, "bad_request")
        assert.deepStrictEqual(yield* fine.embed([]), [])
      }),
    240_000
  )

  it.live(
    "interrupted within a text it stops before the text's end, and the next vector is as ever",
    () =>
      Effect.gen(function* () {
        const embedder = yield* open(random("slow", { dim: 128, ff: 512, layers: 4 }))
        const [expected] = yield* embedder.embed(["abc"])
        const before = embedder.counters.evaluatedTokens
        const fiber = yield* Effect.forkChild(embedder.embed([letters(4000)]))
        while (embedder.counters.evaluatedTokens === before) yield* Effect.promise(() => new Promise(setImmediate))
        yield* Fiber.interrupt(fiber)
        assert.isBelow(embedder.counters.evaluatedTokens - before, 4000)
        assert.deepStrictEqual(yield* embedder.embed(["abc"]), [expected!])
      }),
    240_000
  )

  it.live(
    "when the thread is told to stop, a text ends early and typed, and nothing runs after the scope",
    () =>
      Effect.gen(function* () {
        const control = makeControl()
        const modelPath = random("stopped", { dim: 128, ff: 512, layers: 4 })
        const kept = yield* Effect.scoped(
          Effect.gen(function* () {
            const embedder = yield* open(modelPath, {}, control)
            const fiber = yield* Effect.forkChild(Effect.flip(embedder.embed([letters(4000)])))
            while (embedder.counters.evaluatedTokens === 0) yield* Effect.promise(() => new Promise(setImmediate))
            control.stop()
            assert.strictEqual((yield* Fiber.join(fiber)).reason, "lost")
            assert.isBelow(embedder.counters.evaluatedTokens, 4000)
            return embedder
          })
        )
        const count = kept.counters.evaluatedTokens
        assert.strictEqual((yield* Effect.flip(kept.embed(["abc"])))._tag, "EngineError")
        assert.strictEqual(kept.counters.evaluatedTokens, count)
      }),
    240_000
  )
})
