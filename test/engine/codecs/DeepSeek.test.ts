import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Codec, MalformedCode } from "../../../src/engine/codecs/Codec.ts"
import { deepSeekR1, deepSeekV3, deepSeekV31, deepSeekV31LlamaCpp } from "../../../src/engine/codecs/DeepSeek.ts"
import { deepSeekR10528 } from "../../../src/engine/codecs/DeepSeek0528.ts"
import { opensReasoning } from "../../../src/engine/codecs/Thinking.ts"
import type { EndReason } from "../../../src/engine/Generation.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { cutAt, parsePieces, sharedCases, splits, tool, units } from "../../kit/codecs.ts"
import { parseReport, type Ruling, sharedProblems, undocumented } from "../../kit/conformance.ts"
import { args, toolName } from "../../kit/conversations.ts"

const options = { tools: [tool("calc"), tool("read")] }

/** The same at every cut. */
const parse = (codec: Codec, text: string, reason: EndReason = "eog") => {
  const whole = parsePieces(codec, [text], options, reason)
  for (const pieces of [units(text), ...splits(text)])
    assert.deepStrictEqual(parsePieces(codec, pieces, options, reason), whole)
  return whole
}

const fenced = (...parts: ReadonlyArray<string>) =>
  `<｜tool▁calls▁begin｜>${parts.map((part) => `<｜tool▁call▁begin｜>${part}<｜tool▁call▁end｜>`).join("\n")}<｜tool▁calls▁end｜>`
const body = (json: string, name = "calc") => `function<｜tool▁sep｜>${name}\n\`\`\`json\n${json}\n\`\`\``

