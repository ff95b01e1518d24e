import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { columnsOf, directionOf, fitted } from "../../src/cli/Columns.ts"

describe("columns of a terminal", () => {
  it("are two for East Asian wide characters and emoji, none for marks, joiners and selectors", () => {
    const cases: ReadonlyArray<readonly [string, number]> = [
      ["abc", 3],
      ["日本語", 6],
      ["ｆｕｌｌ", 8],
      ["한글", 4],
      ["e\u0301", 1],
      ["مُحَمَّد", 4],
      ["שָׁלוֹם", 4],
      ["नमस्ते", 4],
      ["🦀", 2],
      ["\u200f\u200cx", 1],
      ["☺\ufe0f", 2],
      ["\u0600١", 2]
    ]
    for (const [text, columns] of cases) assert.strictEqual(columnsOf(text), columns, JSON.stringify(text))
  })

  it("bound what is cut, and marks stay on their character", () => {
    assert.deepStrictEqual(
      [fitted("abcd", 4), fitted("abcde", 4), fitted("日本語", 5), fitted("日本語", 6)],
      ["abcd", "abc…", "日本…", "日本語"]
    )
    assert.strictEqual(fitted("e\u0301".repeat(4), 3), `${"e\u0301".repeat(2)}…`)
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 30 }), fc.integer({ min: 2, max: 20 }), (text, columns) => {
        const cut = fitted(text, columns)
        assert.isAtMost(columnsOf(cut), columns)
        if (columnsOf(text) <= columns) assert.strictEqual(cut, text)
        else assert.isTrue(cut.endsWith("…") && text.startsWith(cut.slice(0, -1)))
      })
    )
  })
})

describe("the direction of a text", () => {
  it("is that of its first letter; digits and signs have none", () => {
    assert.deepStrictEqual(["12 - مرحبا abc", "«שלום»", "42. hello مرحبا", "日本", "١٢٣ ...", "𞤀𞤣"].map(directionOf), [
      "rtl",
      "rtl",
      "ltr",
      "ltr",
      undefined,
      "rtl"
    ])
  })
})
