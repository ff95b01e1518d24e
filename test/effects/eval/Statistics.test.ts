/** Intervals and tests against figures worked out elsewhere, and against counting everything. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { signTest, wilson } from "../../../src/effects/eval/Statistics.ts"

/** Every outcome of so many fair coins, counted. */
const counted = (better: number, worse: number): number => {
  const pairs = better + worse
  if (pairs === 0) return 1
  let hits = 0
  for (let coins = 0; coins < 2 ** pairs; coins++) {
    let heads = 0
    for (let bit = 0; bit < pairs; bit++) heads += (coins >> bit) & 1
    if (heads <= Math.min(better, worse)) hits += 1
  }
  return Math.min(1, (2 * hits) / 2 ** pairs)
}

describe("Wilson's interval", () => {
  // Worked out by hand from the formula with z = 1.959964.
  for (const [passes, runs, low, high] of [
    [8, 10, 0.4902, 0.9433],
    [0, 10, 0, 0.2775],
    [10, 10, 0.7225, 1],
    [1, 1, 0.2065, 1],
    [50, 100, 0.4038, 0.5962]
  ] as const) {
    it(`of ${passes} in ${runs}`, () => {
      const found = wilson(passes, runs)!
      assert.closeTo(found.low, low, 0.0001)
      assert.closeTo(found.high, high, 0.0001)
    })
  }

  it("has no answer to nothing", () => {
    assert.isUndefined(wilson(0, 0))
  })

  it("holds the share, within 0 and 1, and narrows with more of the same", () => {
    fc.assert(
      fc.property(fc.nat({ max: 200 }), fc.integer({ min: 1, max: 200 }), (passes, runs) => {
        fc.pre(passes <= runs)
        const [one, ten] = [wilson(passes, runs)!, wilson(10 * passes, 10 * runs)!]
        assert.isTrue(0 <= one.low && one.low <= passes / runs && passes / runs <= one.high && one.high <= 1)
        assert.isTrue(ten.high - ten.low < one.high - one.low)
      })
    )
  })
})

describe("the sign test", () => {
  it("is what counting every outcome says", () => {
    for (let better = 0; better <= 8; better++) {
      for (let worse = 0; worse + better <= 14; worse++) {
        assert.closeTo(signTest(better, worse), counted(better, worse), 1e-12, `${better} against ${worse}`)
      }
    }
  })

  it("does not care which side is which, and is 1 where nothing differs", () => {
    assert.strictEqual(signTest(0, 0), 1)
    assert.strictEqual(signTest(2, 9), signTest(9, 2))
  })

  it("does not overflow", () => {
    assert.closeTo(signTest(5_000, 5_000), 1, 1e-9)
    assert.isTrue(signTest(0, 5_000) >= 0 && signTest(0, 5_000) < 1e-300)
    // The normal approximation is good here: (4900 + 0.5 - 5000) / 50 = -1.99.
    assert.closeTo(signTest(4_900, 5_100), 0.0466, 0.001)
  })
})
