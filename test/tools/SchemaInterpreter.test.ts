import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { described } from "../../src/tools/AjvCompilers.ts"
import { compile } from "../../src/tools/JsonSchema.ts"
import type { Json, JsonObject } from "../../src/tools/JsonText.ts"
import { reworded } from "../../src/tools/SchemaDialect.ts"
import { interpret } from "../../src/tools/SchemaInterpreter.ts"
import { conformance } from "../kit/codecs.ts"

interface SuiteRow {
  readonly id: string
  readonly draft: string
  readonly tier: string
  readonly schema: Json
  readonly tests: ReadonlyArray<{ readonly description: string; readonly data: Json; readonly valid: boolean }>
}

const fits = (schema: JsonObject, value: Json): boolean => interpret(schema, "2020-12", described)(value).length === 0

/** A tree whose nodes are what the outermost schema of that name says they are. */
const tree = {
  $id: "http://a.test/tree",
  $dynamicAnchor: "node",
  type: "object",
  properties: { data: true, children: { type: "array", items: { $dynamicRef: "#node" } } }
}
const strictTree = {
  $id: "http://a.test/strict",
  $dynamicAnchor: "node",
  $ref: "tree",
  unevaluatedProperties: false,
  $defs: { tree }
}

describe("the interpreter of schemas", () => {
  const suite = conformance<SuiteRow>("json-schema-suite")
  it.skipIf(suite === undefined)("gives every verdict of the JSON Schema Test Suite, core and extended", () => {
    const otherwise: Array<string> = []
    let count = 0
    for (const { draft, id, schema, tests } of suite!.filter(({ tier }) => tier === "core" || tier === "extended")) {
      const dialect = draft === "draft7" ? "draft-07" : "2020-12"
      const whole = typeof schema === "boolean" ? { allOf: [schema] } : reworded(schema as JsonObject, dialect)
      const errorsOf = interpret(whole, dialect, described)
      for (const { data, description, valid } of tests) {
        count++
        if ((errorsOf(data).length === 0) !== valid) otherwise.push(`${id}, ${description}`)
      }
    }
    assert.deepStrictEqual(otherwise, [])
    assert.isAbove(count, 1000)
  })

  it("follows a dynamic reference to the outermost schema of that name, and a plain one where it leads", () => {
    const misspelt = { children: [{ daat: 1 }] }
    assert.isTrue(fits(tree, misspelt))
    assert.isFalse(fits(strictTree, misspelt))
    assert.isTrue(fits(strictTree, { children: [{ data: 1 }] }))
  })

  it("counts items that a condition, a choice or contains looked at, where it holds", () => {
    const conditional = { if: { prefixItems: [{ const: "a" }] }, unevaluatedItems: false }
    assert.isTrue(fits(conditional, ["a"]))
    assert.isFalse(fits(conditional, ["b"]))
    const chosen = { anyOf: [{ prefixItems: [{ type: "string" }] }, { type: "array" }], unevaluatedItems: false }
    assert.isTrue(fits(chosen, ["a"]))
    assert.isFalse(fits(chosen, [1]))
    assert.isFalse(fits({ not: { not: { contains: { const: 1 } } }, unevaluatedItems: false }, [1]))
  })

  it("refuses what leads nowhere, is named twice or is no pattern, before a value comes", () => {
    const wrong: ReadonlyArray<readonly [JsonObject, RegExp]> = [
      [{ $id: "http://a.test/x", $ref: "#/$defs/none" }, /refers to #\/\$defs\/none, which is not there/],
      [{ $dynamicRef: "#none" }, /refers to #none/],
      [{ $defs: { a: { $anchor: "x" }, b: { $anchor: "x" } } }, /two schemas in it have the anchor x/],
      [{ $defs: { a: { $id: "x" }, b: { $id: "x" } } }, /two schemas in it have the \$id/],
      [{ $defs: { a: { $anchor: "x", pattern: "(" } } }, /[Ii]nvalid regular expression/]
    ]
    for (const [schema, reason] of wrong) assert.throws(() => interpret(schema, "2020-12", described), reason)
  })
})

describe("arguments whose schema is read by the interpreter", () => {
  const read = (schema: JsonObject, args: JsonObject) =>
    Effect.map(compile(schema), ({ check }) => {
      const checked = check(args)
      return Result.isSuccess(checked)
        ? []
        : checked.failure.map(({ code, path, reason }) => `${path}: ${code}: ${reason}`)
    })

  const schema: JsonObject = {
    type: "object",
    properties: {
      at: { $ref: "#place" },
      tags: { type: "array", items: { type: "string", minLength: 2 }, maxItems: 2, uniqueItems: true },
      kind: { enum: ["a", "b"] },
      size: { anyOf: [{ type: "integer" }, { type: "null" }] },
      shape: { oneOf: [{ type: "object", properties: { r: { type: "number" } }, required: ["r"] }] }
    },
    required: ["at"],
    patternProperties: { "^x-": { type: "boolean" } },
    dependentRequired: { kind: ["size"] },
    $defs: { place: { type: "object", properties: { lat: { minimum: -90 } }, required: ["lat"] } }
  }
  const named = {
    ...schema,
    $defs: { place: { ...(schema["$defs"] as { place: JsonObject }).place, $anchor: "place" } }
  }
  const plain = { ...schema, properties: { ...(schema["properties"] as JsonObject), at: { $ref: "#/$defs/place" } } }

  it.effect("gets the same problems in the same words as ajv gives", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<JsonObject> = [
        { at: { lat: 1 } },
        {},
        { at: { lat: -100 }, more: 1 },
        { at: { lat: 1, lon: 2 }, "x-a": true },
        { at: {}, tags: ["a", "bc", "bc"], "x-a": 1 },
        { at: { lat: 1 }, kind: "c", size: 1.5, shape: { r: "1" } },
        { at: { lat: 1 }, kind: "a" },
        { at: { lat: 1 }, shape: { r: 1, s: 1 } }
      ]
      for (const args of cases) {
        assert.deepStrictEqual(yield* read(named, args), yield* read(plain, args), JSON.stringify(args))
      }
      assert.strictEqual((yield* read(named, cases[4]!)).length, 5)
    })
  )

  it.effect("are closed, and get their defaults", () =>
    Effect.gen(function* () {
      const { check } = yield* compile({
        type: "object",
        properties: {
          rest: { type: "array", prefixItems: [{}], unevaluatedItems: false },
          n: { type: "integer", default: 2 }
        }
      })
      assert.deepStrictEqual(Result.getOrThrow(check({ rest: [1] })).effective, { rest: [1], n: 2 })
      assert.isTrue(Result.isFailure(check({ rest: [1, 2] })))
      assert.isTrue(Result.isFailure(check({ other: 1 })))
    })
  )

  it.effect("get no verdict where the schema refers to itself without end", () =>
    Effect.gen(function* () {
      const found = yield* read(
        { type: "object", properties: { a: { $ref: "#a" } }, $defs: { a: { $anchor: "a", $ref: "#a" } } },
        { a: 1 }
      )
      assert.match(found[0]!, /refers to itself without end/)
    })
  )

  it.effect("are refused with what the description of the dialect says against the schema", () =>
    Effect.gen(function* () {
      const refused = yield* Effect.flip(
        compile({ type: "object", properties: { a: { $anchor: "a", minLength: "2" } } })
      )
      assert.match(refused.message, /it does not compile: \/properties\/a\/minLength must be integer/)
    })
  )
})
