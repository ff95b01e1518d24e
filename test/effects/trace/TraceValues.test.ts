import { assert, describe, it } from "@effect/vitest"
import { apart, isLeftOut, sha256 } from "../../../src/effects/trace/TraceValues.ts"

const [one, two] = ["a".repeat(64), "b".repeat(64)]
const paths = (a: unknown, b: unknown, sameKey = false) =>
  apart("", a, b, { sameKey }).map(({ comparison, path }) => [path, comparison])

describe("recorded values", () => {
  it("are compared field by field and item by item", () => {
    assert.deepStrictEqual(paths({ a: [1, { b: 2 }], c: 3 }, { a: [1, { b: 4 }], d: 3 }), [
      ["a[1].b", "different"],
      ["c", "different"],
      ["d", "different"]
    ])
    assert.deepStrictEqual(paths({ a: 1, b: 2 }, { b: 2, a: 1 }), [])
  })

  it("that were left out are the same only if their digests are, and unknown under different keys", () => {
    assert.deepStrictEqual(paths({ bytes: 3, hmac: one }, { bytes: 3, hmac: one }), [])
    assert.deepStrictEqual(paths({ bytes: 3, hmac: one }, { bytes: 3, hmac: two }), [["", "unknown"]])
    assert.deepStrictEqual(paths({ bytes: 3, hmac: one }, { bytes: 3, hmac: two }, true), [["", "different"]])
    assert.deepStrictEqual(paths({ bytes: 3, hmac: one }, { bytes: 4, hmac: two }), [["", "different"]])
  })

  it("of which one was left out are told apart by their lengths in UTF-8 alone", () => {
    assert.deepStrictEqual(paths({ bytes: 2, hmac: one }, "é"), [["", "unknown"]])
    assert.deepStrictEqual(paths("e", { bytes: 2, hmac: one }), [["", "different"]])
    assert.deepStrictEqual(paths({ bytes: 7, hmac: one }, { a: 1 }), [["", "unknown"]])
  })

  it("with a plain digest can be compared with the text itself", () => {
    assert.deepStrictEqual(paths({ bytes: 2, sha256: sha256("hi") }, "hi"), [])
    assert.deepStrictEqual(paths({ sha256: sha256("hi") }, "ho"), [["", "different"]])
  })

  it("are taken for left out only if they are nothing else", () => {
    assert.isTrue(isLeftOut({ bytes: 1, hmac: one }))
    for (const value of [
      { bytes: 1 },
      { bytes: 1, hmac: "x" },
      { bytes: 1, hmac: one, more: 1 },
      { bytes: "1", hmac: one },
      null,
      "x"
    ])
      assert.isFalse(isLeftOut(value))
  })

  it("are compared in shared fields only as deep as was asked for", () => {
    const options = { sameKey: false, shared: 1 }
    assert.deepStrictEqual(
      apart("", { a: { x: 1 }, only: 1 }, { a: { y: 1 } }, options).map(({ path }) => path),
      ["a.x", "a.y"]
    )
  })
})
