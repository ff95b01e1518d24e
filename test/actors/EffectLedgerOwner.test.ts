import { spawnSync } from "node:child_process"
import { assert, it } from "@effect/vitest"
import { lives, newOwner } from "../../src/actors/EffectLedgerOwner.ts"

const lease = 1_000
const me = newOwner()

it("two owners in one process are two", () => {
  const other = newOwner()
  assert.notStrictEqual(other.id, me.id)
  assert.strictEqual(other.place, me.place)
  assert.isTrue(lives(me, other, 0, lease))
})

it("a process that has ended is dead, however fresh its lease", () => {
  const { pid } = spawnSync(process.execPath, ["--version"])
  assert.isFalse(lives(me, { ...me, id: "other", pid }, 0, lease))
})

it("a process that only has the number of the owner is not the owner", () => {
  assert.isFalse(lives(me, { ...me, id: "other", started: "1" }, 0, lease))
})

it("where the start of a process is not known, its lease has to agree", () => {
  const other = { ...me, id: "other", started: "" }
  assert.isTrue(lives(me, other, lease, lease))
  assert.isFalse(lives(me, other, lease + 1, lease))
})

it("elsewhere a lease decides, whatever process has that number here", () => {
  const elsewhere = { ...me, id: "other", place: "another machine" }
  assert.isTrue(lives(me, elsewhere, lease, lease))
  assert.isFalse(lives(me, elsewhere, lease + 1, lease))
  const { pid } = spawnSync(process.execPath, ["--version"])
  assert.isTrue(lives(me, { ...elsewhere, pid }, 0, lease))
})
