import * as fc from "fast-check"
import { expect, it } from "vitest"
import { seedOf } from "../../src/effects/Seeds.ts"

it("no two attempts of a run share a seed", () => {
  fc.assert(
    fc.property(fc.nat(0xffffffff), (runSeed) => {
      const seeds = new Set<number>()
      for (let turn = 0; turn < 64; turn++) {
        for (let attempt = 0; attempt < 16; attempt++) seeds.add(seedOf(runSeed, turn, attempt))
      }
      expect(seeds.size).toBe(64 * 16)
    }),
    { numRuns: 200 }
  )
})

it("seeds are 32-bit counts, and the same each time", () => {
  fc.assert(
    fc.property(fc.nat(0xffffffff), fc.nat(10_000), fc.nat(15), (runSeed, turn, attempt) => {
      const seed = seedOf(runSeed, turn, attempt)
      expect(Number.isInteger(seed) && seed >= 0 && seed <= 0xffffffff).toBe(true)
      expect(seedOf(runSeed, turn, attempt)).toBe(seed)
    })
  )
})

it("runs of other seeds have other seeds in every turn", () => {
  fc.assert(
    fc.property(fc.nat(0xffffffff), fc.nat(0xffffffff), fc.nat(1000), (one, other, turn) => {
      fc.pre(one !== other)
      expect(seedOf(one, turn, 0)).not.toBe(seedOf(other, turn, 0))
    })
  )
})
