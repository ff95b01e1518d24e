import { assert, describe, it } from "@effect/vitest"
import { qwen3, qwen3Thinking } from "../../../src/engine/codecs/Qwen3.ts"
import { opensReasoning } from "../../../src/engine/codecs/Thinking.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { parsePieces, tool } from "../../kit/codecs.ts"
import { parseReport, undocumented } from "../../kit/conformance.ts"

describe("qwen3", () => {
  const parses = parseReport(qwen3, "qwen3", {
    wrap: (body) => `<tool_call>${body}</tool_call>`,
    rulings: [
      [
        /forced_reasoning_format|WITHOUT_START_TOKEN/,
        "without an opened block </think> is data; the runtime says when the prompt opened one"
      ],
      [
        /TOOL_CALL_WITH_THINK_NO_END|ONLY_OPEN_TAG|tag fakeout\]@135|WithToolCallBeforeThinkingClose/,
        "unclosed reasoning is malformed by default"
      ],
      [
        /ParserStreaming\[.*malformed empty_turn|ThinkingPrefill\[thinking prefill with fakeout\]@423/,
        "reasoning alone is no answer"
      ],
      [
        /invalid_format_returns_as_normal_text|mixed_valid_and_invalid|failed_parsing/,
        "a broken call is malformed, never prose"
      ],
      [
        /incomplete_tags#0|content before tool call|followed by args|non streaming(?: multiple)?\]@6/,
        "an unclosed call is malformed"
      ],
      [/incomplete_tags#1/, "an orphan closing tag is malformed"],
      [/collision\]@572/, "a stray brace makes the call malformed"],
      [/names with quotes/, "no tool can have that name"],
      [
        /NonThinkingParserStreaming\[(?:simple trip|interleaved)/,
        "a block at the start of a turn is reasoning whether or not it was asked for"
      ],
      [/ThinkingParserStreaming\[interleaved/, "a second opening tag right after the prompt's is swallowed"],
      [
        /partial thinking incomplete|unicode with partial tool tag/,
        "what was held back is given out at the end of the turn"
      ]
    ]
  })
  it.skipIf(parses === undefined)(
    "reads every conformance output as expected, but for the rulings (data: WRIT_CONFORMANCE)",
    () => {
      assert.deepStrictEqual(undocumented("qwen3", parses!), [])
      assert.isAbove(parses!.ran, 70)
    }
  )

  it("switches thinking off with an empty block in the opening, and says when the prompt opened one", () => {
    assert.strictEqual(flatten(qwen3.opening({ tools: [] })), "<|im_start|>assistant\n")
    assert.strictEqual(flatten(qwen3.opening({ tools: [], thinking: true })), "<|im_start|>assistant\n")
    assert.isTrue(flatten(qwen3.opening({ tools: [], thinking: false })).endsWith("assistant\n<think>\n\n</think>\n\n"))
    assert.isFalse(opensReasoning(qwen3, { tools: [], thinking: false }))
    assert.isTrue(opensReasoning(qwen3Thinking, { tools: [] }))
  })

  it("inserts no system turn of its own", () => {
    assert.deepStrictEqual(qwen3.system(undefined, { tools: [] }), [])
    assert.isTrue(flatten(qwen3.system(undefined, { tools: [tool("t")] })).startsWith("<|im_start|>system\n# Tools"))
  })

  it("is append-only within a question when it thinks and reasoning is kept, and not when it does not think", () => {
    const question = { role: "user", content: "Q" } as const
    const call = { role: "assistant", content: "", calls: [{ name: "t", arguments: {} }] } as const
    const result = { role: "tool", name: "t", content: "R" } as const
    const prompt = (messages: Parameters<typeof qwen3.render>[0], thinking: boolean) =>
      flatten(qwen3.render(messages, { tools: [], thinking, generationPrompt: true }))
    const thought = { ...call, reasoning: "why" }
    assert.isTrue(prompt([question, thought, result], true).startsWith(prompt([question], true)))
    assert.isFalse(prompt([question, call, result], false).startsWith(prompt([question], false)))
  })

  it("starts inside the reasoning when the prompt opened it", () => {
    const outcome = parsePieces(qwen3Thinking, ["hm</think>\n\nDone."], { tools: [], reasoningOpen: true })
    assert.deepStrictEqual(outcome.action, { _tag: "FinalText", text: "Done.", reasoning: "hm" })
  })
})
