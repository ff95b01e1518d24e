import { assert, describe, it } from "@effect/vitest"
import { gptOss } from "../../src/engine/codecs/GptOss.ts"
import type { ThinkingBudget } from "../../src/engine/Generation.ts"
import { withBudget } from "../../src/engine/ScriptedThinking.ts"
import { tool } from "../kit/codecs.ts"

const think = (maxTokens: number, opened = false): ThinkingBudget => ({
  open: "<think>",
  close: "</think>",
  opened,
  maxTokens
})

const whole = (text: string) => [text]

describe("a script's turn whose reasoning has a budget", () => {
  it("goes on behind its own end of the reasoning once that was closed for it", () => {
    const tokens = ["<think>", "\n", "one ", "two ", "thr", "ee\n</th", "ink>\n\nThe ", "answer."]
    assert.deepStrictEqual(withBudget(tokens, think(4), whole, undefined), {
      tokens: ["<think>", "\n", "one ", "two ", "\n</think>\n\n", "The ", "answer."],
      closed: { from: 4, to: 5, count: 4 }
    })
    // The token that spends the budget holds the beginning of the tag.
    assert.strictEqual(
      withBudget(tokens, think(6), whole, undefined)
        .tokens.join("")
        .match(/The answer/g)?.length,
      1
    )
  })

  it("is as it was where the budget is not used up, and ends where it never closed its reasoning", () => {
    const tokens = ["<think>", "a", "</think>", "b", "c", "d"]
    assert.deepStrictEqual(withBudget(tokens, think(4), whole, undefined), { tokens })
    assert.deepStrictEqual(withBudget(["a", "b", "c"], think(2, true), whole, undefined).tokens, [
      "a",
      "b",
      "\n</think>\n\n"
    ])
  })

  it("goes on with what the script says for this case", () => {
    const { tokens } = withBudget(["a", "b", "c</think>x"], think(2, true), whole, "So be it.")
    assert.deepStrictEqual(tokens, ["a", "b", "\n</think>\n\n", "So be it."])
  })

  it("is in gpt-oss's form a message that ends and another that begins", () => {
    const budget = { ...gptOss.thinking!({ tools: [tool("t")] }), opened: false, maxTokens: 3 }
    const tokens = [
      "<|channel|>analysis",
      "<|message|>",
      "a ",
      "b ",
      "c<|end|><|start|>",
      "assistant",
      " to=functions.t<|channel|>commentary json<|message|>",
      "{}"
    ]
    assert.deepStrictEqual(withBudget(tokens, budget, whole, undefined).tokens, [
      ...tokens.slice(0, 4),
      "<|end|><|start|>assistant",
      ...tokens.slice(6)
    ])
    const again = "<|channel|>analysis<|message|>no end<|end|><|start|>assistant<|channel|>final<|message|>Done."
    assert.strictEqual(
      withBudget(tokens, budget, Array.from, again).tokens.slice(4).join(""),
      "<|end|><|start|>assistant<|channel|>analysis<|message|>" +
        "<|end|><|start|>assistant<|channel|>final<|message|>Done."
    )
  })
})
