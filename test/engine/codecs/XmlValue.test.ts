import { assert, describe, it } from "@effect/vitest"
import { decodeValue } from "../../../src/engine/codecs/XmlValue.ts"
import type { Json, JsonObject } from "../../../src/tools/JsonText.ts"
import { conformance } from "../../kit/codecs.ts"

/** What does not fit stays text, which validation then refuses with the declared type. */
const rows: ReadonlyArray<readonly [schema: JsonObject, text: string, value: Json]> = [
  [{ type: "string" }, "null", "null"],
  [{ type: "string" }, "true", "true"],
  [{ type: "string" }, "02134", "02134"],
  [{ type: "string" }, "", ""],
  [{ type: "integer" }, "5", 5],
  [{ type: "integer" }, "-5", -5],
  [{ type: "integer" }, "5.0", 5],
  [{ type: "integer" }, "5.5", "5.5"],
  [{ type: "integer" }, "", ""],
  [{ type: "integer" }, "0x10", "0x10"],
  [{ type: "integer" }, "02", "02"],
  [{ type: "integer" }, "12345678901234567890", "12345678901234567890"],
  [{ type: "number" }, "1e3", 1000],
  [{ type: "number" }, "NaN", "NaN"],
  [{ type: "boolean" }, "true", true],
  [{ type: "boolean" }, "False", false],
  [{ type: "boolean" }, "yes", "yes"],
  [{ type: "boolean" }, "TRUE", "TRUE"],
  [{ type: "null" }, "None", null],
  [{ type: "integer" }, "null", "null"],
  [{ type: ["integer", "null"] }, "null", null],
  [{ type: "array" }, '[1, "a"]', [1, "a"]],
  [{ type: "array" }, "[1", "[1"],
  [{ type: "object" }, '{"a": 1}', { a: 1 }],
  [{ type: "object" }, '{"a": 1, "a": 2}', '{"a": 1, "a": 2}'],
  [{ type: "object" }, "[1]", "[1]"],
  [{}, "42", "42"],
  [{ anyOf: [{ type: "string" }, { type: "null" }] }, "7", "7"],
  [{ anyOf: [{ type: "integer" }, { type: "string" }] }, "7", 7],
  [{ $ref: "#/$defs/count" }, "7", 7],
  [{ $ref: "#/$defs/loop" }, "7", "7"],
  [{ enum: [1, 2] }, "2", 2],
  [{ enum: ["1", 1] }, "1", "1"],
  [{ const: true }, "True", true]
]

const root: JsonObject = { $defs: { count: { type: "integer" }, loop: { $ref: "#/$defs/loop" } } }

describe("a parameter's text", () => {
  for (const [schema, text, value] of rows) {
    it(`${JSON.stringify(text)} as ${JSON.stringify(schema)} is ${JSON.stringify(value)}`, () => {
      assert.deepStrictEqual(decodeValue(text, schema, root), value)
    })
  }

  interface Row {
    readonly about: string
    readonly raw_value: string
    readonly schema_types: ReadonlyArray<string>
    readonly expected_value: Json
  }
  const data = conformance<Row>("xml-value-coercion")
  it.skipIf(data === undefined)(
    "is read as the conformance rows ask, but for what they read loosely (data: WRIT_CONFORMANCE)",
    () => {
      const loose = new Set(["FALSE", "null for string", "NULL"])
      const different = data!
        .filter(({ expected_value, raw_value, schema_types }) => {
          // One newline on each side belongs to the tags, which is the frame's business.
          const text = raw_value.replace(/^\n/, "").replace(/\n$/, "")
          const value = decodeValue(text, { type: [...schema_types] }, {})
          return JSON.stringify(value) !== JSON.stringify(expected_value)
        })
        .map((row) =>
          row.raw_value === "null" && row.schema_types.join() === "string" ? "null for string" : row.raw_value
        )
      assert.deepStrictEqual(new Set(different), loose)
    }
  )
})
