import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { qwen25 } from "../../../src/engine/codecs/Qwen25.ts"
import { compile, type TemplateInput } from "../../../src/engine/codecs/Template.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { firstDifference, shippedModel, templateOf, tool } from "../../kit/codecs.ts"
import { conversation } from "../../kit/conversations.ts"

const render = (source: string, input: TemplateInput) =>
  Effect.flatMap(compile(source), (template) => template.render(input))

const noon = new Date("2026-11-30T12:00:00Z")

describe("a chat template", () => {
  it.effect("prints JSON with Python's spacing, as it is and in order", () =>
    Effect.gen(function* () {
      const tools = [tool("t", { type: "object", b: 'é <&> "', a: [1, null, true] }, "d")]
      const out = yield* render("{{ tools[0].function.parameters | tojson }}", { messages: [], tools })
      assert.strictEqual(out, '{"type": "object", "b": "é <&> \\"", "a": [1, null, true]}')
    })
  )

  it.effect("trims blocks as Hugging Face does", () =>
    Effect.gen(function* () {
      const out = yield* render(
        "{% for m in messages %}\n  {% if true %}\n[{{ m.content }}]\n{% endif %}\n{% endfor %}\n",
        {
          messages: [
            { role: "user", content: "a" },
            { role: "user", content: "b" }
          ]
        }
      )
      assert.strictEqual(out, "[a]\n[b]\n")
    })
  )

  it.effect("tells what it raised from what the engine cannot run, and both from bad syntax", () =>
    Effect.gen(function* () {
      const reasonOf = (source: string) =>
        Effect.map(Effect.flip(render(source, { messages: [] })), (error) => error.reason)
      assert.strictEqual(yield* reasonOf("{{ raise_exception('only users') }}"), "refused")
      assert.strictEqual(yield* reasonOf("{{ messages | no_such_filter }}"), "unsupported")
      assert.strictEqual(yield* reasonOf("{% if %}"), "syntax")
    })
  )

  it.effect("sees the time only through the clock it is given", () =>
    Effect.gen(function* () {
      const source = "{{ strftime_now('%d %b %Y') }}"
      assert.strictEqual(yield* render(source, { messages: [], now: noon }), "30 Nov 2026")
      assert.strictEqual((yield* Effect.flip(render(source, { messages: [] }))).reason, "refused")
    })
  )

  it.effect("leaves tools undefined where there are none, since templates ask for that", () =>
    Effect.gen(function* () {
      const source = "{{ 'some' if tools else 'none' }} {{ tools is defined }}"
      assert.strictEqual(yield* render(source, { messages: [], tools: [] }), "none false")
    })
  )
})

describe("the template of the shipped model", () => {
  const source = templateOf(shippedModel)

  it.effect("renders generated conversations exactly as the codec does", () =>
    Effect.gen(function* () {
      assert.isDefined(source, "the model file has no template")
      const template = yield* compile(source!)
      const samples = fc.sample(conversation, { numRuns: 400, seed: 25 })
      for (const sample of samples) {
        // Its default system text is its own, so there is always one here.
        const messages =
          sample.messages[0]?.role === "system"
            ? sample.messages
            : [{ role: "system" as const, content: "S" }, ...sample.messages]
        for (const generationPrompt of [true, false]) {
          const expected = yield* template.render({ messages, tools: sample.tools, generationPrompt })
          const actual = flatten(qwen25.render(messages, { tools: sample.tools, generationPrompt }))
          assert.strictEqual(
            firstDifference(actual, expected),
            undefined,
            JSON.stringify({ messages, tools: sample.tools })
          )
        }
      }
    })
  )
})
