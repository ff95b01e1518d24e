import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as fc from "fast-check"
import { byId, ids } from "../../src/engine/codecs/Families.ts"
import { gptOss } from "../../src/engine/codecs/GptOss.ts"
import type { ThinkingBudget } from "../../src/engine/Generation.ts"
import { ThinkClock } from "../../src/engine/ThinkClock.ts"
import { cutAt, parsePieces, tool } from "../kit/codecs.ts"

const analysis = "<|channel|>analysis<|message|>"
const tags = { open: "<think>", close: "</think>" }

/** What is written in the model's place behind each of these tokens. */
const run = (budget: ThinkingBudget, tokens: Iterable<string>) => {
  const clock = new ThinkClock(budget)
  const written = Array.from(tokens, (token) => clock.take(token))
  return { closed: clock.closed, written }
}

describe("a budget of reasoning", () => {
  it("counts from where the block begins, and closes it once", () => {
    // The tag's last character is inside the block already.
    const { closed, written } = run({ ...tags, opened: false, maxTokens: 3 }, " <think>ab and on and on")
    assert.strictEqual(closed, 3)
    assert.deepStrictEqual(
      written.flatMap((text, at) => (text === undefined ? [] : [[at, text]])),
      [[9, "\n</think>\n\n"]]
    )
  })

  it("is not touched by a turn that closes its block or begins none", () => {
    for (const [opened, text] of [
      [true, "a</think>and a long answer <think> that mentions the tag"],
      [false, "an answer <think> that mentions the tag"],
      [false, "<think></think>answer"]
    ] as const) {
      assert.isUndefined(run({ ...tags, opened, maxTokens: 16 }, text).closed, text)
    }
  })

  it("is one for all blocks of a turn", () => {
    const budget = { ...tags, opened: false, maxTokens: 20 }
    assert.isUndefined(run(budget, "<think>12345</think>").closed)
    assert.strictEqual(run(budget, "<think>12345</think>\n<think>1234567890").closed, 20)
  })
})

describe("the budget of gpt-oss", () => {
  const tools = [tool("t")]
  const next = "<|end|><|start|>assistant"
  const answer = `${next}<|channel|>final<|message|>`

  it("is spent on the channel analysis, wherever its messages stand", () => {
    const budget = { ...gptOss.thinking!({ tools }), opened: false, maxTokens: 12 }
    const said = "<|channel|>commentary<|message|>A long preamble that costs nothing.<|end|><|start|>assistant"
    assert.isUndefined(run(budget, `${said}${analysis}abc`).closed)
    const { closed, written } = run(budget, `${said}${analysis}abcdefghijklmnop`)
    assert.strictEqual(closed, 12)
    assert.deepStrictEqual([...new Set(written)], [undefined, next])
    // Two short messages: three letters, nine of the end mark, and then the mark's last character and a letter.
    assert.strictEqual(run({ ...budget, maxTokens: 14 }, `${analysis}abc${next}${analysis}defg`).closed, 14)
  })

  it("leaves the next message to the model while there are tools, and is the answer otherwise", () => {
    assert.strictEqual(gptOss.thinking!({ tools }).closing, next)
    assert.strictEqual(gptOss.thinking!({ tools: [] }).closing, answer)
  })

  it("lets the model not reason on: a message that begins again is ended at once, and the answer begun", () => {
    const budget = { ...gptOss.thinking!({ tools }), opened: false, maxTokens: 2 }
    const tokens = [analysis, "a", "<|channel|>", "analysis", "<|message|>", "and so on ", analysis, "x"]
    assert.deepStrictEqual(run(budget, tokens).written, [
      undefined,
      next,
      undefined,
      undefined,
      answer,
      undefined,
      undefined,
      undefined
    ])
  })

  it("closes behind the same text however that is cut, up to the token that spends it", () => {
    const text = `${analysis}${"word ".repeat(30)}`
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 6, maxLength: 40 }), (cuts) => {
        const tokens = cutAt(text, cuts).filter((token) => token !== "")
        const { closed, written } = run({ ...gptOss.thinking!({ tools }), opened: false, maxTokens: 4 }, tokens)
        const inside = tokens.findIndex((_, at) => tokens.slice(0, at + 1).join("").length >= analysis.length)
        assert.strictEqual(closed, tokens.length - inside >= 4 ? 4 : undefined)
        assert.strictEqual(written.indexOf(next), closed === undefined ? -1 : inside + 3)
      })
    )
  })
})

describe("every family", () => {
  it("that splits off reasoning says how it is closed", () => {
    const blocks = [
      "<think>a</think>b",
      "[THINK]a[/THINK]b",
      "<|channel>thought\na<channel|>b",
      `${analysis}a<|end|><|start|>assistant<|channel|>final<|message|>b`
    ]
    for (const id of ids) {
      const codec = Result.getOrThrow(byId(id))
      const thinks = blocks.some((text) => parsePieces(codec, [text], { tools: [] }).action.reasoning === "a")
      const bounds = codec.thinking?.({ tools: [] }) ?? codec.reasoning
      assert.strictEqual(bounds !== undefined, thinks, id)
      if (bounds === undefined) continue
      // What closes a block in the model's place is read as its end, and what follows as the answer.
      const text = `${bounds.open}a${"closing" in bounds ? bounds.closing : `\n${bounds.close}\n\n`}b`
      const { action } = parsePieces(codec, [text], { tools: [] })
      assert.deepStrictEqual([action._tag, action.reasoning], ["FinalText", "a"], id)
      if (action._tag === "FinalText") assert.strictEqual(action.text.trim(), "b", id)
    }
  })
})
