import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { MarkerSearch, markerTable, undecided } from "../../../src/engine/codecs/MarkerSearch.ts"
import { countingWork } from "../../kit/work.ts"

const markers = ["<a>", "<ab>", "[x]", "\n{", "<"]
const table = markerTable(markers)
const soup = fc
  .array(fc.constantFrom("<", "a", "b", ">", "[", "x", "]", "\n", "{", " "), { maxLength: 30 })
  .map((parts) => parts.join(""))

/** The first place where a marker is, by trying all. */
const slowly = (text: string, from: number) => {
  for (let at = from; at < text.length; at++) {
    const marker = markers.find((one) => text.startsWith(one, at))
    if (marker !== undefined) return { at, marker }
  }
  return undefined
}

describe("the search for markers", () => {
  it("finds the first one, in one text after another, also where they are equal", () => {
    fc.assert(
      fc.property(fc.array(soup, { maxLength: 4 }), (texts) => {
        const search = new MarkerSearch(table)
        for (const text of texts.flatMap((one) => [one, one.slice(0, 1) + one.slice(1)])) {
          for (let from = 0; from <= text.length; ) {
            const expected = slowly(text, from)
            assert.strictEqual(search.find(text, from), expected !== undefined)
            if (expected === undefined) break
            assert.deepStrictEqual({ at: search.at, marker: search.marker }, expected)
            from = expected.at + expected.marker.length
          }
        }
      })
    )
  })

  it("holds back the longest end that may still become one", () => {
    fc.assert(
      fc.property(soup, fc.nat(30), (text, from) => {
        const sizes = markers.flatMap((marker) =>
          Array.from({ length: marker.length - 1 }, (_, index) => index + 1).filter(
            (size) => size <= text.length - from && text.endsWith(marker.slice(0, size))
          )
        )
        assert.strictEqual(undecided(table, text, from), Math.max(0, ...sizes))
      })
    )
  })

  it("looks at a text with many markers once", () => {
    const workOf = (count: number) => {
      const text = "word <ab>".repeat(count)
      const search = new MarkerSearch(table)
      return countingWork(() => {
        for (let from = 0; search.find(text, from); ) from = search.at + 1
      })
    }
    assert.isBelow(workOf(4000), workOf(400) * 12)
  })
})
