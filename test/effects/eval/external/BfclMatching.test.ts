/** The leaderboard's rules one by one: what counts as the same value, what may be absent, which call answers what. */
import { assert, describe, it } from "@effect/vitest"
import { callProblem, callsProblem, standard } from "../../../../src/effects/eval/external/BfclMatching.ts"
import type { Json, JsonObject } from "../../../../src/tools/JsonText.ts"

const schema = (properties: JsonObject, required: ReadonlyArray<string> = []): JsonObject => ({
  type: "object",
  properties,
  required
})

/** Is `value` right for a parameter of this declaration with these allowed values? */
const takes = (declared: JsonObject, allowed: ReadonlyArray<Json>, value: Json): boolean =>
  callProblem(
    { name: "f", input: { p: value } },
    { name: "f", parameters: { p: allowed } },
    schema({ p: declared })
  ) === undefined

const text = { type: "string" }
const integer = { type: "integer" }
const number = { type: "number" }
const list = (items: string) => ({ type: "array", items: { type: items } })

describe("a value", () => {
  const table: ReadonlyArray<readonly [claim: string, JsonObject, ReadonlyArray<Json>, right: Json[], wrong: Json[]]> =
    [
      [
        "of text is compared without case, spaces and the marks ,./-_*^, with one kind of quotes",
        text,
        ["April 1, 2024", "the 'first'"],
        ["april 1 2024", "APRIL-1/2024", 'The "First"'],
        ["April 2, 2024", "April 1; 2024", ""]
      ],
      ["of text may be the mark of absence where that is allowed", text, ["m2", ""], ["", "-", "M2"], ["m3"]],
      ["that is an integer is a whole number, however it is written", integer, [5], [5, 5.0], [5.5, "5", true, null]],
      ["that is a number may be a whole one", number, [12.5, 3], [12.5, 3], [12, "12.5"]],
      ["that is a boolean is no text and no number", { type: "boolean" }, [true], [true], ["true", 1, false]],
      ["without a type is a text", {}, ["alarm"], ["Alarm"], [["alarm"], 1]],
      [
        "of another type than declared is compared as it is: a variable",
        integer,
        ["MAX_SIZE"],
        ["MAX_SIZE"],
        ["max_size", 7]
      ],
      ["that may be null is null, or what is declared", text, [null, "x"], [null, "x"], ["X", 0]],
      [
        "that is a list has its elements in order, texts compared as texts",
        list("string"),
        [["Blue", "deep red"]],
        [["blue", "Deep Red"]],
        [["deep red", "blue"], ["blue"], "blue", ["blue", 1]]
      ],
      ["that is an optional list may be empty", list("integer"), [[1, 2], ""], [[1, 2], []], [[2, 1]]],
      ["that is a list of numbers takes whole ones among others", list("number"), [[1.5, 2]], [[1.5, 2]], [[1.5, "2"]]],
      [
        "that is an object has allowed values key by key, with optional keys",
        { type: "object" },
        [{ name: ["Ida"], people: [4, 5], note: ["", "window"] }],
        [
          { name: "ida", people: 5 },
          { name: "Ida", people: 4, note: "Window" }
        ],
        [{ name: "Ida" }, { name: "Ida", people: 6 }, { name: "Ida", people: 4, other: 1 }, "Ida"]
      ],
      [
        "that is a list of objects has them in order, and as many",
        list("object"),
        [[{ bed: [1] }, { bed: [2] }]],
        [[{ bed: 1 }, { bed: 2 }]],
        [[{ bed: 2 }, { bed: 1 }], [{ bed: 1 }], [{ bed: 1 }, { bed: 2 }, { bed: 3 }], [1, 2]]
      ]
    ]
  for (const [claim, declared, allowed, right, wrong] of table) {
    it(claim, () => {
      for (const value of right) assert.isTrue(takes(declared, allowed, value), JSON.stringify(value))
      for (const value of wrong) assert.isFalse(takes(declared, allowed, value), JSON.stringify(value))
    })
  }

  it("is the same text whatever the marks around it", () => {
    assert.strictEqual(standard("A-b_c.d/e*f^g, 'h'"), 'abcdefg"h"')
  })
})

describe("a call", () => {
  const declared = schema({ a: integer, b: text, c: text }, ["a"])
  const answer = { name: "f", parameters: { a: [1], b: ["x", ""], c: ["y"] } }
  const problem = (input: JsonObject, name = "f") => callProblem({ name, input }, answer, declared)

  it("may leave out what is marked, and nothing else", () => {
    assert.isUndefined(problem({ a: 1, b: "x", c: "y" }))
    assert.isUndefined(problem({ a: 1, c: "y" }))
    assert.strictEqual(problem({ a: 1, b: "x" }), "f: c is missing, and may not be")
    assert.strictEqual(problem({ b: "x", c: "y" }), "f: a is missing")
  })

  it("has no parameter that is not declared, or that the answer does not expect", () => {
    assert.strictEqual(problem({ a: 1, c: "y", d: 1 }), "f: d is not expected")
    const undeclared = callProblem({ name: "f", input: { a: 1, c: "y" } }, answer, schema({ a: integer }, ["a"]))
    assert.strictEqual(undeclared, "f: c is not expected")
  })

  it("has the answer's name", () => {
    assert.strictEqual(problem({ a: 1, c: "y" }, "g"), "g was called, f was wanted")
  })
})

describe("several calls", () => {
  const declared = schema({ n: integer }, ["n"])
  const answers = [1, 2, 2].map((n) => ({ name: "f", parameters: { n: [n] } }))
  const calls = (...numbers: ReadonlyArray<number>) => numbers.map((n) => ({ name: "f", input: { n } }))
  const problem = (...numbers: ReadonlyArray<number>) => callsProblem(calls(...numbers), answers, () => declared)

  it("come in any order, each for one answer", () => {
    assert.isUndefined(problem(2, 1, 2))
    assert.strictEqual(problem(1, 1, 2), "no call fits f: f: n is 1; allowed are 2")
  })

  it("are as many as wanted", () => {
    assert.strictEqual(problem(1, 2), "2 calls, and 3 were wanted")
    assert.strictEqual(problem(1, 2, 2, 2), "4 calls, and 3 were wanted")
  })
})
