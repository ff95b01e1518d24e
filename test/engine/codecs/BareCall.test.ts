import { assert, describe, it } from "@effect/vitest"
import { type Bare, findBare } from "../../../src/engine/codecs/BareCall.ts"

const tools = new Set(["calc"])
const args = `{"a": {"b": 1}}`

const rows: ReadonlyArray<readonly [text: string, found: Bare["kind"] | undefined, at?: number]> = [
  [`{"name": "calc", "arguments": ${args}}`, "call", 0],
  [`{"arguments": ${args}, "name": "calc"}`, "call", 0],
  [`{"n": 1} {"parameters": ${args}, "name": "calc"}`, "call", 9],
  [`{"name": "c\\u0061lc", "arguments": {}}`, "call", 0],
  [`{"type": "tool_call", "name": "calc"}`, "call", 0],
  [`{"calls": [1, {"x": {"name": "calc", "parameters": {}}}]}`, "call", 0],
  [`{"function": {"name": "calc", "arguments": {}}}`, "call", 0],
  [`{x {"name": "calc", "arguments": {"a": 1`, "call", 3],
  [`{"name": "calc", "arguments": {"a": 1,}} and on`, "call", 0],
  [`{"arguments": ${args}, "name": "calc",}`, "call", 0],
  [`{"name": "calc"`, "call", 0],
  [`{"id": "1", "name": "calc", "argu`, "call", 0],
  [`{"name": "calc", "age": 3`, undefined],
  [`{"name": "calc", "why"} and on`, undefined],
  [`{"name": "ca`, undefined],
  [`{"name": "calc"}`, undefined],
  [`{"name": "nobody", "arguments": {}}`, undefined],
  [`{"text": "{\\"name\\": \\"calc\\", \\"arguments\\": {}}"}`, undefined],
  [`{"type": "tool_result", "name": "calc"}`, "result", 0],
  [`So {"a": [{"name": "x", "type": "tool_result"}]}`, "result", 3],
  [`{"type": "tool_result", "name": "ca`, "result", 0],
  ["call:calc{a:1}", "call", 0],
  ["recall:calc{a:1} call:nobody{} call:calc", undefined]
]

describe("a call in the prose", () => {
  for (const [text, kind, at] of rows) {
    it(`is ${kind === undefined ? "not" : `a ${kind}`} in ${text}`, () => {
      const found = findBare(text, { tools, resultType: "tool_result", head: /\bcall:(\w+)\{/g })
      assert.deepStrictEqual(found, kind === undefined ? undefined : { kind, at })
    })
  }

  it("is found behind any number of other braces", () => {
    assert.deepStrictEqual(findBare(`${"{".repeat(5000)}{"name": "calc", "arguments": {}}`, { tools }), {
      kind: "call",
      at: 5000
    })
  })
})
