import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { type CutObject, readCut } from "../../../src/engine/codecs/CutObject.ts"
import type { JsonObject } from "../../../src/tools/JsonText.ts"
import { args } from "../../kit/conversations.ts"

const rows: ReadonlyArray<readonly [text: string, whole: JsonObject, rest: Omit<CutObject, "whole">]> = [
  ["{", {}, {}],
  [`{"`, {}, { openKey: "" }],
  [`{ "na`, {}, { openKey: "na" }],
  [`{"name"`, {}, { open: { key: "name", text: "" } }],
  [`{"name": `, {}, { open: { key: "name", text: "" } }],
  [`{"name": "ca`, {}, { open: { key: "name", text: "ca" } }],
  [`{"name": "ca\nlc", "a": 1}`, {}, { open: { key: "name", text: "ca" } }],
  [`{"name" "calc"}`, {}, { open: { key: "name" } }],
  [`{"name": calc}`, {}, { open: { key: "name" } }],
  [`{"name": "calc", "n": 1, "b": {"c": [2`, { name: "calc", n: 1 }, { open: { key: "b" } }],
  [`{"name": "calc"`, { name: "calc" }, {}],
  [`{"name": "calc",`, { name: "calc" }, {}],
  [`{"name": "calc", x`, { name: "calc" }, {}],
  [`{"a": 1, "a": 2`, { a: 1 }, {}]
]

describe("a broken object", () => {
  for (const [text, whole, rest] of rows) {
    it(`is read as far as it goes: ${JSON.stringify(text)}`, () => {
      const read = readCut(`x${text}`, 1)
      assert.deepStrictEqual({ ...read, whole: Object.fromEntries(read.whole) }, { whole, ...rest })
    })
  }

  it("gives no member that the whole object has not, wherever it is cut", () => {
    fc.assert(
      fc.property(args, fc.nat(), (object, size) => {
        const text = JSON.stringify(object)
        const { whole } = readCut(text.slice(0, 1 + (size % text.length)), 0)
        // A number that is cut may still be one.
        for (const [key, value] of whole) if (typeof value !== "number") assert.deepStrictEqual(value, object[key])
      })
    )
  })
})
