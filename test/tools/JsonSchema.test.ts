import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { compile } from "../../src/tools/JsonSchema.ts"
import type { Json, JsonObject } from "../../src/tools/JsonText.ts"

const draft07 = "http://json-schema.org/draft-07/schema#"

const problems = (schema: JsonObject, args: JsonObject) =>
  Effect.map(compile(schema), ({ check }) => {
    const checked = check(args)
    return Result.isSuccess(checked)
      ? []
      : checked.failure.map(({ code, path, reason }) => `${path}: ${code}: ${reason}`)
  })
const refusal = (schema: JsonObject) => Effect.map(Effect.flip(compile(schema)), (error) => error.message)
const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({ type: "object", properties, ...more })

describe("JsonSchema.compile", () => {
  it.effect("words every kind of problem as the Effect checker does", () =>
    Effect.gen(function* () {
      const schema = object(
        {
          a: { type: "integer", minimum: 1 },
          b: { enum: ["x", 1, null] },
          c: { const: "only" },
          d: { type: ["string", "null"] },
          e: { type: "array", items: { type: "string", maxLength: 1 }, minItems: 3, uniqueItems: true },
          f: { type: "string", pattern: "^a+$" },
          g: { not: { type: "string" } }
        },
        { required: ["z"] }
      )
      const args = { a: 0, b: "y", c: "other", d: 1, e: ["ab", "ab"], f: "b", g: "no", h: 1 }
      assert.deepStrictEqual(yield* problems(schema, args), [
        "a: constraint: must be at least 1",
        "b: not_in_enum: expected one of [x, 1, null], got y",
        "c: not_in_enum: expected only, got other",
        "d: wrong_type: expected string or null, got number",
        "e: constraint: must have at least 3 items",
        "e: constraint: must not contain the same item twice",
        "e[0]: constraint: must have at most 1 character",
        "e[1]: constraint: must have at most 1 character",
        "f: constraint: must match the pattern ^a+$",
        "g: composition: matches a form that is not allowed",
        "h: unknown_field: unknown field",
        "z: missing: missing required argument"
      ])
    })
  )

  it.effect("closes objects, nested ones too, unless the schema says otherwise", () =>
    Effect.gen(function* () {
      const inner = { a: object({ x: { type: "string" } }) }
      assert.deepStrictEqual(yield* problems(object(inner), { a: { x: "1", y: 2 }, b: 1 }), [
        "a.y: unknown_field: unknown field",
        "b: unknown_field: unknown field"
      ])
      assert.deepStrictEqual(
        yield* problems(object(inner, { additionalProperties: true }), { a: { x: "1" }, b: 1 }),
        []
      )
      assert.deepStrictEqual(yield* problems({ type: "object" }, { b: 1 }), ["b: unknown_field: unknown field"])
      assert.deepStrictEqual(yield* problems(object({ free: { type: "object" } }), { free: { any: 1 } }), [])
      assert.deepStrictEqual(
        yield* problems(object({}, { patternProperties: { "^x-": { type: "number" } } }), { "x-a": 1, y: 1 }),
        ["y: unknown_field: unknown field"]
      )
    })
  )

  for (const dialect of [{}, { $schema: draft07 }]) {
    it.effect(`closes a composed object as a whole (${"$schema" in dialect ? "draft-07" : "2020-12"})`, () =>
      Effect.gen(function* () {
        const schema: JsonObject = {
          ...dialect,
          ...object({ a: { type: "string" } }),
          allOf: [{ $ref: "#/definitions/More" }, { properties: { c: { type: "string" } } }],
          definitions: { More: object({ b: { type: "string" } }) }
        }
        assert.deepStrictEqual(yield* problems(schema, { a: "1", b: "2", c: "3" }), [])
        assert.deepStrictEqual(yield* problems(schema, { a: "1", b: "2", d: "4" }), ["d: unknown_field: unknown field"])
        const nested = {
          ...dialect,
          ...object({ one: { $ref: "#/definitions/More" } }),
          definitions: schema["definitions"] as Json
        }
        assert.deepStrictEqual(yield* problems(nested, { one: { b: "x", z: 1 } }), [
          "one.z: unknown_field: unknown field"
        ])
      })
    )
  }

  it.effect("folds the branches of a choice into one problem", () =>
    Effect.gen(function* () {
      const choice = (...anyOf: ReadonlyArray<Json>) => object({ v: { anyOf } })
      const kinds = [object({ k: { const: "a" }, n: { type: "number" } }, { required: ["k"] }), { type: "string" }]
      assert.deepStrictEqual(yield* problems(choice({ type: "string" }, { type: "null" }), { v: 1 }), [
        "v: wrong_type: expected string or null, got number"
      ])
      assert.deepStrictEqual(yield* problems(choice(...kinds), { v: { k: "a", n: "x" } }), [
        "v.n: wrong_type: expected number, got string"
      ])
      assert.deepStrictEqual(yield* problems(choice(...kinds), { v: { k: "b", n: "x" } }), [
        "v: composition: matches none of the allowed forms"
      ])
      const named = { ...choice({ $ref: "#/$defs/A" }, { type: "null" }), $defs: { A: { type: "string" } } }
      assert.deepStrictEqual(yield* problems(named, { v: 1 }), ["v: wrong_type: expected string or null, got number"])
      assert.deepStrictEqual(
        yield* problems(object({ v: { oneOf: [{ type: "number" }, { type: "integer" }] } }), { v: 1 }),
        ["v: composition: matches more than one of the allowed forms"]
      )
    })
  )

  it.effect("fills in defaults, also nested and behind references, and leaves the raw arguments alone", () =>
    Effect.gen(function* () {
      const schema: JsonObject = {
        ...object({
          limit: { type: "integer", default: 5 },
          place: object({ unit: { type: "string", default: "celsius" } }),
          rows: { type: "array", items: { $ref: "#/$defs/Row" } }
        }),
        $defs: { Row: object({ open: { type: "boolean", default: false } }) }
      }
      const { check } = yield* compile(schema)
      const passed = Result.getOrThrow(check({ place: {}, rows: [{}, { open: true }] }))
      assert.deepStrictEqual(passed.raw, { place: {}, rows: [{}, { open: true }] })
      assert.deepStrictEqual(passed.effective, {
        place: { unit: "celsius" },
        rows: [{ open: false }, { open: true }],
        limit: 5
      })
      // Required means required, default or not: defaults come after validation.
      assert.deepStrictEqual(yield* problems(object({ a: { default: 1 } }, { required: ["a"] }), {}), [
        "a: missing: missing required argument"
      ])
    })
  )

  it.effect("does not fill in a default that its own schema refuses", () =>
    Effect.gen(function* () {
      const { check } = yield* compile(
        object({ a: { type: "boolean", default: "False" }, b: { type: "integer", default: 2 } })
      )
      assert.deepStrictEqual(Result.getOrThrow(check({})).effective, { b: 2 })
    })
  )

  it.effect("does not take inherited names for arguments", () =>
    Effect.gen(function* () {
      const schema = object({ toString: { type: "string" } }, { required: ["toString"] })
      assert.deepStrictEqual(yield* problems(schema, {}), ["toString: missing: missing required argument"])
      assert.deepStrictEqual(yield* problems(object({}), JSON.parse(`{"__proto__":1}`)), [
        "__proto__: unknown_field: unknown field"
      ])
    })
  )

  it.effect("refuses what cannot be checked, and says why", () =>
    Effect.gen(function* () {
      assert.match(yield* refusal(object({ a: { $ref: "https://example.org/a.json" } })), /only references inside/)
      assert.match(yield* refusal(object({ a: { $ref: "#/$defs/Gone" } })), /does not compile/)
      assert.match(yield* refusal(object({ a: { type: "strnig" } })), /^JSON Schema has no such type: \/properties\/a /)
      assert.strictEqual(
        yield* refusal(object({ a: { minLength: "x" } }, { required: "a" })),
        "it does not compile: /properties/a/minLength must be integer; /required must be array"
      )
      assert.match(yield* refusal(object({ a: { type: "string", pattern: "(" } })), /does not compile/)
      assert.match(yield* refusal({ type: "array" }), /object/)
      assert.match(yield* refusal({ $schema: "http://json-schema.org/draft-04/schema#" }), /neither/)
    })
  )
})
