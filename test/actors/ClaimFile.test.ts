import { fork } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, assert, beforeEach, describe, it } from "@effect/vitest"
import { makeClaim, takeAway } from "../../src/actors/ClaimFile.ts"

let directory = ""
let claim = ""
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "writ-claim-"))
  claim = join(directory, "claim")
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** No process has this number: it is above what any kernel gives out. */
const nobody = 2 ** 30

describe("a claim", () => {
  it("is made by one only, and leaves nothing beside it", () => {
    assert.isTrue(makeClaim(claim, "first"))
    assert.isFalse(makeClaim(claim, "second"))
    assert.deepStrictEqual(readdirSync(directory), ["claim"])
    assert.strictEqual(readFileSync(claim, "utf8"), "first")
  })

  it("is not made where something else is, or where nothing can be", () => {
    mkdirSync(claim)
    assert.isFalse(makeClaim(claim, "first"))
    writeFileSync(join(directory, "file"), "")
    assert.throws(() => makeClaim(join(directory, "file", "below"), "first"), /ENOTDIR/)
  })

  it("is taken away where it says what was seen, and where it is gone already nothing happens", () => {
    writeFileSync(claim, "4711")
    takeAway(claim, "4711")
    takeAway(claim, "4711")
    assert.deepStrictEqual(readdirSync(directory), [])
  })

  it("stays where it says something else by now, also for a moment", () => {
    writeFileSync(claim, "4712")
    takeAway(claim, "4711")
    assert.deepStrictEqual(readdirSync(directory), ["claim"])
    assert.strictEqual(readFileSync(claim, "utf8"), "4712")
  })

  it("is taken away by one at a time, and by the next where that one was ended over it", () => {
    writeFileSync(claim, "4711")
    writeFileSync(`${claim}.taking`, String(process.ppid))
    takeAway(claim, "4711")
    assert.strictEqual(readFileSync(claim, "utf8"), "4711")
    writeFileSync(`${claim}.taking`, String(nobody))
    takeAway(claim, "4711")
    assert.deepStrictEqual(readdirSync(directory), [])
  })

  it("is taken away where the one that was ended over it had the number of this process, as in a container", () => {
    writeFileSync(claim, "4711")
    writeFileSync(`${claim}.taking`, String(process.pid))
    takeAway(claim, "4711")
    assert.deepStrictEqual(readdirSync(directory), [])
  })

  it("is made through a file that nobody else has, also where one with this process's number is there", () => {
    writeFileSync(`${claim}.${process.pid}`, "somebody else's")
    assert.isTrue(makeClaim(claim, "mine"))
    assert.strictEqual(readFileSync(`${claim}.${process.pid}`, "utf8"), "somebody else's")
    assert.deepStrictEqual(readdirSync(directory).toSorted(), ["claim", `claim.${process.pid}`])
  })

  it("has one holder at a time, whoever comes with whom and whatever dead ones are left", {
    timeout: 240_000
  }, async () => {
    writeFileSync(claim, String(nobody))
    const program = join(import.meta.dirname, "../kit/claiming.ts")
    const children = Array.from({ length: 4 }, () => fork(program, [directory, "40"], { execArgv: [] }))
    const ends = await Promise.all(children.map((child) => once(child, "exit")))
    assert.deepStrictEqual(
      ends.map(([code]) => code),
      [0, 0, 0, 0]
    )
  })
})
