import { appendFileSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Approvals from "../../src/actors/Approvals.ts"
import { directory } from "../kit/cli.ts"

const at = 1_000_000
const approval: Approvals.Approval = {
  schema: "writ.approval.v1",
  run: "run-1",
  call: "call-0-0",
  tool: "send",
  digest: "a".repeat(64),
  decision: "allow",
  by: "ada",
  at: Approvals.moment(at),
  expires_at: Approvals.moment(at + 60_000)
}
const wanted = { runId: "run-1", callId: "call-0-0", digest: "a".repeat(64) }

describe("the record of approvals", () => {
  it.effect("keeps decisions in order, readable by their owner only", () =>
    Effect.gen(function* () {
      const run = yield* directory
      assert.deepStrictEqual(yield* Approvals.read(run), [])
      const second: Approvals.Approval = { ...approval, decision: "deny", expires_at: null, reason: "wrong\nperson" }
      yield* Approvals.append(run, approval)
      yield* Approvals.append(run, second)
      assert.deepStrictEqual(yield* Approvals.read(run), [approval, second])
      const path = join(run, Approvals.fileName)
      assert.strictEqual(readFileSync(path, "utf8").split("\n").length, 3, "one line each")
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
    })
  )

  it.effect("does not let a line that a crash has cut swallow the next one, and takes it for no decision", () =>
    Effect.gen(function* () {
      const run = yield* directory
      yield* Approvals.append(run, approval)
      appendFileSync(join(run, Approvals.fileName), JSON.stringify(approval).slice(0, 60))
      assert.strictEqual((yield* Approvals.read(run)).length, 1)
      yield* Approvals.append(run, { ...approval, call: "call-1-0" })
      assert.deepStrictEqual(
        (yield* Approvals.read(run)).map(({ call }) => call),
        ["call-0-0", "call-1-0"]
      )
    })
  )

  it.effect("takes what is no decision for none, whoever wrote it", () =>
    Effect.gen(function* () {
      const run = yield* directory
      const wrong = [
        { ...approval, digest: "abc" },
        { ...approval, decision: "maybe" },
        { ...approval, expires_at: "tomorrow" },
        { ...approval, schema: "writ.approval.v2" },
        null
      ]
      writeFileSync(join(run, Approvals.fileName), wrong.map((one) => `${JSON.stringify(one)}\n`).join(""))
      assert.deepStrictEqual(yield* Approvals.read(run), [])
    })
  )

  it.effect("says what cannot be read or written, and follows no link", () =>
    Effect.gen(function* () {
      const run = yield* directory
      mkdirSync(join(run, Approvals.fileName))
      assert.include((yield* Effect.flip(Approvals.read(run))).message, "cannot be read")
      assert.include((yield* Effect.flip(Approvals.append(run, approval))).message, "cannot be written")
      const other = yield* directory
      writeFileSync(join(other, "elsewhere"), "")
      symlinkSync(join(other, "elsewhere"), join(other, Approvals.fileName))
      yield* Effect.flip(Approvals.append(other, approval))
      assert.strictEqual(readFileSync(join(other, "elsewhere"), "utf8"), "")
    })
  )
})

describe("finding a decision", () => {
  const found = (approvals: ReadonlyArray<Approvals.Approval>, now = at) => Approvals.find(approvals, wanted, now)._tag

  it("counts for its own call of its own run with its own arguments only", () => {
    assert.strictEqual(found([]), "Nothing")
    assert.strictEqual(found([approval]), "Decided")
    assert.strictEqual(found([{ ...approval, run: "run-2" }]), "Nothing")
    assert.strictEqual(found([{ ...approval, call: "call-0-1" }]), "Nothing")
    assert.strictEqual(found([{ ...approval, digest: "b".repeat(64) }]), "Other")
  })

  it("lets the newest decision about a call count", () => {
    const no: Approvals.Approval = { ...approval, decision: "deny", expires_at: null }
    const newest = Approvals.find([approval, no], wanted, at)
    assert.strictEqual(newest._tag === "Decided" && newest.approval.decision, "deny")
    assert.strictEqual(found([approval, { ...approval, digest: "b".repeat(64) }]), "Other")
  })

  it("lets a yes expire, and one without an end at once, but never a no", () => {
    assert.strictEqual(found([approval], at + 60_000), "Decided")
    assert.strictEqual(found([approval], at + 60_001), "Expired")
    assert.strictEqual(found([{ ...approval, expires_at: null }]), "Expired")
    assert.strictEqual(found([{ ...approval, decision: "deny", expires_at: null }], at * 1e6), "Decided")
  })
})
