import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { quoteOf, sentencesOf } from "../../../../src/effects/trace/claims/AnswerText.ts"

/** Sentences as words, marks left out. */
const words = (text: string): ReadonlyArray<string> =>
  [...sentencesOf(text)].map((one) =>
    one.words
      .filter(({ mark }) => !mark)
      .map((word) => word.text)
      .join(" ")
  )

describe("sentencesOf", () => {
  const cut: ReadonlyArray<readonly [text: string, sentences: ReadonlyArray<string>]> = [
    ["I read a.md. Then I left!", ["I read a.md", "Then I left"]],
    ["It costs 1,234.5 EUR, e.g. today. Yes.", ["It costs 1,234.5 EUR e.g today", "Yes"]],
    ["See https://a.b/c?d=e, please", ["See https://a.b/c?d=e please"]],
    ["**Saved** `report.md` at 10:30.", ["Saved report.md at 10:30"]],
    ["one\ntwo\n\nthree", ["one two", "three"]],
    ["- a\n- b\n1. c\n# d\ne", ["a", "b", "c", "d", "e"]],
    ["before\n```\nI saved it.\n```\nafter", ["before", "after"]],
    ["before\n~~~ md\nI saved it.\n", ["before"]],
    ["| a | b |\n| --- | --- |\n| 1 | 2 |", ["a b", "1 2"]],
    ["I've 'done' it", ["I've done it"]]
  ]
  for (const [text, expected] of cut) {
    it(`cuts ${JSON.stringify(text)}`, () => assert.deepStrictEqual(words(text), expected))
  }

  it("tells what is quoted, what is code, what is asked and what is an item", () => {
    const flags = [...sentencesOf('I said "I saved it". `saved`\n> saved too\n- Saved?')].map(
      ({ listed, question, words: all }) => [
        all.filter(({ code, quoted }) => code || quoted).map(({ text }) => text),
        question,
        listed
      ]
    )
    assert.deepStrictEqual(flags, [
      [["I", "saved", "it"], false, false],
      [["saved"], false, false],
      [["saved", "too"], false, false],
      [[], true, true]
    ])
  })

  it("takes a quotation mark that is never closed for nothing", () => {
    assert.isFalse([...sentencesOf('"I saved it')].some((one) => one.words.some(({ quoted }) => quoted)))
  })

  it("knows the items under words like what I did", () => {
    const deeds = (text: string) => [...sentencesOf(text)].filter(({ listed }) => listed).map((one) => one.deeds)
    assert.deepStrictEqual(deeds("What I did:\n- one\n- two"), [true, true])
    assert.deepStrictEqual(deeds("What to do:\n- one\n- two"), [false, false])
    assert.deepStrictEqual(deeds("What I did:\n\nWell.\n- one"), [false])
  })

  it("finds every word where the text has it, and never fails", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => {
        for (const sentence of sentencesOf(text)) {
          assert.isAtMost(quoteOf(text, sentence).length, 161)
          for (const word of sentence.words.filter(({ mark }) => !mark))
            assert.strictEqual(text.slice(word.at, word.end), word.text)
        }
      })
    )
  })

  it("cuts a sentence that does not end", () => {
    const lengths = [...sentencesOf("word ".repeat(10_000))].map((one) => one.words.length)
    assert.isAtMost(Math.max(...lengths), 610)
    assert.strictEqual(
      lengths.reduce((a, b) => a + b, 0),
      10_000
    )
  })
})
