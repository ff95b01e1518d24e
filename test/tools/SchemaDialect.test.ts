import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { compile } from "../../src/tools/JsonSchema.ts"
import type { Json, JsonObject } from "../../src/tools/JsonText.ts"
import { remoteReference } from "../../src/tools/SchemaReferences.ts"
import { foreignTypes } from "../../src/tools/SchemaTypes.ts"

const draft07 = { $schema: "http://json-schema.org/draft-07/schema#" }

const accepts = (schema: Json, value: Json, more: JsonObject = {}) =>
  Effect.map(compile({ ...more, type: "object", properties: { value: schema } }), ({ check }) =>
    Result.isSuccess(check({ value }))
  )

describe("a schema that ajv reads differently than its dialect", () => {
  it.effect("has no siblings of $ref in draft-07, and has them in 2020-12", () =>
    Effect.gen(function* () {
      const more = { definitions: { list: { type: "array" } } }
      const schema = { $ref: "#/definitions/list", maxItems: 1 }
      assert.isTrue(yield* accepts(schema, [1, 2], { ...draft07, ...more }))
      assert.isFalse(yield* accepts(schema, [1, 2], more))
    })
  )

  it.effect("counts what a condition looked at only if the condition holds", () =>
    Effect.gen(function* () {
      const schema = {
        if: { properties: { kind: { const: "a" } }, required: ["kind"] },
        else: { properties: { other: {} } },
        unevaluatedProperties: false
      }
      assert.isTrue(yield* accepts(schema, { kind: "a" }))
      assert.isFalse(yield* accepts(schema, { kind: "b" }))
      assert.isTrue(yield* accepts(schema, { other: 1 }))
    })
  )

  it.effect("asks a condition about an open object, closed as everything else is", () =>
    Effect.gen(function* () {
      const schema = {
        type: "object",
        properties: { at: { type: "object", properties: { k: {}, z: {} } } },
        if: { properties: { at: { properties: { k: { const: 1 } } } } },
        // biome-ignore lint/suspicious/noThenProperty: a keyword, nobody awaits a schema
        then: { required: ["at"] }
      }
      assert.isTrue(yield* accepts(schema, { at: { k: 1, z: 2 } }))
      assert.isFalse(yield* accepts(schema, {}))
    })
  )

  it.effect("counts the items that contains accepts, and no others", () =>
    Effect.gen(function* () {
      const schema = { contains: { const: 1 }, unevaluatedItems: { type: "string" } }
      assert.isTrue(yield* accepts(schema, [1, "a"]))
      assert.isFalse(yield* accepts(schema, [1, 2]))
      assert.isFalse(yield* accepts(schema, ["a"]))
      const several = {
        allOf: [{ contains: { multipleOf: 2 } }, { contains: { multipleOf: 3 } }],
        unevaluatedItems: { multipleOf: 5 }
      }
      assert.isTrue(yield* accepts(several, [2, 3, 4, 5, 6]))
      assert.isFalse(yield* accepts(several, [2, 3, 4, 7, 8]))
    })
  )

  it.effect("lets nothing pass a choice among nothing", () =>
    Effect.gen(function* () {
      for (const value of [null, 1, "", [], {}]) assert.isFalse(yield* accepts({ enum: [] }, value))
    })
  )

  it.effect("gives no verdict where it refers to itself without end, and does not crash", () =>
    Effect.gen(function* () {
      const { check } = yield* compile({
        type: "object",
        properties: { a: { $ref: "#/$defs/a" } },
        $defs: { a: { allOf: [{ $ref: "#/$defs/a" }] } }
      })
      const checked = check({ a: 1 })
      assert.match(Result.isFailure(checked) ? checked.failure[0]!.reason : "", /refers to itself without end/)
    })
  )
})

describe("SchemaReferences.remoteReference", () => {
  it("follows pointers, anchors, ids that are inside, and the dialect's own description", () => {
    const inside: ReadonlyArray<JsonObject> = [
      { $ref: "#/$defs/a" },
      { $ref: "#anchor" },
      { $ref: "https://json-schema.org/draft/2020-12/schema" },
      {
        $id: "http://a.test/root.json",
        properties: { a: { $ref: "item.json#/b" } },
        $defs: { x: { $id: "item.json" } }
      },
      { $ref: "urn:uuid:1#x", $defs: { x: { $id: "urn:uuid:1" } } },
      { const: { $ref: "http://a.test/" } }
    ]
    for (const schema of inside) assert.isUndefined(remoteReference(schema), JSON.stringify(schema))
  })

  it("names the first one that leads out", () => {
    for (const text of ["http://a.test/x.json", "x.json", "//a.test/x", "file:///etc/passwd", "http://[", "#/x"]) {
      const found = remoteReference({ properties: { a: { items: { $ref: text } } } })
      assert.strictEqual(found, text.startsWith("#") ? undefined : text)
    }
    assert.strictEqual(remoteReference({ $dynamicRef: "other#node" }), "other#node")
  })
})

describe("SchemaTypes.foreignTypes", () => {
  it("names each place in reading order, with what to write there", () => {
    const schema: JsonObject = {
      type: "dict",
      properties: {
        "a/b": { type: ["string", "NoneType"] },
        point: { type: "tuple", items: { type: "Float" } },
        free: { type: "any" },
        fixed: { const: { type: "dict" } },
        near: { type: "sting" }
      }
    }
    assert.deepStrictEqual(foreignTypes(schema), [
      'the schema has the type "dict": write "object"',
      '/properties/a~1b has the type "NoneType": write "null"',
      '/properties/point has the type "tuple": write "array", with the types of its places in "prefixItems"',
      '/properties/point/items has the type "Float": write "number"',
      '/properties/free has the type "any": leave the type out to allow every value',
      '/properties/near has the type "sting": there are array, boolean, integer, null, number, object, string'
    ])
  })
})
