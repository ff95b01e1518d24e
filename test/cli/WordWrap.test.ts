import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { columnsOf } from "../../src/cli/Columns.ts"
import { WordWrap, wrapped } from "../../src/cli/WordWrap.ts"

const wrap = (pieces: ReadonlyArray<string>, columns: number | (() => number) = 30, directions = false): string => {
  let out = ""
  const width = typeof columns === "number" ? () => columns : columns
  const wrap = new WordWrap({ write: (text) => void (out += text), columns: width, directions })
  for (const piece of pieces) wrap.push(piece)
  wrap.end()
  return out
}

const text =
  "Words of a line that is longer than thirty columns.\n\n- an item that needs a second line, too\n  12. and one more that is deeper\n```js\nconst answer = 42 // and this is a line of code\n```\nend 日本語の文章は空白なしで書かれますから、折り返す。 🦀🦀 می\u200cخواهم"

describe("text that is wrapped as it comes", () => {
  it("may be one endless word, with as many marks as letters, without anybody waiting for it", () => {
    for (const word of ["a".repeat(300_000), "a\u200eb".repeat(100_000)])
      assert.isAtLeast(wrap([word]).length, word.length)
  }, 60_000)

  it("breaks at words, hangs items, and leaves code and addresses alone", () => {
    assert.strictEqual(
      wrap([text.split("\nend")[0]!]),
      `Words of a line that is longer
than thirty columns.

- an item that needs a second
  line, too
  12. and one more that is
      deeper
\`\`\`js
const answer = 42 // and this is a line of code
\`\`\`
`
    )
    assert.strictEqual(
      wrap(["see https://example.org/a/path/that/is/longer now"]),
      "see\nhttps://example.org/a/path/that/is/longer now\n"
    )
  })

  it("breaks scripts without spaces between characters, and keeps their full stop", () => {
    assert.deepStrictEqual(wrap(["日本語の文章。空白なし"], 12).trim().split("\n"), ["日本語の文", "章。空白なし"])
  })

  it("is the same however it was cut into pieces, halves of characters included", () => {
    const whole = wrap([text])
    for (let at = 0; at <= text.length; at++) assert.strictEqual(wrap([text.slice(0, at), text.slice(at)]), whole)
    assert.strictEqual(wrap(text.split("")), whole)
  })

  it("has every word once and in order, in lines that fit unless one word alone does not", () => {
    const words = fc.array(fc.string({ unit: fc.constantFrom(..."ab日🦀م"), minLength: 1, maxLength: 12 }), {
      maxLength: 12
    })
    fc.assert(
      fc.property(words, fc.integer({ min: 4, max: 20 }), (parts, columns) => {
        const out = wrap([parts.join(" ")], columns)
        assert.strictEqual(out.replaceAll(/\s/g, ""), parts.join(""))
        for (const line of out.split("\n")) {
          if (columnsOf(line) > columns) assert.notMatch(line.slice(0, columns / 2), /\s/)
        }
      })
    )
  })

  it("goes by the width that the window has at that moment", () => {
    let columns = 11
    let out = ""
    const wrap = new WordWrap({ write: (text) => void (out += text), columns: () => columns, directions: false })
    wrap.push("aaaaa bbbbb ccccc ")
    columns = 40
    wrap.push("ddddd eeeee fffff")
    wrap.end()
    assert.strictEqual(out, "aaaaa bbbbb\nccccc ddddd eeeee fffff\n")
  })

  it("tells the terminal which way a paragraph reads, by its first letter, and takes it back at the end", () => {
    const [ltr, rtl, standard] = ["\u001b[1 k", "\u001b[2 k", "\u001b[0 k"]
    const mixed = "12 مرحبا بالعالم OpenAI هذا نص\nEnglish now\n1234\nשלום"
    assert.strictEqual(
      wrap([mixed], 18, true),
      `12 ${rtl}مرحبا بالعالم\nOpenAI هذا نص\n${ltr}English now\n1234\n${rtl}שלום\n${standard}`.replace(
        `12 ${rtl}`,
        `12${rtl} `
      )
    )
    assert.notInclude(wrap([mixed], 18, false), "\u001b")
    assert.notInclude(wrap(["Nothing of the kind"], 18, true), "\u001b")
  })

  it("never sends what a model writes to turn or move things", () => {
    assert.strictEqual(wrap(["a\u202eb \u001b[2 kc\u2067d\r\ne"], 40, true), "a\\u202eb \\u001b[2 kc\\u2067d\ne\n")
  })

  it("wraps a text of ours as a whole", () => assert.strictEqual(wrapped("  aa bb cc", 7), "  aa bb\n  cc"))
})
