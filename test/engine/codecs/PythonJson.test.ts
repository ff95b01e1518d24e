import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { pythonJson, pythonJsonIndented, pythonNumber } from "../../../src/engine/codecs/PythonJson.ts"
import { json } from "../../kit/conversations.ts"

describe("JSON as Python prints it", () => {
  it("spaces after commas and colons, keeps order, escapes only what it must", () => {
    assert.strictEqual(
      pythonJson({ b: [1, true, null], a: { é: '"\\\n\u0001\u2028/<&>日' }, c: [], d: {} }),
      '{"b": [1, true, null], "a": {"é": "\\"\\\\\\n\\u0001\u2028/<&>日"}, "c": [], "d": {}}'
    )
  })

  it("prints numbers as Python's repr does", () => {
    const rows: ReadonlyArray<readonly [number, string]> = [
      [1, "1"],
      [-0, "0"],
      [0.1, "0.1"],
      [0.0001, "0.0001"],
      [0.00001, "1e-05"],
      [-1.5e-7, "-1.5e-07"],
      [2 ** 53, "9007199254740992.0"],
      [1e16, "1e+16"],
      [1.5e300, "1.5e+300"]
    ]
    for (const [value, text] of rows) assert.strictEqual(pythonNumber(value), text)
  })

  it("means the same as the value it prints, with and without indent", () => {
    fc.assert(
      fc.property(json, (value) => {
        assert.deepStrictEqual(JSON.parse(pythonJson(value)), value)
        assert.deepStrictEqual(JSON.parse(pythonJsonIndented(value, 4)), value)
      })
    )
  })

  it("indents like json.dumps, with empty containers closed at once", () => {
    assert.strictEqual(
      pythonJsonIndented({ a: [1, { b: [] }], c: {} }, 4),
      '{\n    "a": [\n        1,\n        {\n            "b": []\n        }\n    ],\n    "c": {}\n}'
    )
  })
})
