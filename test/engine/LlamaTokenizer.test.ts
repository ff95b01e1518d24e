import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import { describe } from "vitest"
import { cut, markers, type Tokenizer, tokenize } from "../../src/engine/LlamaTokenizer.ts"
import { control, type Segment, text } from "../../src/engine/Prompt.ts"

const texts = [
  "a",
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
  "<<x>",
  "  ",
  "\u2581\u2581",
  "§",
  "😀😀"
]
const types = [1, 3, 3, 4, 4, 4, 4, 4, 4, 4]
const guard = markers(texts, types)
const spellings = [...guard.ids].map((id) => texts[id]!)

/** A tokeniser as greedy as llama.cpp's: one token per character, but user-defined spellings always become their id. */
const greedy: Tokenizer = {
  guard,
  encode: (value, special) => {
    const out: Array<number> = []
    for (let at = 0; at < value.length; ) {
      const id = texts.findIndex(
        (spelling, index) => guard.ids.has(index) && (special || types[index] === 4) && value.startsWith(spelling, at)
      )
      out.push(id < 0 ? 1000 + value.charCodeAt(at) : id)
      at += id < 0 ? 1 : texts[id]!.length
    }
    return out
  }
}

const fragments = spellings.flatMap((spelling) =>
  Array.from({ length: spelling.length }, (_, i) => spelling.slice(0, i + 1))
)
const hostile = fc
  .array(fc.constantFrom(...fragments, ...spellings, "<", ">", "|", " ", "x", "\n"), { maxLength: 12 })
  .map((parts) => parts.join(""))

describe("LlamaTokenizer", () => {
  it("guards the spellings of control and user-defined tokens, not white space and not single characters", () => {
    assert.deepStrictEqual([...guard.ids], [1, 2, 3, 4, 5, 9])
  })

  it("cuts a marker after its first character", () => {
    assert.deepStrictEqual(cut("a<tool_call>b", guard), ["a<", "tool_call>b"])
    assert.deepStrictEqual(cut("😀😀", guard), ["😀", "😀"])
    assert.deepStrictEqual(cut("plain", guard), ["plain"])
    assert.deepStrictEqual(cut("", guard), [])
  })

  it("cuts every text so that the parts join to it and none contains a marker", () => {
    fc.assert(
      fc.property(hostile, (value) => {
        const parts = cut(value, guard)
        assert.strictEqual(parts.join(""), value)
        for (const part of parts) for (const spelling of spellings) assert.notInclude(part, spelling)
      })
    )
  })

  it("never makes a guarded token of text, whatever it contains", () => {
    fc.assert(
      fc.property(hostile, (value) => {
        const tokens = tokenize(greedy, [control("<|im_start|>"), text(value), control("<|im_end|>")], true)
        assert.deepStrictEqual(
          tokens.filter((token) => guard.ids.has(token)),
          [1, 2]
        )
      })
    )
  })

  it("reads a marker across the border of two control segments, and never across a border with text", () => {
    const ids = (segments: ReadonlyArray<Segment>) => tokenize(greedy, segments, false).filter((id) => id < 1000)
    assert.deepStrictEqual(ids([control("<tool"), control("_call>")]), [3])
    assert.deepStrictEqual(ids([control("<tool"), text("_call>")]), [])
    assert.deepStrictEqual(ids([text("<tool"), text("_call>")]), [])
  })

  it("begins a log, and only a log, with the model's first token, once", () => {
    const withBos: Tokenizer = { ...greedy, bos: 1 }
    assert.strictEqual(tokenize(withBos, [text("x")], true)[0], 1)
    assert.notStrictEqual(tokenize(withBos, [text("x")], false)[0], 1)
    assert.deepStrictEqual(tokenize(withBos, [control("<|im_start|>")], true), [1])
    assert.deepStrictEqual(tokenize(withBos, [], true), [])
  })
})
