import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { putInPlace } from "../../../../src/effects/conversation/assemble/Staging.ts"
import { project, put, tree } from "../../../kit/projects.ts"

const files = [
  { name: "a.yaml", text: "a" },
  { name: "b.yaml", text: "b" }
]

/** Gives these names in turn. */
const inTurn = (...names: ReadonlyArray<string>): Effect.Effect<string> => {
  let next = 0
  return Effect.sync(() => names[next++] ?? "none left")
}

describe("files that are put in place together", () => {
  it.live("are all in a directory of their own, and nothing is beside it", () =>
    Effect.gen(function* () {
      const runs = join(yield* project({}), "deep", "runs")
      assert.strictEqual(yield* putInPlace(runs, files, inTurn("one")), "one")
      assert.deepStrictEqual(tree(runs), { ".gitignore": "*\n", "one/a.yaml": "a", "one/b.yaml": "b" })
      assert.deepStrictEqual(readdirSync(runs).sort(), [".gitignore", "one"])
    })
  )

  it.live("get another name where the first is taken, by files or by an empty directory", () =>
    Effect.gen(function* () {
      const runs = yield* project({ "one/a.yaml": "old" })
      mkdirSync(join(runs, "two"))
      assert.strictEqual(yield* putInPlace(runs, files, inTurn("one", "two", "three")), "three")
      assert.deepStrictEqual(tree(runs), { "one/a.yaml": "old", "three/a.yaml": "a", "three/b.yaml": "b" })
    })
  )

  it.live("are not there at all where one of them cannot be written", () =>
    Effect.gen(function* () {
      const runs = yield* project({})
      const { message } = yield* Effect.flip(
        putInPlace(runs, [...files, { name: "none/c.yaml", text: "c" }], inTurn("one"))
      )
      assert.match(message, /it cannot be written: ENOENT/)
      assert.deepStrictEqual(readdirSync(runs), [])
    })
  )

  it.live("are never seen before all are there: what a killed process left is no run, and goes", () =>
    Effect.gen(function* () {
      const runs = yield* project({})
      // No process has this id: Linux stops at 2^22.
      put(runs, { ".one.2147483646.tmp/a.yaml": "a", [`.two.${process.ppid}.tmp/a.yaml`]: "a", "mine.tmp/x": "x" })
      writeFileSync(join(runs, ".notes"), "")
      yield* putInPlace(runs, files, inTurn("three"))
      assert.isFalse(existsSync(join(runs, ".one.2147483646.tmp")))
      assert.deepStrictEqual(readdirSync(runs).sort(), [".notes", `.two.${process.ppid}.tmp`, "mine.tmp", "three"])
    })
  )
})
