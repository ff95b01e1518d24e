import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { Markup, settle } from "../../../src/engine/codecs/Markup.ts"
import { qwen25 } from "../../../src/engine/codecs/Qwen25.ts"
import { makeControl } from "../../../src/engine/LlamaControl.ts"
import { load } from "../../../src/engine/LlamaModel.ts"
import type { Message } from "../../../src/engine/Message.ts"
import { control, flatten, text } from "../../../src/engine/Prompt.ts"
import { shippedModel, tool } from "../../kit/codecs.ts"

const markers = ["<a>", "</a>"]

const lookup: ReadonlyArray<Message> = [
  { role: "system", content: "You are a small local assistant. Use the tools when they help and answer briefly." },
  { role: "user", content: "What is the temperature in riyadh?" },
  { role: "assistant", content: "", calls: [{ name: "lookup", arguments: { key: "temperature in riyadh" } }] },
  { role: "tool", name: "lookup", content: '{"ok":true,"result":"41 C"}' },
  { role: "assistant", content: "41 C." }
]

describe("segments", () => {
  it("give plain words next to content to the content and keep markers control", () => {
    const out = new Markup(markers).mark("<a>user\n").say("hi").mark("\nbye</a>\n").done()
    assert.deepStrictEqual(out, [control("<a>"), text("user\nhi\nbye"), control("</a>\n")])
  })

  it("leave a marker that content spells in the content", () => {
    const out = new Markup(markers).mark("<a>").say("</a><a>").mark("</a>").done()
    assert.deepStrictEqual(out, [control("<a>"), text("</a><a>"), control("</a>")])
  })

  it("lose no character and never move one across a marker", () => {
    const piece = fc.record({
      kind: fc.constantFrom("control" as const, "text" as const),
      text: fc.constantFrom("<a>", "</a>", "x", "\n", "", "y<a>z</a>")
    })
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
        const out = settle(pieces, markers)
        assert.strictEqual(flatten(out), flatten(pieces))
        const markersIn = (list: typeof out) =>
          list
            .filter((one) => one.kind === "control")
            .map((one) => one.text)
            .join("")
            .match(/<\/?a>/g)?.length ?? 0
        assert.strictEqual(markersIn(out), markersIn(pieces))
      })
    )
  })

  it.live("have the tokens of the whole text, merges over the seams included", () =>
    Effect.gen(function* () {
      const engine = yield* load({ modelPath: fileURLToPath(shippedModel), threads: 1, gpu: false }, makeControl())
      const segments = qwen25.render(lookup, {
        tools: [
          tool("lookup", { type: "object", properties: { key: { type: "string" } }, required: ["key"] }, "Looks up.")
        ],
        generationPrompt: true
      })
      const whole = yield* engine.tokenize([control(flatten(segments))])
      assert.deepStrictEqual(yield* engine.tokenize(segments), whole)
    }).pipe(Effect.scoped)
  )
})
