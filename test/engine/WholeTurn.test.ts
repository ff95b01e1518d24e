import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Codec, RenderOptions } from "../../src/engine/codecs/Codec.ts"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import { opensReasoning } from "../../src/engine/codecs/Thinking.ts"
import { CallWatch } from "../../src/engine/grammar/CallWatch.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import { answerLead, callFirst, callLead, valueGrammar } from "../../src/engine/WholeTurn.ts"
import * as JsonSchema from "../../src/tools/JsonSchema.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import { parsePieces, tool } from "../kit/codecs.ts"
import { Gbnf, seeded, withMarks } from "../kit/gbnf.ts"
import { schemas } from "../kit/schemas.ts"

const codecs: ReadonlyArray<Codec> = ids.map((id) => Result.getOrThrow(byId(id)))
const closed = (schema: JsonObject) => JsonSchema.compile(schema)

for (const codec of codecs) {
  describe(codec.id, () => {
    const options = (tools: RenderOptions["tools"]): RenderOptions => ({ tools, thinking: false, after: "user" })

    it.effect("a turn that has to begin with a call is one, of any of its tools, and is let go at its end", () =>
      Effect.gen(function* () {
        let written = 0
        const names = new Set<string>()
        for (const [name, schema] of Object.entries(schemas)) {
          const tools = [tool(name, schema), tool("other", { type: "object", properties: {}, required: [] })]
          const held = callFirst(codec, tools, options(tools))
          assert.isDefined(held, name)
          const grammar = new Gbnf(withMarks(held!))
          const checker = yield* closed(schema)
          const exact = codec.grammar!(tools)!.notCarried.length === 0
          for (let seed = 1; seed <= 8; seed++) {
            const text = grammar.generate(held!.start!.root, seeded(seed * 17 + name.length))
            const { action } = parsePieces(codec, [text], { tools })
            assert.strictEqual(action._tag, "ToolCalls", JSON.stringify({ name, text, action }))
            if (action._tag !== "ToolCalls") continue
            const [call] = action.calls
            names.add(call!.name === "other" ? "other" : "own")
            if (exact && call!.name === name) assert.isTrue(Result.isSuccess(checker.check(call!.arguments)), text)
            const watch = new CallWatch(held!)
            const seen = Array.from(text, (one) => watch.take(one)._tag)
            assert.strictEqual(seen.indexOf("released"), seen.length - 1, text)
            written += 1
          }
        }
        assert.isAbove(written, 40)
        assert.deepStrictEqual([...names].sort(), ["other", "own"])
      })
    )

    it("what leads to an answer or a call closes the reasoning that the opening began, and nothing else", () => {
      const given = options([tool("t")])
      const opens = opensReasoning(codec, given)
      for (const lead of [answerLead(codec, given), callLead(codec, given)]) {
        assert.isTrue(lead.every(({ kind }) => kind === "control"))
        assert.strictEqual(codec.reasoning !== undefined && flatten(lead).includes(codec.reasoning.close), opens)
      }
      const answer = flatten(codec.written({ role: "assistant", content: "So it is." }, given))
      assert.isTrue(
        flatten([...answerLead(codec, given)]).endsWith(answer.slice(0, answer.indexOf("So it is.")).trimStart())
      )
    })
  })
}

describe("valueGrammar", () => {
  it.effect("every text of it is one value that satisfies the schema, and it is never let go", () =>
    Effect.gen(function* () {
      let exact = 0
      for (const [name, schema] of Object.entries(schemas)) {
        const made = valueGrammar(schema)
        assert.isDefined(made, name)
        const grammar = new Gbnf(withMarks(made!.grammar))
        const checker = yield* closed(schema)
        for (let seed = 1; seed <= 20; seed++) {
          const text = grammar.generate(made!.grammar.start!.root, seeded(seed))
          const value = JSON.parse(text) as JsonObject
          if (made!.notCarried.length === 0) {
            exact += 1
            assert.isTrue(Result.isSuccess(checker.check(value)), text)
          }
          const watch = new CallWatch(made!.grammar)
          assert.isTrue(Array.from(`${text} {}`, (one) => watch.take(one)._tag).every((tag) => tag === "held"))
        }
      }
      assert.isAbove(exact, 100)
    })
  )

  it("bounds hold where the schema has none, at every depth, and never against a least that is higher", () => {
    const schema: JsonObject = {
      type: "object",
      properties: {
        free: { type: "string" },
        own: { type: "string", maxLength: 9 },
        least: { type: "string", minLength: 5 },
        list: { type: "array", items: { anyOf: [{ type: "string" }, { $ref: "#/$defs/deep" }] } }
      },
      required: ["free", "own", "least", "list"],
      $defs: { deep: { type: "object", properties: { items: { type: "string" } }, required: ["items"] } }
    }
    const { grammar } = valueGrammar(schema, { characters: 3, items: 2 })!
    const gbnf = new Gbnf(withMarks(grammar))
    const fits = (value: unknown) => gbnf.matches(grammar.start!.root, JSON.stringify(value))
    const value = { free: "abc", own: "123456789", least: "12345", list: ["abc", { items: "abc" }] }
    assert.isTrue(fits(value))
    for (const wrong of [
      { free: "abcd" },
      { own: "1234567890" },
      { least: "1234" },
      { list: ["a", "b", "c"] },
      { list: [{ items: "abcd" }] }
    ]) {
      assert.isFalse(fits({ ...value, ...wrong }), JSON.stringify(wrong))
    }
    const free = valueGrammar(schema)!
    assert.isTrue(
      new Gbnf(withMarks(free.grammar)).matches(free.grammar.start!.root, JSON.stringify({ ...value, free: "abcd" }))
    )
  })

  it("there is none for a schema that nothing satisfies", () => {
    assert.isUndefined(valueGrammar({ type: "object", properties: { a: { enum: [] } }, required: ["a"] }))
  })
})
