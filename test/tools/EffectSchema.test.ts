import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import { compile } from "../../src/tools/EffectSchema.ts"
import { compile as compileJson } from "../../src/tools/JsonSchema.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import { parametersOf } from "../../src/tools/Parameters.ts"
import type { Problem } from "../../src/tools/ToolCall.ts"
import type { ValidatedArguments } from "../../src/tools/Validation.ts"

const Row = Schema.Struct({ id: Schema.Finite, tags: Schema.Array(Schema.String) })
const Everything = Schema.Struct({
  text: Schema.String,
  count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })),
  unit: Schema.Literals(["celsius", "fahrenheit"]),
  label: Schema.NullOr(Schema.String),
  rows: Schema.Array(Row),
  note: Schema.optionalKey(Schema.String.check(Schema.isMinCodePoints(2)))
})
const sound: JsonObject = { text: "a", count: 2, unit: "celsius", label: null, rows: [] }

const lines = (checked: Result.Result<ValidatedArguments, ReadonlyArray<Problem>>): ReadonlyArray<string> =>
  Result.isSuccess(checked)
    ? []
    : checked.failure.map(({ code, path, pointer, reason }) => `${pointer} | ${path} | ${code} | ${reason}`)

describe("EffectSchema.compile", () => {
  it("reports every problem at once, by place, in the words a model is told", () => {
    const args = {
      count: "2",
      unit: "Celsius",
      label: 7,
      rows: [{ id: "x", tags: [1] }, 3],
      extra: 1,
      "a/b~": 2,
      note: "x"
    }
    assert.deepStrictEqual(lines(compile(Everything).check(args)), [
      `/a~1b~0 | ["a/b~"] | unknown_field | unknown field`,
      "/count | count | wrong_type | expected integer, got string",
      "/extra | extra | unknown_field | unknown field",
      "/label | label | wrong_type | expected string or null, got number",
      "/note | note | constraint | must have at least 2 characters",
      "/rows/0/id | rows[0].id | wrong_type | expected number, got string",
      "/rows/0/tags/0 | rows[0].tags[0] | wrong_type | expected string, got number",
      "/rows/1 | rows[1] | wrong_type | expected object, got number",
      "/text | text | missing | missing required argument",
      "/unit | unit | not_in_enum | expected one of [celsius, fahrenheit], got Celsius"
    ])
  })

  it("words length checks by what they count", () => {
    const { check } = compile(
      Schema.Struct({
        a: Schema.String.check(Schema.isMinLength(3)),
        b: Schema.Array(Schema.Json).check(Schema.isMaxLength(1)),
        c: Schema.String.check(Schema.isBetweenLength(1, 2)),
        d: Schema.String.check(Schema.makeFilter((text) => text !== "no" || "must not be no"))
      })
    )
    assert.deepStrictEqual(lines(check({ a: "", b: [1, 2], c: "xyz", d: "no" })), [
      "/a | a | constraint | must have at least 3 characters",
      "/b | b | constraint | must have at most 1 item",
      "/c | c | constraint | must have at most 2 characters",
      "/d | d | constraint | must not be no"
    ])
  })

  it("coerces nothing and takes 2.0 for the integer 2", () => {
    const { check } = compile(Everything)
    assert.deepStrictEqual(lines(check({ ...sound, count: 2.5 })), [
      "/count | count | wrong_type | expected integer, got number"
    ])
    assert.deepStrictEqual(lines(check({ ...sound, count: 0 })), ["/count | count | constraint | must be at least 1"])
    assert.deepStrictEqual(lines(check({ ...sound, count: true })), [
      "/count | count | wrong_type | expected integer, got boolean"
    ])
    assert.strictEqual(Result.getOrThrow(check({ ...sound, count: JSON.parse("2.0") })).effective["count"], 2)
  })

  it("fills in defaults after validation and keeps the raw arguments", () => {
    const { check, decode } = compile(
      Schema.Struct({
        path: Schema.String,
        encoding: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.succeed("utf8")))
      })
    )
    const passed = Result.getOrThrow(check({ path: "a" }))
    assert.deepStrictEqual(passed.raw, { path: "a" })
    assert.deepStrictEqual(passed.effective, { path: "a", encoding: "utf8" })
    assert.strictEqual(passed.canonical, `{"encoding":"utf8","path":"a"}`)
    assert.deepStrictEqual(decode(passed), { path: "a", encoding: "utf8" })
    assert.deepStrictEqual(lines(check({ path: "a", encoding: 1 })), [
      "/encoding | encoding | wrong_type | expected string, got number"
    ])
  })

  it("does not take inherited names for arguments", () => {
    const { check } = compile(
      Schema.Struct({ toString: Schema.String, constructor: Schema.optionalKey(Schema.String) })
    )
    assert.deepStrictEqual(lines(check({})), ["/toString | toString | missing | missing required argument"])
    assert.deepStrictEqual(
      lines(compile(Schema.Struct({ a: Schema.String })).check(JSON.parse(`{"a":"x","__proto__":{"b":1}}`))),
      ["/__proto__ | __proto__ | unknown_field | unknown field"]
    )
  })

  it("cuts long values in its messages", () => {
    const [line] = lines(compile(Everything).check({ ...sound, unit: "s".repeat(500) }))
    assert.isBelow(line!.length, 160)
  })

  it.effect("says the same as the JSON Schema checker about the same arguments", () =>
    Effect.gen(function* () {
      const one = compile(Everything)
      const other = yield* compileJson(parametersOf(Everything))
      const value = fc.oneof(
        fc.string(),
        fc.integer(),
        fc.double({ noNaN: true, min: -1e15, max: 1e15 }),
        fc.constant(null),
        fc.boolean(),
        fc.constant("celsius"),
        fc.constant([]),
        fc.constant([{ id: 1, tags: ["x"] }]),
        fc.constant([{ id: "1", more: 2 }])
      )
      const args = fc.dictionary(fc.constantFrom("text", "count", "unit", "label", "rows", "note", "other"), value)
      fc.assert(
        fc.property(args, (some) => {
          assert.deepStrictEqual(lines(one.check(some as JsonObject)), lines(other.check(some as JsonObject)))
        }),
        { numRuns: 500 }
      )
    })
  )
})

