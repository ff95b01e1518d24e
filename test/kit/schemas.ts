/** Schemas whose every keyword a grammar can carry: what fits the grammar fits the schema. */
import type { JsonObject } from "../../src/tools/JsonText.ts"

const object = (properties: JsonObject, required: ReadonlyArray<string> = [], more: JsonObject = {}): JsonObject => ({
  type: "object",
  properties,
  required,
  ...more
})

export const schemas: Readonly<Record<string, JsonObject>> = {
  nothing: object({}),
  text: object({ expression: { type: "string" } }, ["expression"]),
  counted: object({ a: { type: "string", minLength: 2, maxLength: 5 }, b: { type: "string", maxLength: 0 } }, [
    "a",
    "b"
  ]),
  optional: object(
    { a: { type: "string", maxLength: 3 }, b: { type: "integer" }, c: { type: "boolean" }, d: { type: "null" } },
    ["c"]
  ),
  integers: object(
    {
      plain: { type: "integer" },
      age: { type: "integer", minimum: 0, maximum: 130 },
      below: { type: "integer", exclusiveMaximum: -7, minimum: -1234 },
      above: { type: "integer", exclusiveMinimum: 99 }
    },
    ["plain", "age", "below", "above"]
  ),
  numbers: object(
    {
      plain: { type: "number" },
      share: { type: "number", minimum: 0, maximum: 1 },
      open: { type: "number", exclusiveMinimum: -0.5, exclusiveMaximum: 2.25 },
      low: { type: "number", maximum: -10 }
    },
    ["plain", "share", "open", "low"]
  ),
  literals: object({
    unit: { enum: ["°C", 'the "other"', "a\\b", "line\nend", "日本", "😀", 7, -1.5, null, true] },
    fixed: { const: { a: [1, "x"] } }
  }),
  lists: object(
    {
      few: { type: "array", items: { type: "integer", minimum: 1, maximum: 9 }, minItems: 1, maxItems: 3 },
      pair: { type: "array", prefixItems: [{ type: "boolean" }, { type: "null" }], items: false, minItems: 2 },
      more: { type: "array", prefixItems: [{ const: "x" }], items: { const: "y" }, minItems: 2, maxItems: 4 }
    },
    ["few", "pair"]
  ),
  nested: object(
    {
      place: object({ city: { type: "string", maxLength: 6 }, at: object({ x: { type: "number" } }, ["x"]) }, ["at"]),
      rows: { type: "array", maxItems: 2, items: object({ id: { type: "integer" } }, ["id"]) }
    },
    ["place"]
  ),
  either: object(
    {
      value: { anyOf: [{ type: "string", maxLength: 4 }, { type: "integer" }, object({ a: { type: "null" } }, ["a"])] },
      one: { oneOf: [{ type: "boolean" }, { type: "array", items: { type: "null" }, maxItems: 2 }] },
      shape: {
        oneOf: [
          object({ kind: { const: "circle" }, r: { type: "integer" } }, ["kind", "r"]),
          object({ kind: { const: "box" }, w: { type: "integer" } }, ["kind"])
        ]
      }
    },
    ["value", "one", "shape"]
  ),
  both: {
    allOf: [object({ a: { type: "integer", minimum: 0 } }, ["a"]), object({ b: { enum: ["x", "y"] } })],
    type: "object",
    properties: { a: { maximum: 5 } }
  },
  tree: {
    $defs: {
      node: object(
        {
          v: { type: "integer", maximum: 9, minimum: 0 },
          next: { anyOf: [{ $ref: "#/$defs/node" }, { type: "null" }] }
        },
        ["v"]
      )
    },
    ...object({ root: { $ref: "#/$defs/node" } }, ["root"])
  },
  types: object({ a: { type: ["integer", "null"] }, b: { type: ["boolean", "string"], maxLength: 2 } }, ["a"])
}
