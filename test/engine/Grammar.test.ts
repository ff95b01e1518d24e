import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import type { NotCarried } from "../../src/engine/Grammar.ts"
import { CallWatch } from "../../src/engine/grammar/CallWatch.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import * as JsonSchema from "../../src/tools/JsonSchema.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import type { ToolSpec } from "../../src/tools/ToolCall.ts"
import { parsePieces, tool, units } from "../kit/codecs.ts"
import { Gbnf, seeded, withMarks } from "../kit/gbnf.ts"
import { schemas } from "../kit/schemas.ts"

const codecs: ReadonlyArray<Codec> = ids.map((id) => Result.getOrThrow(byId(id)))
const able = codecs.filter((codec) => codec.grammar !== undefined)

const notCarried = (parameters: JsonObject, id = "qwen2.5"): ReadonlyArray<Omit<NotCarried, "tool">> => {
  const made = Result.getOrThrow(byId(id)).grammar!([tool("t", parameters)])
  return (made?.notCarried ?? []).map(({ keyword, pointer }) => ({ keyword, pointer }))
}

/** Does the grammar of `tools` offer this call, in the words of the codec? */
const offers = (codec: Codec, tools: ReadonlyArray<ToolSpec>, name: string, args: JsonObject): boolean => {
  const { grammar } = codec.grammar!(tools)!
  const id = codec.id.startsWith("mistral") ? { id: "abcdefghi" } : {}
  const call = flatten(
    codec.written(
      { role: "assistant", content: "", calls: [{ name, arguments: args, ...id }] },
      { tools, thinking: false }
    )
  )
  return grammar.openers.some(({ root, text }) => {
    const from = call.indexOf(text)
    return from >= 0 && new Gbnf(withMarks(grammar)).matches(root, call.slice(from + text.length))
  })
}

for (const codec of able) {
  describe(codec.id, () => {
    it.effect("every text of a grammar is one call that validates, and its end is seen", () =>
      Effect.gen(function* () {
        for (const [name, schema] of Object.entries(schemas)) {
          const tools = [tool(name, schema), tool("other")]
          const made = codec.grammar!(tools)!
          if (made.notCarried.length > 0) continue
          const grammar = new Gbnf(withMarks(made.grammar))
          const checker = yield* JsonSchema.compile(schema)
          for (let seed = 1; seed <= 60; seed++) {
            const opener = made.grammar.openers[seed % made.grammar.openers.length]!
            const written = opener.text + grammar.generate(opener.root, seeded(seed * 31 + name.length))
            const { action } = parsePieces(codec, [written], { tools })
            assert.strictEqual(action._tag, "ToolCalls", JSON.stringify({ name, written, action }))
            if (action._tag !== "ToolCalls") continue
            for (const call of action.calls) {
              if (call.name !== name) continue
              const checked = checker.check(call.arguments)
              if (Result.isFailure(checked)) assert.fail(JSON.stringify({ written, problems: checked.failure }))
            }
            const watch = new CallWatch(made.grammar)
            const seen = units(written).map((unit) => watch.take(unit)._tag)
            assert.strictEqual(seen.indexOf("released"), seen.length - 1, written)
          }
        }
      })
    )

    it("offers the calls its own renderer writes", () => {
      const parameters: JsonObject = {
        type: "object",
        properties: {
          a: { type: "string" },
          n: { type: "integer" },
          list: { type: "array", items: { type: "string" } },
          deep: { type: "object", properties: { x: { type: "number" } } }
        },
        required: ["a"]
      }
      const tools = [tool("t", parameters), tool("u")]
      for (const args of [
        { a: "" },
        { a: 'He said "no"\n\\ é 😀 <b> </tool_call>' },
        { a: "x", n: -12, list: [], deep: {} },
        { a: "x", n: 9007199254740, list: ["a", "b"], deep: { x: -0.25 } }
      ] as ReadonlyArray<JsonObject>) {
        assert.isTrue(offers(codec, tools, "t", args), JSON.stringify(args))
      }
    })

    it("offers nothing else than the advertised tools", () => {
      const tools = [tool("known")]
      assert.isTrue(offers(codec, tools, "known", {}))
      assert.isFalse(offers(codec, tools, "unknown", {}))
      assert.isFalse(offers(codec, tools, "known", { extra: 1 }))
      assert.isUndefined(codec.grammar!([]))
    })
  })
}

describe("keywords that a grammar cannot carry", () => {
  it("are listed with their place", () => {
    const parameters: JsonObject = {
      type: "object",
      properties: {
        mail: { type: "string", pattern: "^a", format: "email", description: "d" },
        "a/b": { type: "array", items: { type: "integer", multipleOf: 3 }, uniqueItems: true },
        map: { type: "object", additionalProperties: { type: "integer" }, minProperties: 1 },
        long: { type: "string", maxLength: 100_000 },
        not: { not: { type: "string" }, type: "integer" },
        some: { oneOf: [{ type: "integer" }, { type: "number" }] }
      },
      if: { required: ["mail"] }
    }
    assert.sameDeepMembers(
      [...notCarried(parameters)],
      [
        { keyword: "if", pointer: "" },
        { keyword: "uniqueItems", pointer: "/properties/a~1b" },
        { keyword: "multipleOf", pointer: "/properties/a~1b/items" },
        { keyword: "maxLength", pointer: "/properties/long" },
        { keyword: "pattern", pointer: "/properties/mail" },
        { keyword: "minProperties", pointer: "/properties/map" },
        { keyword: "(distinct keys)", pointer: "/properties/map/additionalProperties" },
        { keyword: "not", pointer: "/properties/not" },
        { keyword: "oneOf", pointer: "/properties/some" }
      ]
    )
  })

  it("are none where everything is carried, and lengths of text where arguments are no JSON", () => {
    for (const [name, schema] of Object.entries(schemas)) assert.deepStrictEqual(notCarried(schema), [], name)
    assert.deepStrictEqual(
      notCarried({ type: "object", properties: { a: { type: "string", maxLength: 3 } } }, "qwen3-coder"),
      [{ keyword: "maxLength", pointer: "/properties/a" }]
    )
  })

  it("name a tool that no arguments fit, and leave it out", () => {
    const impossible = { type: "object", properties: { a: false }, required: ["a"] }
    const made = Result.getOrThrow(byId("qwen2.5")).grammar!([tool("no", impossible), tool("yes")])!
    assert.deepStrictEqual(made.notCarried, [{ tool: "no", pointer: "", keyword: "(no arguments fit)" }])
    assert.notInclude(made.grammar.rules, '\\"no\\"')
  })
})

describe("the size of a grammar", () => {
  it("stays bounded for schemas that refer to themselves twice over", () => {
    const node = {
      type: "object",
      properties: { l: { $ref: "#/$defs/n" }, r: { anyOf: [{ $ref: "#/$defs/n" }, { type: "null" }] } }
    }
    const made = Result.getOrThrow(byId("qwen2.5")).grammar!([
      tool("t", { type: "object", properties: { root: { $ref: "#/$defs/n" } }, $defs: { n: node } })
    ])!
    assert.isBelow(made.grammar.rules.length, 60_000)
    assert.deepStrictEqual(made.notCarried, [])
  })
})
