import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Rules, without } from "../../../src/engine/grammar/Gbnf.ts"
import { Gbnf, seeded } from "../../kit/gbnf.ts"

const words = ["<|end|>", "<|call|>", "<e>"]
const text = fc
  .array(
    fc.oneof(fc.constantFrom(...words.flatMap((word) => [...word, word.slice(0, -1)])), fc.constantFrom("x", "\\n")),
    {
      maxLength: 9
    }
  )
  .map((parts) => parts.join(""))

const made = (least: number, most?: number) => {
  const rules = new Rules()
  const lengths = { least, ...(most === undefined ? {} : { most }) }
  const root = without(rules, words, { name: "t", outside: "\\\\", instead: '"\\\\n"', ...lengths })
  return { root, grammar: new Gbnf(rules.text), size: rules.size }
}

describe("texts without certain words", () => {
  it("are all texts in which none of them occurs, and no other", () => {
    const { grammar, root } = made(0)
    fc.assert(
      fc.property(text, (one) => {
        assert.strictEqual(grammar.matches(root, one), !words.some((word) => one.includes(word)), JSON.stringify(one))
      }),
      { numRuns: 2000 }
    )
  })

  it("have as many characters as they should, one for each thing that stands in place of one", () => {
    const { grammar, root } = made(3, 6)
    fc.assert(
      fc.property(text, (one) => {
        const size = Array.from(one.replaceAll("\\n", "n")).length
        const fits = !words.some((word) => one.includes(word)) && size >= 3 && size <= 6
        assert.strictEqual(grammar.matches(root, one), fits, JSON.stringify(one))
      }),
      { numRuns: 2000 }
    )
    const least = made(4)
    assert.isFalse(least.grammar.matches(least.root, "xxx"))
    assert.isTrue(least.grammar.matches(least.root, "xxxx<|en"))
  })

  it("end, whatever is chosen", () => {
    const { grammar, root } = made(2, 5)
    for (let seed = 1; seed < 200; seed++) {
      const one = grammar.generate(root, seeded(seed)).replaceAll("\\n", "n")
      assert.isTrue(one.length >= 2 && Array.from(one).length <= 5, one)
    }
  })
})
