import { assert, describe, it } from "@effect/vitest"
import { deepSeekR10528, deepSeekR10528Vllm } from "../../../src/engine/codecs/DeepSeek0528.ts"
import { opensReasoning } from "../../../src/engine/codecs/Thinking.ts"
import type { Message } from "../../../src/engine/Message.ts"
import { flatten } from "../../../src/engine/Prompt.ts"
import { tool } from "../../kit/codecs.ts"

const answer = (text: string): Message => ({ role: "tool", name: "calc", content: text })
const calling = (content: string): Message => ({ role: "assistant", content, calls: [{ name: "calc", arguments: {} }] })
const call = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>calc\n```json\n{}\n```<｜tool▁call▁end｜>"
const calls = `<｜tool▁calls▁begin｜>${call}<｜tool▁calls▁end｜><｜end▁of▁sentence｜>`

describe("deepseek-r1-0528", () => {
  it("closes every call and opens the answers of each round anew", () => {
    const messages: ReadonlyArray<Message> = [
      { role: "user", content: "Q" },
      calling("<think>x</think>P"),
      answer("1"),
      calling(""),
      answer("2"),
      answer("3")
    ]
    assert.strictEqual(
      flatten(deepSeekR10528.render(messages, { tools: [], generationPrompt: true })),
      `<｜begin▁of▁sentence｜><｜User｜>Q<｜Assistant｜>P${calls}<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>1<｜tool▁output▁end｜>` +
        `<｜tool▁outputs▁end｜>${calls}<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>2<｜tool▁output▁end｜>\n` +
        "<｜tool▁output▁begin｜>3<｜tool▁output▁end｜><｜tool▁outputs▁end｜>"
    )
  })

  it("opens a turn after a question, whether or not one is asked for, and not after answers", () => {
    const opened = "<｜begin▁of▁sentence｜><｜User｜>Q<｜Assistant｜>"
    for (const generationPrompt of [true, false])
      assert.strictEqual(
        flatten(deepSeekR10528.render([{ role: "user", content: "Q" }], { tools: [], generationPrompt })),
        opened
      )
    assert.strictEqual(flatten(deepSeekR10528.opening({ tools: [], after: "answers" })), "")
    assert.isFalse(opensReasoning(deepSeekR10528, { tools: [] }))
  })

  it("writes the tools behind the system text, in the words of the codec or of vLLM", () => {
    const options = { tools: [tool("calc", { type: "object" }, "Adds.")] }
    assert.include(flatten(deepSeekR10528.system("S", options)), "S\n\n## Tools\nYou have access")
    const vllm = flatten(deepSeekR10528Vllm.system("S", options))
    assert.include(vllm, "S\n\nYou are a helpful assistant with tool calling capabilities.")
    assert.include(vllm, '\n```json\n{"type": "function", "function": {"name": "calc", "description": "Adds.",')
  })
})
