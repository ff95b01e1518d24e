import { assert, describe, it } from "@effect/vitest"
import { Thinking, trimReasoning } from "../../../src/engine/codecs/Thinking.ts"
import { pairs, units } from "../../kit/codecs.ts"

const tags = { open: "<think>", close: "</think>" }

const split = (pieces: ReadonlyArray<string>, prefilled = false) => {
  const thinking = new Thinking(tags, prefilled)
  const out = [...pieces.flatMap((piece) => thinking.push(piece)), ...thinking.end()]
  const text = (kind: string) =>
    out
      .filter((piece) => piece.kind === kind)
      .map((piece) => piece.text)
      .join("")
  return {
    reasoning: text("reasoning"),
    answer: text("answer"),
    open: thinking.open,
    start: out.find((piece) => piece.kind === "answer")?.start
  }
}

type Row = readonly [claim: string, text: string, prefilled: boolean, reasoning: string, answer: string, open?: boolean]

const rows: ReadonlyArray<Row> = [
  ["a block and an answer", "<think>\na\n</think>\n\nb", false, "\na\n", "b"],
  ["white space before the block belongs to nobody", "\n <think>a</think>b", false, "a", "b"],
  ["white space before an answer is the answer's", "\n b", false, "", "\n b"],
  ["open and close in one place", "<think></think>b", false, "", "b"],
  ["two blocks in a row", "<think>a</think>\n<think>c</think>b", false, "ac", "b"],
  ["an answer that quotes the tags", "Use <think>x</think> here", false, "", "Use <think>x</think> here"],
  ["a stray closing tag in an answer", "b</think>c", false, "", "b</think>c"],
  ["an opening tag inside reasoning", "<think>a<think>c</think>b", false, "a<think>c", "b"],
  ["a closing tag after the closing tag", "<think>a</think>b</think>", false, "a", "b</think>"],
  ["a tag that is not quite one", "<thinking>a</thinking>", false, "", "<thinking>a</thinking>"],
  ["a block that never closes", "<think>a</thin", false, "a</thin", "", true],
  ["the prompt opened the block", "a</think>b", true, "a", "b"],
  ["the prompt opened the block and the model opened it again", "<think>a</think>b", true, "a", "b"],
  ["the prompt opened the block and it never closes", "  a", true, "  a", "", true],
  ["the prompt opened the block and nothing came", "", true, "", "", true],
  ["nothing at all", "", false, "", ""]
]

describe("reasoning", () => {
  for (const [claim, text, prefilled, reasoning, answer, open = false] of rows) {
    it(`is split from the answer at every cut: ${claim}`, () => {
      for (const pieces of [[text], units(text), ...pairs(text)]) {
        const out = split(pieces, prefilled)
        assert.deepStrictEqual(
          { reasoning: out.reasoning, answer: out.answer, open: out.open },
          { reasoning, answer, open }
        )
        if (answer !== "") assert.strictEqual(out.start, text.lastIndexOf(answer))
      }
    })
  }

  it("is nobody's business in a family without it", () => {
    const thinking = new Thinking(undefined, true)
    assert.deepStrictEqual(thinking.push("<think>a"), [{ kind: "answer", text: "<think>a", start: 0 }])
  })

  it("is kept without the white space around it", () => {
    assert.strictEqual(trimReasoning("\n\u3000 a b \n"), "a b")
    assert.strictEqual(trimReasoning(" \n"), "")
  })
})