describe("parametersOf", () => {
  it("is plain and short", () => {
    assert.strictEqual(
      JSON.stringify(parametersOf(Schema.Struct({ path: Schema.String.annotate({ description: "File name" }) }))),
      `{"type":"object","properties":{"path":{"type":"string","description":"File name"}},"required":["path"]}`
    )
    assert.strictEqual(
      JSON.stringify(parametersOf(Schema.Struct({}))),
      `{"type":"object","properties":{},"required":[]}`
    )
    assert.deepStrictEqual(parametersOf(Schema.Struct({ n: Schema.Int })).properties, { n: { type: "integer" } })
  })

  it("shows the fields of a class, also of one that holds itself", () => {
    class Item extends Schema.Class<Item>("Item")({ id: Schema.Int }) {}
    assert.deepStrictEqual(parametersOf(Item), {
      type: "object",
      properties: { id: { type: "integer" } },
      required: ["id"]
    })
    interface Tree {
      readonly kids: ReadonlyArray<Tree>
    }
    class Node extends Schema.Class<Node>("Node")({
      kids: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Node as unknown as Schema.Codec<Tree>))
    }) {}
    const { $defs, properties } = parametersOf(Node)
    const [name, definition] = Object.entries($defs as JsonObject)[0]!
    assert.deepStrictEqual(properties, { kids: { type: "array", items: { $ref: `#/$defs/${name}` } } })
    assert.deepStrictEqual((definition as JsonObject)["properties"], properties)
  })

  it("writes named schemas out where they stand and keeps the recursive ones as definitions", () => {
    const Name = Schema.String.annotate({ identifier: "Name" })
    assert.deepStrictEqual(parametersOf(Schema.Struct({ a: Name, b: Name })).properties, {
      a: { type: "string" },
      b: { type: "string" }
    })
    interface Tree {
      readonly children: ReadonlyArray<Tree>
    }
    const Tree = Schema.Struct({ children: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree)) }).annotate({
      identifier: "Tree"
    })
    const parameters = parametersOf(Schema.Struct({ tree: Tree }))
    assert.include(JSON.stringify(parameters.properties), `{"$ref":"#/$defs/Tree"}`)
    assert.deepStrictEqual(Object.keys(parameters["$defs"] as object), ["Tree"])
  })

  it("keeps the value schema of a record", () => {
    const parameters = parametersOf(Schema.Struct({ headers: Schema.Record(Schema.String, Schema.Finite) }))
    assert.deepStrictEqual(parameters["properties"], {
      headers: { type: "object", additionalProperties: { type: "number" } }
    })
  })
})
