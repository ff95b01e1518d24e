import { assert, describe, it } from "@effect/vitest"
import { qwq } from "../../../src/engine/codecs/Qwq.ts"
import { opensReasoning } from "../../../src/engine/codecs/Thinking.ts"
import type { Message } from "../../../src/engine/Message.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { parsePieces, tool } from "../../kit/codecs.ts"

const calc = tool("calc")

describe("qwq", () => {
  it("opens every turn with a block of reasoning and drops it from old answers, but not from the last", () => {
    const messages: ReadonlyArray<Message> = [
      { role: "user", content: "Q" },
      { role: "assistant", content: "<think>\nwhy\n</think>\n\nA" },
      { role: "user", content: "R" },
      { role: "assistant", content: "<think>\nhm\n</think>\n\nB", reasoning: "never printed" }
    ]
    assert.strictEqual(
      flatten(qwq.render(messages, { tools: [], generationPrompt: true })),
      "<|im_start|>user\nQ<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nR<|im_end|>\n" +
        "<|im_start|>assistant\n<think>\nhm\n</think>\n\nB<|im_end|>\n<|im_start|>assistant\n<think>\n"
    )
    assert.isTrue(opensReasoning(qwq, { tools: [] }))
  })

  it("leaves an empty line where tools stand without a system text", () => {
    assert.isTrue(flatten(qwq.system(undefined, { tools: [calc] })).startsWith("<|im_start|>system\n\n\n# Tools"))
    assert.strictEqual(flatten(qwq.system(undefined, { tools: [] })), "")
  })

  it("reads a turn that begins inside the block the prompt opened", () => {
    const turn = 'why\n</think>\n\n<tool_call>\n{"name": "calc", "arguments": {}}\n</tool_call>'
    const { action } = parsePieces(qwq, [turn], { tools: [calc], reasoningOpen: true })
    assert.strictEqual(action._tag, "ToolCalls")
    assert.strictEqual(action.reasoning, "why")
  })

  it("writes a turn so that it continues the opening", () => {
    const turn = {
      role: "assistant",
      content: "T",
      reasoning: "why",
      calls: [{ name: "calc", arguments: {} }]
    } as const
    assert.strictEqual(
      flatten(qwq.written(turn)),
      'why\n</think>\n\nT\n<tool_call>\n{"name": "calc", "arguments": {}}\n</tool_call>'
    )
  })
})
