import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { readable, readableLine } from "../../src/cli/Readable.ts"
import { unseen } from "../../src/effects/trace/Unseen.ts"

const needed = /[\u061c\u200c-\u200f]/

describe("text of a model that somebody reads", () => {
  it("keeps the invisible characters that a spelling needs", () => {
    for (const word of [
      "می\u200cخواهم",
      "क्\u200dष",
      "👩\u200d💻",
      "👩🏽\u200d🚀",
      "❤\ufe0f\u200d🔥",
      "(مرحبا)\u200f",
      "עברית\u200e,"
    ]) {
      assert.strictEqual(readable(word), word)
    }
  })

  it("shows them by their code where nothing needs them", () => {
    assert.deepStrictEqual(
      ["pay\u200cpal", "a\u200db", "x\u200f1", "\u200cمرحبا", "مرحبا\u200f\u200f", "👩\u200dx", "می\u200c\u200cخ"].map(
        readable
      ),
      [
        "pay\\u200cpal",
        "a\\u200db",
        "x\\u200f1",
        "\\u200cمرحبا",
        "مرحبا\u200f\\u200f",
        "👩\\u200dx",
        "می\\u200c\\u200cخ"
      ]
    )
  })

  it("never turns other text around, and never acts", () => {
    const hostile = [
      "\u202a",
      "\u202b",
      "\u202c",
      "\u202d",
      "\u202e",
      "\u2066",
      "\u2067",
      "\u2068",
      "\u2069",
      "\u001b",
      "\u009b",
      "\u0007",
      "\r"
    ]
    for (const one of hostile) {
      for (const [before, after] of [
        ["مر", "حبا"],
        ["a", "b"],
        ["", ""],
        ["👩", "💻"]
      ] as const) {
        assert.notInclude(readable(before + one + after), one)
      }
    }
    const unit = fc.oneof(
      fc.string({ unit: "binary", maxLength: 3 }),
      fc.constantFrom(...hostile, "\u200f", "\u200c", "\u200d", "م", "👩", "a")
    )
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 12 }), (parts) => {
        const left = readable(parts.join("")).match(unseen) ?? []
        for (const character of left) assert.match(character, needed)
      }),
      { numRuns: 500 }
    )
  })

  it("is one line where one is asked for", () => {
    assert.strictEqual(readableLine("a\n\tb می\u200cخ \u202ec"), "a\\n\\tb می\u200cخ \\u202ec")
  })
})
