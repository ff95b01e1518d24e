import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ModelStore from "../../src/actors/ModelStore.ts"
import { directory } from "../kit/cli.ts"

/** A directory with these files, each of one byte. */
const holding = Effect.fnUntraced(function* (...files: ReadonlyArray<string>) {
  const models = yield* directory
  for (const file of files) writeFileSync(join(models, file), "x")
  const listed = () => ModelStore.list(models).map(({ files, name }) => [name, files.length])
  return { models, listed }
})

const [one, two] = ["a-00001-of-00002.gguf", "a-00002-of-00002.gguf"]

describe("models in a directory", () => {
  it.live("are files and parts of files, and nothing else", () =>
    Effect.gen(function* () {
      const { listed } = yield* holding(one, two, "b.GGUF", "c.gguf.ipull", "b.gguf.json", "notes.txt")
      assert.deepStrictEqual(listed(), [
        ["a", 2],
        ["b", 1],
        ["c", 1]
      ])
      assert.deepStrictEqual(ModelStore.list("/nowhere"), [])
    }).pipe(Effect.scoped)
  )

  it.live("that are called alike are not mixed, and removing one leaves the others", () =>
    Effect.gen(function* () {
      const { listed, models } = yield* holding(one, two, "a-00001-of-00003.gguf", "a.gguf")
      assert.sameDeepMembers(listed(), [
        ["a", 1],
        ["a-00001-of-00002", 2],
        ["a-00001-of-00003", 1]
      ])
      assert.strictEqual(yield* ModelStore.remove(models, ModelStore.find(models, "a.gguf")!), 1)
      assert.deepStrictEqual(readdirSync(models), [one, "a-00001-of-00003.gguf", two])
      assert.sameDeepMembers(listed(), [
        ["a", 2],
        ["a-00001-of-00003", 1]
      ])
    }).pipe(Effect.scoped)
  )
})

describe("names that were given", () => {
  it.live("are not written over where the file holds something else", () =>
    Effect.gen(function* () {
      const { models } = yield* holding()
      const file = join(models, "aliases.json")
      writeFileSync(file, "[]")
      assert.deepStrictEqual(ModelStore.aliases(models), {})
      const { message } = yield* Effect.flip(ModelStore.setAlias(models, "mine", "a"))
      assert.include(message, `${file} cannot be written: it is not a list of names`)
      assert.strictEqual(readFileSync(file, "utf8"), "[]")
      assert.isFalse(existsSync(`${file}.${process.pid}.tmp`))
    }).pipe(Effect.scoped)
  )
})
