import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { cut, StopTexts } from "../../../src/effects/serve/StopTexts.ts"

/** `text` in pieces, cut where `at` says. */
const pieces = (text: string, at: ReadonlyArray<number>): ReadonlyArray<string> => {
  const ends = [...at.map((one) => one % (text.length + 1)), text.length].toSorted((a, b) => a - b)
  return ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end))
}

const shownOf = (parts: ReadonlyArray<string>, stops: ReadonlyArray<string>): ReadonlyArray<string> => {
  const texts = new StopTexts(stops)
  return [...parts.map(texts.push), texts.end()]
}

describe("texts at which an answer ends", () => {
  it("end it wherever the text was cut into pieces, and nothing of them is shown", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "😀"), maxLength: 30 })
    const stops = fc.array(fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 4 }), { maxLength: 3 })
    fc.assert(
      fc.property(letters, stops, fc.array(fc.nat()), (text, all, at) => {
        assert.strictEqual(shownOf(pieces(text, at), all).join(""), cut(text, all))
      })
    )
  })

  it("are not waited for where none can begin", () => {
    assert.deepStrictEqual(shownOf(["It is", " 42."], ["END"]), ["It is", " 42.", ""])
    assert.deepStrictEqual(shownOf(["It is E", "ND"], ["END"]), ["It is ", "", ""])
  })

  it("are waited for where a longer one may have begun before one that stands there", () => {
    assert.deepStrictEqual(shownOf(["ba", "b"], ["a", "bab"]), ["", "", ""])
    assert.deepStrictEqual(shownOf(["ba", "c"], ["a", "bab"]), ["", "b", ""])
    assert.deepStrictEqual(shownOf(["ba"], ["a", "bab"]), ["", "b"])
  })

  it("leave what was shown to be asked for, and nothing more is shown behind one", () => {
    const texts = new StopTexts(["END"])
    assert.deepStrictEqual(["It is", " 42.EN", "D and", " more"].map(texts.push), ["It is", " 42.", "", ""])
    assert.deepStrictEqual([texts.end(), texts.shown], ["", "It is 42."])
  })

  it("leave no half of a character behind", () => {
    const [high, low] = ["😀".slice(0, 1), "😀".slice(1)]
    assert.deepStrictEqual(shownOf([`a${high}`, low], []), ["a", "😀", ""])
  })
})
