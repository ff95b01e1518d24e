import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { writeJson, writeWhole } from "../../src/actors/WholeFile.ts"

const within = (use: (place: string) => void): void => {
  const place = mkdtempSync(join(tmpdir(), "writ-whole-file-"))
  try {
    use(place)
  } finally {
    rmSync(place, { recursive: true })
  }
}

describe("a file that is written whole", () => {
  it("holds its pieces in order in place of what was there, and nothing lies beside it", () =>
    within((place) => {
      const file = join(place, "a.txt")
      writeFileSync(file, "a longer text that was there before")
      writeWhole(file, ["α", "", "β\n"])
      assert.strictEqual(readFileSync(file, "utf8"), "αβ\n")
      assert.deepStrictEqual(readdirSync(place), ["a.txt"])
    }))

  it("is what it was, with nothing beside it, where the new one comes to no end", () =>
    within((place) => {
      const file = join(place, "a.txt")
      writeFileSync(file, "before")
      const pieces = function* () {
        yield "a part"
        throw new Error("no more")
      }
      assert.throws(() => writeWhole(file, pieces()), "no more")
      assert.strictEqual(readFileSync(file, "utf8"), "before")
      assert.deepStrictEqual(readdirSync(place), ["a.txt"])
    }))

  it("leaves nothing behind where it cannot get to its place", () =>
    within((place) => {
      const taken = join(place, "taken")
      mkdirSync(join(taken, "inside"), { recursive: true })
      assert.throws(() => writeWhole(taken, ["text"]))
      assert.deepStrictEqual(readdirSync(place), ["taken"])
    }))

  it("makes no directory", () =>
    within((place) => {
      assert.throws(() => writeWhole(join(place, "none/a.txt"), ["text"]), /ENOENT/)
      assert.deepStrictEqual(readdirSync(place), [])
    }))

  it("is JSON that people can read, with an end of line", () =>
    within((place) => {
      const file = join(place, "a.json")
      writeJson(file, { one: [1] })
      assert.strictEqual(readFileSync(file, "utf8"), '{\n  "one": [\n    1\n  ]\n}\n')
    }))
})
