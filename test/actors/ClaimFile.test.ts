import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { takeAway } from "../../src/actors/ClaimFile.ts"

const directory = mkdtempSync(join(tmpdir(), "writ-claim-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe("a claim that is taken away", () => {
  const claim = join(directory, "claim")

  it("is gone where it says what was seen, and where it is gone already nothing happens", () => {
    writeFileSync(claim, "4711")
    takeAway(claim, "4711")
    takeAway(claim, "4711")
    assert.deepStrictEqual(readdirSync(directory), [])
  })

  it("stays where it says something else by now", () => {
    writeFileSync(claim, "4712")
    takeAway(claim, "4711")
    assert.deepStrictEqual(readdirSync(directory), ["claim"])
    assert.strictEqual(readFileSync(claim, "utf8"), "4712")
  })

  it("that cannot be moved is a failure of the file system", () => {
    assert.throws(() => takeAway(join(claim, "below"), "4711"), /ENOTDIR/)
  })
})
