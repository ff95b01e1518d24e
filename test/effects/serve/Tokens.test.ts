import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { bearer, parse } from "../../../src/effects/serve/Tokens.ts"

const ann = "ann:aaaaaaaaaaaaaaaa"

describe("tokens", () => {
  it("are found by what they are, and by nothing else", () => {
    const { holder, names } = Result.getOrThrow(parse(`# who may ask\n\n${ann}\r\n bob:b:bbbbbbbbbbbbbbbb\n`))
    assert.deepStrictEqual(names, ["ann", "bob"])
    assert.strictEqual(holder("aaaaaaaaaaaaaaaa"), "ann")
    assert.strictEqual(holder("b:bbbbbbbbbbbbbbbb"), "bob")
    for (const other of ["", "aaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaab", "AAAAAAAAAAAAAAAA", ann]) {
      assert.isUndefined(holder(other), other)
    }
  })

  it.each([
    ["", "no token"],
    ["# nobody", "no token"],
    ["ann", "line 1: it is not NAME:TOKEN"],
    [`${ann}\nbob:short`, "line 2: its token is shorter"],
    ["a b:aaaaaaaaaaaaaaaa", "its name"],
    ["ann:aaaaaaaa aaaaaaaa", "visible ASCII"],
    ["ann:ääääääääääääääää", "visible ASCII"],
    [`${ann}\nann:bbbbbbbbbbbbbbbb`, "there twice"],
    [`${ann}\nbob:aaaaaaaaaaaaaaaa`, "its token is there twice"]
  ])("are refused without being repeated: %j", (text, reason) => {
    const found = parse(text)
    if (Result.isSuccess(found)) throw new Error("accepted")
    assert.include(found.failure, reason)
    assert.notMatch(found.failure, /aaaaaaaa|short"|bbbbbbbb/)
  })

  it("stand in a header of their own kind", () => {
    assert.strictEqual(bearer("Bearer abc"), "abc")
    assert.strictEqual(bearer("bearer  abc "), "abc")
    for (const header of [undefined, "", "abc", "Basic abc", "Bearer", "Bearer a b"]) assert.isUndefined(bearer(header))
  })
})
