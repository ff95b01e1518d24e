import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { duration, jsonText } from "../../src/cli/Printable.ts"
import { unseen } from "../../src/effects/trace/Unseen.ts"

describe("a document as JSON on a terminal", () => {
  it("is the same document to a reader, and sends no character that acts or hides", () => {
    const hostile = fc.string({ unit: "binary", maxLength: 40 })
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), hostile, (value, text) => {
        const document = { value, [text]: text, list: [text] }
        const written = jsonText(document)
        assert.deepStrictEqual(JSON.parse(written), JSON.parse(JSON.stringify(document)))
        assert.isNull(written.match(unseen))
      }),
      { numRuns: 300 }
    )
  })

  it("shows an eight-bit escape, a reordering mark and a tag by their codes", () => {
    assert.strictEqual(jsonText(["\u009b2J\u202e\u{e0041}"], 0), '["\\u009b2J\\u202e\\udb40\\udc41"]')
  })
})

describe("a duration in words", () => {
  it("never has sixty seconds beside its minutes, nor a thousand milliseconds", () => {
    const shown = [9.94, 999.6, 59_949, 59_999, 119_499, 119_999, 3_599_999].map(duration)
    assert.deepStrictEqual(shown, ["9.9 ms", "1 s", "59.9 s", "1 min 0 s", "1 min 59 s", "2 min 0 s", "60 min 0 s"])
  })
})
