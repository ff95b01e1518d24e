import { hash } from "node:crypto"
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ModelHashes from "../../src/actors/ModelHashes.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-hashes-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const place = Effect.map(directory, (path) => {
  const model = join(path, "model.gguf")
  writeFileSync(model, "weights")
  return { model, cache: join(path, "sub", "hashes.json") }
})

const right = hash("sha256", "weights")
const wrong = "f".repeat(64)

/** Puts a hash into the cache that no file has: whoever answers it has not read the file. */
const falsify = (cache: string): void => writeFileSync(cache, readFileSync(cache, "utf8").replace(right, wrong))

describe("hashes of model files", () => {
  it.live("are those of the files", () =>
    Effect.gen(function* () {
      const { cache, model } = yield* place
      assert.strictEqual(yield* ModelHashes.sha256(model, cache), right)
      assert.isTrue(existsSync(cache))
    })
  )

  it.live("are remembered: a file that has not changed is not read again", () =>
    Effect.gen(function* () {
      const { cache, model } = yield* place
      yield* ModelHashes.sha256(model, cache)
      falsify(cache)
      assert.strictEqual(yield* ModelHashes.sha256(model, cache), wrong)
    })
  )

  it.live("are computed again when size or modification time changed", () =>
    Effect.gen(function* () {
      const { cache, model } = yield* place
      yield* ModelHashes.sha256(model, cache)
      falsify(cache)
      utimesSync(model, 1, 2)
      assert.strictEqual(yield* ModelHashes.sha256(model, cache), right)
      writeFileSync(model, "other weights")
      assert.strictEqual(yield* ModelHashes.sha256(model, cache), hash("sha256", "other weights"))
    })
  )

  it.live("are computed again when another file took the place, even of the same size and time", () =>
    Effect.gen(function* () {
      const { cache, model } = yield* place
      const other = `${model}.new`
      writeFileSync(other, "WEIGHTS")
      for (const file of [model, other]) utimesSync(file, 5, 5)
      yield* ModelHashes.sha256(model, cache)
      renameSync(other, model)
      assert.strictEqual(yield* ModelHashes.sha256(model, cache), hash("sha256", "WEIGHTS"))
    })
  )

  it.live("do not need a cache: one that is damaged, or cannot be written, only costs time", () =>
    Effect.gen(function* () {
      const { cache, model } = yield* place
      yield* ModelHashes.sha256(model, cache)
      writeFileSync(cache, "{ not json")
      assert.strictEqual(yield* ModelHashes.sha256(model, cache), right)
      assert.strictEqual(yield* ModelHashes.sha256(model, join(model, "below-a-file.json")), right)
    })
  )

  it.live("of a file that is not there fail as opening it does", () =>
    Effect.gen(function* () {
      const { cache, model } = yield* place
      const error = yield* Effect.flip(ModelHashes.sha256(`${model}.missing`, cache))
      assert.strictEqual(error.reason, "missing_file")
    })
  )
})
