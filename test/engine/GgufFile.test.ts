import * as Crypto from "node:crypto"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { afterAll, describe } from "vitest"
import type { EngineError } from "../../src/engine/EngineError.ts"
import * as GgufFile from "../../src/engine/GgufFile.ts"
import { makeGguf } from "../kit/gguf.ts"

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-gguf-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))

let files = 0
const file = (bytes: Uint8Array | string, name = `model-${files++}.gguf`): string => {
  const path = Path.join(directory, name)
  Fs.writeFileSync(path, bytes)
  return path
}
const good = makeGguf({ ctx: 512 })
/** Bytes of a little-endian number at an offset of the good file, replaced. */
const patched = (offset: number, value: bigint): Buffer => {
  const bytes = Buffer.from(good)
  bytes.writeBigUInt64LE(value, offset)
  return bytes
}
const headerBytes = Effect.map(
  Effect.suspend(() => GgufFile.read(file(good))),
  (info) => info.headerBytes
)

describe("GgufFile", () => {
  it.effect("reads what a file says about itself", () =>
    Effect.gen(function* () {
      const path = file(good)
      const info = yield* GgufFile.read(path)
      assert.strictEqual(info.name, "random llama")
      assert.strictEqual(info.architecture, "llama")
      assert.strictEqual(info.contextTokens, 512)
      assert.strictEqual(info.quantization, "F16")
      assert.strictEqual(info.tokenizer, "gpt2")
      assert.strictEqual(info.vocabularySize, 288)
      assert.strictEqual(info.tensorCount, 3 + 2 * 9)
      assert.strictEqual(info.fileBytes, good.length)
      assert.include(info.template ?? "", "<|im_start|>")
      assert.deepStrictEqual(info.specialTokens, {
        eos: { id: 258, text: "<|im_end|>" },
        padding: { id: 256, text: "<|endoftext|>" }
      })
      const head = Crypto.createHash("sha256").update(good.subarray(0, info.headerBytes)).digest("hex")
      assert.strictEqual(info.headerHash, head)
      assert.strictEqual(yield* GgufFile.sha256(path), Crypto.createHash("sha256").update(good).digest("hex"))
    })
  )

  const refuses = (name: string, make: Effect.Effect<string, EngineError>, reason: string, says: string) =>
    it.effect(`refuses ${name}`, () =>
      Effect.gen(function* () {
        const path = yield* make
        const error = yield* Effect.flip(GgufFile.read(path))
        assert.strictEqual(error.reason, reason)
        assert.include(error.message, says)
        assert.include(error.message, Path.basename(path))
      })
    )
  refuses(
    "a file that is not there",
    Effect.succeed(Path.join(directory, "none.gguf")),
    "missing_file",
    "no model file"
  )
  refuses("a directory", Effect.succeed(directory), "missing_file", "is a directory")
  refuses(
    "an empty file",
    Effect.sync(() => file("")),
    "bad_file",
    "empty"
  )
  refuses(
    "a text file",
    Effect.sync(() => file("# Not a model\n".repeat(100))),
    "bad_file",
    "not a GGUF file"
  )
  refuses(
    "an unknown version",
    Effect.sync(() => file(makeGguf({ version: 99 }))),
    "bad_file",
    "version 99"
  )
  refuses(
    "a big-endian file",
    Effect.sync(() => file(makeGguf({ version: 0x03000000 }))),
    "bad_file",
    "big-endian"
  )
  refuses(
    "a file that ends inside its header",
    Effect.map(headerBytes, (bytes) => file(good.subarray(0, bytes - 10))),
    "bad_file",
    "its header ends inside"
  )
  refuses(
    "a file that ends inside its tensors",
    Effect.sync(() => file(good.subarray(0, good.length - 64))),
    "bad_file",
    "64 bytes of tensor data are missing"
  )
  refuses(
    "an absurd number of tensors",
    Effect.sync(() => file(patched(8, 1n << 40n))),
    "bad_file",
    "tensors"
  )
  refuses(
    "an absurd number of metadata entries",
    Effect.sync(() => file(patched(16, 1n << 50n))),
    "bad_file",
    "metadata"
  )
  refuses(
    "an absurd length of a key",
    Effect.sync(() => file(patched(24, 1n << 62n))),
    "bad_file",
    "absurd"
  )

  it.effect("answers every damaged header with a typed error or a reading, in bounds", () =>
    Effect.gen(function* () {
      const bytes = yield* headerBytes
      const damage = fc.array(fc.tuple(fc.nat(bytes - 1), fc.nat(255)), { minLength: 1, maxLength: 8 })
      for (const edits of fc.sample(damage, { numRuns: 300, seed: 7 })) {
        const copy = Buffer.from(good)
        for (const [at, value] of edits) copy[at] = value
        const result = yield* Effect.result(GgufFile.read(file(copy, "damaged.gguf")))
        if (result._tag === "Failure") assert.strictEqual(result.failure.reason, "bad_file")
        else assert.isAtMost(result.success.headerBytes, copy.length)
      }
    })
  )

  it.effect("accepts a file cut at any place only if nothing is missing", () =>
    Effect.gen(function* () {
      for (const length of fc.sample(fc.nat(good.length - 1), { numRuns: 100, seed: 3 })) {
        const result = yield* Effect.result(GgufFile.read(file(good.subarray(0, length), "cut.gguf")))
        // the last tensor's padding is not data
        if (length < good.length - 32) assert.strictEqual(result._tag, "Failure")
      }
    })
  )
})
