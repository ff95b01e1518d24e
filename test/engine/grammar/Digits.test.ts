import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { integers, numbers } from "../../../src/engine/grammar/Digits.ts"
import { Gbnf, seeded } from "../../kit/gbnf.ts"

const grammar = (parts: ReadonlyArray<string>): Gbnf => new Gbnf(`root ::= ${parts.join(" | ")}\n`)

describe("ranges of integers", () => {
  it("hold exactly the integers between their bounds", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -2000, max: 2000 }),
        fc.nat({ max: 1500 }),
        fc.array(fc.integer({ min: -4000, max: 4000 })),
        (low, size, tried) => {
          const high = low + size
          const range = grammar(integers(BigInt(low), BigInt(high)))
          for (const value of [...tried, low - 1, low, low + 1, high - 1, high, high + 1, 0]) {
            assert.strictEqual(
              range.matches("root", String(value)),
              value >= low && value <= high,
              `${value} in ${low}..${high}`
            )
          }
          assert.isFalse(range.matches("root", "-0"))
          assert.isFalse(range.matches("root", "007"))
        }
      ),
      { numRuns: 200 }
    )
  })

  it("are empty where the bounds have crossed", () => {
    assert.deepStrictEqual(integers(3n, 2n), [])
  })
})

describe("ranges of numbers", () => {
  const bound = fc.record({
    value: fc.oneof(
      fc.integer({ min: -300, max: 300 }),
      fc.integer({ min: -5000, max: 5000 }).map((n) => n / 100)
    ),
    exclusive: fc.boolean()
  })

  it("hold only numbers between their bounds, however many digits they have", () => {
    fc.assert(
      fc.property(
        fc.option(bound, { nil: undefined }),
        fc.option(bound, { nil: undefined }),
        fc.nat(),
        (low, high, seed) => {
          const parts = numbers(low, high)!
          if (parts.length === 0) return
          const range = grammar(parts)
          for (let index = 1; index < 40; index++) {
            const text = range.generate("root", seeded(seed + index))
            const value = Number(text)
            assert.match(text, /^-?(0|[1-9]\d*)(\.\d+)?$/)
            if (low !== undefined)
              assert.isTrue(low.exclusive ? value > low.value : value >= low.value, `${text} ${JSON.stringify(low)}`)
            if (high !== undefined)
              assert.isTrue(
                high.exclusive ? value < high.value : value <= high.value,
                `${text} ${JSON.stringify(high)}`
              )
          }
        }
      ),
      { numRuns: 400 }
    )
  })

  it("hold the numbers one would write", () => {
    const range = grammar(numbers({ value: -0.5, exclusive: false }, { value: 12.25, exclusive: true })!)
    for (const text of ["0", "-0.5", "-0.49", "0.1", "1", "3.5", "12.2", "12.24", "12", "12.2499", "7.123456"])
      assert.isTrue(range.matches("root", text), text)
    for (const text of ["-0.51", "12.25", "12.3", "13", "-1", "1e3"]) assert.isFalse(range.matches("root", text), text)
  })

  it("cannot be carried with more than six decimals", () => {
    assert.isUndefined(numbers({ value: 1e-9, exclusive: false }, undefined))
  })
})
