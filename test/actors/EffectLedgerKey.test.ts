import { assert, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import { argumentsDigest, businessKeyOf, keyOf } from "../../src/actors/EffectLedgerKey.ts"

const place = fc.record({
  runId: fc.string(),
  step: fc.string(),
  ordinal: fc.nat(20),
  tool: fc.string(),
  argumentsDigest: fc.string().map(argumentsDigest)
})

it("two places have the same key exactly when they are the same place", () => {
  fc.assert(
    fc.property(place, place, (a, b) => {
      assert.match(keyOf(a), /^[0-9a-f]{64}$/)
      assert.strictEqual(keyOf(a), keyOf({ ...a }))
      assert.strictEqual(keyOf(a) === keyOf(b), JSON.stringify(a) === JSON.stringify(b))
    })
  )
})

it("text that moves from one part of a place to the next makes another key", () => {
  const at = { runId: "run-1", step: "tool-0", ordinal: 1, tool: "pay", argumentsDigest: argumentsDigest("{}") }
  assert.notStrictEqual(keyOf({ ...at, runId: "run-", step: "1tool-0" }), keyOf(at))
})

it("a business key is the same in every run and bound to tool and major version", () => {
  const key = Result.getOrThrow(businessKeyOf("invoice", 1, "order-431"))
  assert.match(key, /^[0-9a-f]{64}$/)
  assert.deepStrictEqual(businessKeyOf("invoice", 1, "order-431"), Result.succeed(key))
  for (const other of [
    businessKeyOf("refund", 1, "order-431"),
    businessKeyOf("invoice", 2, "order-431"),
    businessKeyOf("invoice", 1, "order-432")
  ]) {
    assert.notStrictEqual(Result.getOrThrow(other), key)
  }
})

it("a business key that is empty, blank or oversized is refused", () => {
  for (const name of ["", " \n", "x".repeat(257)]) {
    const key = businessKeyOf("invoice", 1, name)
    assert.strictEqual(Result.isFailure(key) && key.failure.reason, "invalid")
  }
})
