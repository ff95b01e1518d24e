import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { fill, problemWith, read } from "../../../src/tools/mcp/McpTemplate.ts"

const template = (text: string) => Result.getOrThrow(read(text))

describe("a template", () => {
  it("takes arguments by name, inside objects, and as a list of texts", () => {
    assert.deepStrictEqual(fill(template("workspace:{path}"), { path: "a.md" }), ["workspace:a.md"])
    assert.deepStrictEqual(fill(template("order:{order.id}:v{n}"), { order: { id: "x" }, n: 2 }), ["order:x:v2"])
    assert.deepStrictEqual(fill(template("f:{paths}"), { paths: ["a", "b"] }), ["f:a", "f:b"])
  })

  it("takes what stands behind the bar where the argument is absent", () =>
    assert.deepStrictEqual(fill(template("workspace:{path|.}"), {}), ["workspace:."]))

  it("throws where an argument is absent, null or no text, and where it would name too much", () => {
    for (const args of [{}, { path: null }, { path: {} }, { path: [{}] }]) {
      assert.throws(() => fill(template("f:{path}"), args), /the argument path/)
    }
    const many = Array.from({ length: 40 }, String)
    assert.throws(() => fill(template("{a}{b}"), { a: many, b: many }), /more than 1000/)
    // Counted before they are made: this would be more text than there is memory.
    const most = Array.from({ length: 1000 }, String)
    const far = Array.from({ length: 2_000_000 }, () => "x")
    assert.throws(() => fill(template("{a}{b}"), { a: most, b: far }), /more than 1000/)
  })

  it("does not take what an object inherits", () =>
    assert.throws(() => fill(template("f:{constructor.name}"), {}), /missing/))

  it("is refused with a brace too few, or one that names nothing", () => {
    for (const text of ["a{b", "a}b", "{}", "{a.}", "{ |x}"]) assert.isTrue(Result.isFailure(read(text)), text)
  })

  it("is refused by a tool without the parameter, with the nearest one", () => {
    const parameters = { type: "object", properties: { path: { type: "string" } } }
    assert.isUndefined(problemWith(template("f:{path}"), parameters))
    assert.include(problemWith(template("f:{pth}"), parameters), 'did you mean "path"?')
    assert.include(problemWith(template("f:{x}"), { type: "object", properties: {} }), "it takes none")
  })
})
