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

/** Families whose calls are free, and why. */
const free: Readonly<Record<string, string>> = {}
/** Calls that are made of each family's grammars. */
const calls = 1000

const notCarried = (parameters: JsonObject, id = "qwen2.5"): ReadonlyArray<Omit<NotCarried, "tool">> => {
  const made = Result.getOrThrow(byId(id)).grammar!([tool("t", parameters)])
  return (made?.notCarried ?? []).map(({ keyword, pointer }) => ({ keyword, pointer }))
}

/** Does the grammar of `tools` offer this call, in the words of the codec? */
const offers = (codec: Codec, tools: ReadonlyArray<ToolSpec>, name: string, args: JsonObject): boolean => {
  const { grammar } = codec.grammar!(tools)!
  const id = codec.id.startsWith("mistral") ? { id: "abcdefghi" } : {}
  const turn = { role: "assistant", content: "", calls: [{ name, arguments: args, ...id }] } as const
  const call = flatten([...codec.written(turn, { tools, thinking: false }), ...(codec.closingAfterCalls ?? [])])
  return grammar.openers.some(({ root, text }) => {
    const from = call.indexOf(text)
    return from >= 0 && new Gbnf(withMarks(grammar)).matches(root, call.slice(from + text.length))
  })
}

for (const codec of able) {
  describe(codec.id, () => {
    it.effect("every text of a grammar is one call that validates, and its end is seen", () =>
      Effect.gen(function* () {
        const usable = Object.entries(schemas).flatMap(([name, schema]) => {
          const tools = [tool(name, schema), tool("other")]
          const made = codec.grammar!(tools)!
          return made.notCarried.length > 0 ? [] : [{ name, schema, tools, made }]
        })
        assert.isAtLeast(usable.length, 6)
        let written = 0
        for (const { made, name, schema, tools } of usable) {
          const grammar = new Gbnf(withMarks(made.grammar))
          const checker = yield* JsonSchema.compile(schema)
          for (let seed = 1; seed <= Math.ceil(calls / usable.length); seed++) {
            const opener = made.grammar.openers[seed % made.grammar.openers.length]!
            const text = opener.text + grammar.generate(opener.root, seeded(seed * 31 + name.length))
            const { action } = parsePieces(codec, [text], { tools })
            assert.strictEqual(action._tag, "ToolCalls", JSON.stringify({ name, text, action }))
            if (action._tag !== "ToolCalls") continue
            written += 1
            for (const call of action.calls) {
              if (call.name !== name) continue
              const checked = checker.check(call.arguments)
              if (Result.isFailure(checked)) assert.fail(JSON.stringify({ text, problems: checked.failure }))
            }
            const watch = new CallWatch(made.grammar)
            const seen = units(text).map((unit) => watch.take(unit)._tag)
            assert.strictEqual(seen.indexOf("released"), seen.length - 1, text)
          }
        }
        assert.isAtLeast(written, calls)
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

describe("the families", () => {
  it("all have a grammar of their calls, or a reason why not", () => {
    const without = codecs.filter((codec) => codec.grammar === undefined).map((codec) => codec.id)
    assert.sameMembers(without, Object.keys(free))
    for (const id of ids) assert.isDefined(able.find((codec) => codec.id === id) ?? free[id], id)
  })
})

const textTool = (schema: JsonObject) => [tool("t", { type: "object", properties: { a: schema }, required: ["a"] })]

describe("strings that a reader could take for marks", () => {
  it("are offered to gpt-oss with the mark's first letter escaped, and not as they are", () => {
    const codec = Result.getOrThrow(byId("gpt-oss"))
    for (const schema of [{ type: "string" }, { type: "string", maxLength: 30 }]) {
      const { grammar } = codec.grammar!(textTool(schema))!
      const gbnf = new Gbnf(withMarks(grammar))
      const head = "functions.t<|channel|>commentary json<|message|>"
      const fits = (value: string) => gbnf.matches(grammar.openers[2]!.root, `${head}{"a": "${value}"}<|call|>`)
      assert.isTrue(fits("a < b | c > d << |"))
      assert.isTrue(fits("\\u003c|end|>"))
      assert.isFalse(fits("x<|end|>y"))
      assert.isFalse(fits("<<|call|>"))
      assert.strictEqual(fits("f <| x"), !("maxLength" in schema))
    }
    const listed = codec.grammar!(textTool({ enum: ["<|start|>"] }))!.grammar.rules
    assert.include(listed, "\\\\u003c|start|>")
  })

  for (const [id, quote] of [
    ["gemma4", '<|"|>'],
    ["functiongemma", "<escape>"]
  ] as const) {
    it(`are offered to ${id} as they are, but for its own quote`, () => {
      const codec = Result.getOrThrow(byId(id))
      for (const value of ["</tool_call>", '"{[,:', "<tool_call|> <end_function_call>", "<<", quote.slice(0, -1)]) {
        assert.isTrue(offers(codec, textTool({ type: "string" }), "t", { a: value }), value)
      }
      for (const schema of [{ type: "string" }, { type: "string", maxLength: 40 }] as const) {
        assert.isFalse(offers(codec, textTool(schema), "t", { a: `x${quote}y` }))
      }
      assert.isFalse(offers(codec, textTool({ type: "string", maxLength: 3 }), "t", { a: "abcd" }))
      assert.isFalse(offers(codec, textTool({ type: "string", minLength: 3 }), "t", { a: "ab" }))
    })

    it(`write keys as ${id} does: sorted, bare, and none that could not be read back`, () => {
      const codec = Result.getOrThrow(byId(id))
      const open = tool("t", { type: "object", properties: { b: {}, A: {}, "x y": {} }, additionalProperties: true })
      assert.isTrue(offers(codec, [open], "t", { b: [1, { k: null }], A: "x", "x y": true, zzz: -1.5 }))
      assert.isFalse(offers(codec, [open], "t", { "": 1 }))
      const made = codec.grammar!([
        tool("t", { type: "object", properties: { "a:b": { type: "string" }, c: { const: quote } } })
      ])!
      assert.deepStrictEqual(made.notCarried, [
        { tool: "t", pointer: "/properties/a:b", keyword: "(its name cannot be written)" }
      ])
      assert.isUndefined(codec.grammar!([tool("t", { type: "object", properties: { "a:b": {} }, required: ["a:b"] })]))
    })
  }

  it("are told of where their length is more than can be counted", () => {
    const long = textTool({ type: "string", maxLength: 1500 })
    const listed = (id: string) => Result.getOrThrow(byId(id)).grammar!(long)!.notCarried
    assert.deepStrictEqual(listed("qwen2.5"), [])
    for (const id of ["gpt-oss", "gemma4", "functiongemma"]) {
      assert.deepStrictEqual(listed(id), [{ tool: "t", pointer: "/properties/a", keyword: "maxLength" }])
    }
  })
})

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
