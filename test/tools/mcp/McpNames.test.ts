import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { registeredName, serverName } from "../../../src/tools/mcp/McpNames.ts"

describe("the name of a server's tool", () => {
  it("is server, two underscores, tool", () =>
    assert.strictEqual(registeredName("files", "read_text-file"), "files__read_text-file"))

  it("is the same every time", () =>
    assert.strictEqual(registeredName("s", "read me/at once.please"), "s__read_me_at_once_please_fe0267dc"))

  it("is one that every tool may have, and another for another tool", () =>
    fc.assert(
      fc.property(
        fc.constantFrom("s", "a-b_c", "x".repeat(24)),
        fc.array(fc.string({ unit: "binary" }), { minLength: 1, maxLength: 20 }),
        (server, tools) => {
          const different = [...new Set(tools)]
          const names = different.map((tool) => registeredName(server, tool))
          for (const name of names) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/)
          assert.strictEqual(new Set(names).size, different.length)
        }
      )
    ))

  it("is not confused by tools that differ only in letters that cannot be written", () =>
    assert.notStrictEqual(registeredName("s", "a.b"), registeredName("s", "a/b")))
})

describe("the name of a server", () => {
  it("holds no two underscores, so that where it ends is clear", () => {
    for (const name of ["a", "a-b", "a_b", "A1", "x".repeat(24)]) assert.match(name, serverName)
    for (const name of ["", "a__b", "_a", "a_", "a.b", "x".repeat(25), "ä"]) assert.notMatch(name, serverName)
  })
})
