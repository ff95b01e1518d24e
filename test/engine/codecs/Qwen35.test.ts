import { assert, describe, it } from "@effect/vitest"
import { qwen35, qwen38 } from "../../../src/engine/codecs/Qwen35.ts"
import { opensReasoning } from "../../../src/engine/codecs/Thinking.ts"
import type { Message } from "../../../src/engine/Message.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { firstDifference, parsePieces, splits, tool, units } from "../../kit/codecs.ts"
import { parseReport, undocumented } from "../../kit/conformance.ts"

const calc = tool(
  "calc",
  { type: "object", properties: { a: { type: "integer" }, exact: { type: "boolean" } }, required: ["a"] },
  "Integer sum <é>."
)

describe("qwen3.5", () => {
  const parses = parseReport(qwen35, "qwen3.5", {
    rulings: [
      [/Qwen3\.5-4B@1948/, "reasoning is split off, always"],
      [/Qwen3\.5-4B@2102/, "a second opening tag right after the prompt's is swallowed"],
      [
        /keep_distinct_arguments/,
        "without an opened block </think> is data; the runtime says when the prompt opened one"
      ],
      [/truncated tool call/, "an unclosed call is malformed"],
      [/XMLToolCall|AfterThinkingCloseIsParsed/, "tags stand on lines of their own"],
      [/EmittedInThinkingIsParsed|TruncatedWithoutCloseTag/, "unclosed reasoning is malformed by default"]
    ]
  })
  it.skipIf(parses === undefined)(
    "reads every conformance output as expected, but for the rulings (data: WRIT_CONFORMANCE)",
    () => {
      assert.deepStrictEqual(undocumented("qwen3.5", parses!), [])
      assert.isAbove(parses!.ran, 15)
    }
  )

  it("prints the golden rest of a prompt byte for byte", () => {
    const messages: ReadonlyArray<Message> = [
      { role: "user", content: "Q" },
      {
        role: "assistant",
        content: "T",
        reasoning: "why",
        calls: [
          { name: "calc", arguments: { a: 1, exact: true } },
          { name: "calc", arguments: {} }
        ]
      },
      { role: "tool", name: "calc", content: "R1" },
      { role: "tool", name: "calc", content: "R2" }
    ]
    const golden =
      "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\n<think>\nwhy\n</think>\n\nT\n\n<tool_call>\n<function=calc>\n<parameter=a>\n1\n</parameter>\n<parameter=exact>\nTrue\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=calc>\n</function>\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\nR1\n</tool_response>\n<tool_response>\nR2\n</tool_response><|im_end|>\n<|im_start|>assistant\n<think>\n"
    assert.strictEqual(
      firstDifference(flatten(qwen35.render(messages, { tools: [], generationPrompt: true })), golden),
      undefined
    )
    const appended = flatten([
      ...qwen35.user("Q"),
      ...qwen35.opening({ tools: [] }),
      ...qwen35.written(messages[1] as Extract<Message, { readonly role: "assistant" }>, { tools: [] }),
      ...qwen35.closing,
      ...qwen35.answers([
        { name: "calc", text: "R1" },
        { name: "calc", text: "R2" }
      ]),
      ...qwen35.opening({ tools: [] })
    ])
    assert.strictEqual(appended, golden)
  })

  it("takes the older JSON payload too, told apart by its first character", () => {
    const options = { tools: [calc] }
    const turn = `<tool_call>\n{"name": "calc", "arguments": {"a": 1}}\n</tool_call>\n<tool_call>\n<function=calc>\n</function>\n</tool_call>`
    const whole = parsePieces(qwen35, [turn], options)
    assert.strictEqual(whole.action._tag === "ToolCalls" ? whole.action.calls.length : 0, 2)
    for (const pieces of [units(turn), ...splits(turn)])
      assert.deepStrictEqual(parsePieces(qwen35, pieces, options), whole)
    const { action } = parsePieces(qwen35, ["<tool_call>\ncalc(1)\n</tool_call>"], options)
    assert.strictEqual(action._tag === "Malformed" ? action.code : "", "wrong_envelope")
  })

  it("puts the tools before the system text", () => {
    const out = flatten(qwen35.system(" S ", { tools: [calc] }))
    assert.isTrue(out.startsWith("<|im_start|>system\n# Tools\n\n") && out.endsWith("</IMPORTANT>\n\nS<|im_end|>\n"))
  })

  it("opens the reasoning in the prompt, or closes it there", () => {
    assert.isTrue(opensReasoning(qwen35, { tools: [] }))
    assert.isFalse(opensReasoning(qwen35, { tools: [], thinking: false }))
    const turn =
      "hm\n</think>\n\n<tool_call>\n<function=calc>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>"
    const { action } = parsePieces(qwen35, [turn], { tools: [calc], reasoningOpen: true })
    assert.deepStrictEqual(action._tag === "ToolCalls" ? action.calls : action, [
      { ordinal: 0, name: "calc", arguments: { a: 1 } }
    ])
  })

  it("of 3.8 is told how much to think unless it shall not, and keeps the reasoning of every turn", () => {
    const messages: ReadonlyArray<Message> = [
      { role: "user", content: "Q" },
      { role: "assistant", content: "A", reasoning: "why" },
      { role: "user", content: "R" }
    ]
    const told = flatten(qwen38.render(messages, { tools: [calc] }))
    assert.match(told, /^<\|im_start\|>system\nReasoning effort is set to xhigh\. .*\n\n# Tools\n/)
    assert.include(told, "<think>\nwhy\n</think>\n\nA<|im_end|>")
    const silent = flatten(qwen38.render(messages, { tools: [], thinking: false }))
    assert.isTrue(silent.startsWith("<|im_start|>user\nQ"))
    assert.include(silent, "<think>\nwhy\n</think>")
    assert.notInclude(flatten(qwen35.render(messages, { tools: [calc] })), "why")
  })
})