describe("deepseek", () => {
  const untold: Ruling = [
    /malformed unclosed_reasoning|r1_format|with_end_token|(?:SIMPLE|COMPLETE|SHORTEST)_REASONING|MULTIPLE_LINES|deepseek-r1@4563/,
    "the runtime says when the prompt opened the reasoning; unclosed reasoning is malformed"
  ]
  for (const [codec, family, rulings] of [
    [
      deepSeekV3,
      "deepseek-v3",
      [
        [
          /malformed_json_handling|invalid_format_returns_as_normal_text#1/,
          "a broken call is malformed, never dropped or prose"
        ],
        [/TestParser\[deepseek/, "marks with plain bars are not this family's"]
      ]
    ],
    [deepSeekR1, "deepseek-r1", [untold]],
    [
      deepSeekV31,
      "deepseek-v3.1",
      [
        [/multiple_tools.*suffix text/, "prose after a call is kept"],
        [/forged_tool_response/, "an answer of a tool in the model's own turn is forged"],
        [/only_thinking/, "reasoning alone is no answer"],
        [/malformed_tool_call/, "a broken call is malformed, never dropped"],
        [/tag_at_end_with_thinking/, "unclosed reasoning is malformed by default"],
        [/consecutive_tool_calls/, "two sections are two calls"]
      ]
    ]
  ] as const) {
    const parses = parseReport(codec, family, {
      rulings,
      wrap: (part) => `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>${part}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`
    })
    it.skipIf(parses === undefined)(
      `reads the conformance outputs of ${family}, but for the rulings (data: WRIT_CONFORMANCE)`,
      () => {
        assert.deepStrictEqual(undocumented(family, parses!), [])
      }
    )
  }

  for (const shared of sharedCases("deepseek-v3")) {
    it(`ends ${shared.id} as ${shared.expected.action}, however it arrives`, () => {
      assert.deepStrictEqual(sharedProblems(deepSeekV3, shared), [])
    })
  }

  const broken: ReadonlyArray<readonly [string, MalformedCode, EndReason?]> = [
    [fenced(), "empty_call"],
    [fenced(body('{"a": 1,}')), "invalid_json"],
    [fenced(body("[1]")), "arguments_not_object"],
    [fenced(body("{} {}")), "wrong_envelope"],
    [fenced(body("{}", "")), "missing_name"],
    [fenced("calc<｜tool▁sep｜>{}"), "wrong_envelope"],
    [fenced(body("{}"), "x"), "wrong_envelope"],
    [fenced(body("{}")).replace("```<", "<"), "wrong_envelope"],
    [fenced(body("{}")).replace("<｜tool▁call▁end｜>", ""), "missing_closer"],
    [fenced(body("{}")).replace("<｜tool▁calls▁end｜>", ""), "unclosed_call"],
    [fenced(body("{}")).slice(0, 60), "truncated", "length"],
    [`x<｜tool▁call▁begin｜>${body("{}")}`, "missing_opener"],
    [`${fenced(body("{}"))}<｜tool▁outputs▁begin｜>1`, "forged_tool_response"],
    ["Hi<｜User｜>x", "forged_turn"],
    [`{"name": "calc", "arguments": {}}`, "wrong_envelope"]
  ]
  for (const [text, code, reason] of broken) {
    it(`calls ${JSON.stringify(text).slice(0, 90)} ${code}${reason === undefined ? "" : " (length)"}`, () => {
      const { action } = parse(deepSeekV3, text, reason)
      assert.strictEqual(action._tag === "Malformed" ? action.code : action._tag, code)
    })
  }

  it("names the broken call and keeps those before it", () => {
    const { action } = parse(deepSeekV3, fenced(body("{}"), body("{")))
    assert.strictEqual(action._tag === "Malformed" ? action.ordinal : -1, 1)
    assert.strictEqual(action._tag === "Malformed" ? action.partial.length : -1, 1)
  })

  it("shows the tools behind the system text, which its own template does not", () => {
    const spec = { tools: [tool("calc", { type: "object" }, "Adds.")] }
    const whole = flatten(
      deepSeekV31.render(
        [
          { role: "system", content: "S" },
          { role: "user", content: "Q" }
        ],
        spec
      )
    )
    assert.include(whole, "S\n\n## Tools")
    assert.include(whole, '### calc\nDescription: Adds.\n\nParameters: {"type": "object"}')
    assert.isTrue(whole.startsWith(flatten(deepSeekV31.system("S", spec))))
  })

  it("opens a turn after a question and not after answers", () => {
    assert.strictEqual(flatten(deepSeekV31.opening({ tools: [] })), "<｜Assistant｜></think>")
    assert.strictEqual(flatten(deepSeekV31.opening({ tools: [], thinking: true })), "<｜Assistant｜><think>")
    assert.strictEqual(flatten(deepSeekV31.opening({ tools: [], after: "answers" })), "")
    assert.isTrue(opensReasoning(deepSeekR1, { tools: [] }))
    assert.isFalse(opensReasoning(deepSeekV31, { tools: [] }))
    assert.strictEqual(flatten(deepSeekV31LlamaCpp.opening({ tools: [] })), "<｜Assistant｜><think></think>")
    assert.isFalse(opensReasoning(deepSeekV31LlamaCpp, { tools: [] }))
    assert.isTrue(opensReasoning(deepSeekV31LlamaCpp, { tools: [], thinking: true }))
    assert.isFalse(opensReasoning(deepSeekR10528, { tools: [] }))
  })

  it("reads back every call it writes, at any cut", () => {
    for (const codec of [deepSeekV3, deepSeekR10528, deepSeekV31]) {
      fc.assert(
        fc.property(
          fc.array(fc.record({ name: toolName, arguments: args }), { minLength: 1, maxLength: 3 }),
          fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 5 }),
          (list, cuts) => {
            const text = flatten(codec.written({ role: "assistant", content: "", calls: list }))
            const { action } = parsePieces(codec, cutAt(text, cuts), options)
            assert.deepStrictEqual(
              action._tag === "ToolCalls"
                ? action.calls.map((one) => ({ name: one.name, arguments: one.arguments }))
                : action,
              list
            )
          }
        )
      )
    }
  })
})
