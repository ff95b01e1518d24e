import { assert, describe, it } from "@effect/vitest"
import { sentencesOf } from "../../../../src/effects/trace/claims/AnswerText.ts"
import { numbersIn, readings, spelled } from "../../../../src/effects/trace/claims/NumberForms.ts"

const found = (text: string): ReadonlyArray<string> =>
  [...sentencesOf(text)].flatMap((one) => numbersIn(one)).map((one) => one.text)

/** What a text's only number may mean, and how exactly. */
const meant = (text: string) => {
  const all = [...sentencesOf(text)].flatMap((one) => numbersIn(one))
  assert.strictEqual(all.length, 1, text)
  return all[0]!.parts[0]!.map(({ value, within }) => `${value} ± ${within}`)
}

describe("numbersIn", () => {
  it("finds numbers in digits and in words, and the parts of dates and versions", () => {
    assert.deepStrictEqual(
      found("It fell by -3.2 % to $1,249.00, or 1.2e3, on 2026-11-30 at 10:30 in version 2.4.1."),
      ["-3.2 %", "$1,249.00", "1.2e3", "2026-11-30", "10:30", "2.4.1"]
    )
    assert.deepStrictEqual(found("Twenty-five files, three folders, two hundred lines."), [
      "Twenty-five",
      "three",
      "two hundred"
    ])
  })

  it("leaves out labels, ordinals, names with digits, one and nothing", () => {
    const none =
      "Step 2 of part 3: one file, 0 errors, the 1st of order-431 in a1.csv, sha256, INV-7, Q4, v2, 24/7, #5, GPT-4, 100 % sure"
    assert.deepStrictEqual(found(none), [])
    assert.deepStrictEqual(found("1. first\n2. second"), [])
  })

  it("knows by how much a number may have been rounded", () => {
    assert.deepStrictEqual(meant("21.57 %"), ["21.57 ± 0.005"])
    assert.deepStrictEqual(meant("22"), ["22 ± 0.5"])
    assert.deepStrictEqual(meant("about 20"), ["20 ± 5"])
    assert.deepStrictEqual(meant("~700,000"), ["700000 ± 50000", "700 ± 0.0005"])
  })

  it("reads what a form may mean, and units as what they may stand for", () => {
    const values = (digits: string) => readings(digits).map(({ value }) => value)
    assert.deepStrictEqual(
      ["1,234.5", "1.234,5", "1,234", "0,612", "1.234", "1,234,567", "1.2.3", "1,2,3"].map(values),
      [[1234.5], [1234.5], [1234, 1.234], [0.612], [1.234, 1234], [1_234_567], [], []]
    )
    assert.deepStrictEqual(meant("1.9 s"), ["1.9 ± 0.05", "1900 ± 50"])
    assert.include(meant("2.3 MB"), "2300000 ± 50000")
  })

  it("reads thousands apart by an apostrophe or a space that does not break", () => {
    assert.deepStrictEqual(meant("3'680.75"), ["3680.75 ± 0.005"])
    assert.deepStrictEqual(meant("12\u00a0345"), ["12345 ± 0.5"])
    assert.deepStrictEqual(meant("1\u202f234\u202f567,5"), ["1234567.5 ± 0.05"])
    assert.deepStrictEqual(found("12\u00a034"), ["12", "34"])
  })

  it("takes a bound by all of its last place, and a rough number by half of it", () => {
    assert.deepStrictEqual(meant("over 3600"), ["3600 ± 100"])
    assert.deepStrictEqual(meant("fast 40"), ["40 ± 10"])
    assert.deepStrictEqual(meant("rund 40"), ["40 ± 5"])
  })

  it("spells", () => {
    assert.deepStrictEqual(
      ["two", "nineteen", "ninety", "forty-two", "twenty-ten", "tenty", "three-four"].map(spelled),
      [2, 19, 90, 42, undefined, undefined, undefined]
    )
  })
})
