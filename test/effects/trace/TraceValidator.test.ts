import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { invariants, validateText } from "../../../src/effects/trace/TraceValidator.ts"
import { contracted } from "../../kit/contractTraces.ts"
import { damages } from "../../kit/damage.ts"
import { damagedContracts } from "../../kit/damagedContracts.ts"
import { damagedWork } from "../../kit/damagedWork.ts"
import { good } from "../../kit/traces.ts"

const traces = { ...good, ...contracted }

describe("a trace of the loop is valid and complete", () => {
  for (const [name, trace] of Object.entries(traces)) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const verdict = validateText(yield* trace)
        assert.deepStrictEqual(verdict.violations, [])
        assert.isTrue(verdict.ok && verdict.complete)
      })
    )
  }
})

const all = [...damages, ...damagedWork, ...damagedContracts]

describe("one thing wrong is that invariant and no other", () => {
  for (const { apply, claim, invariant, trace } of all) {
    it.effect(`${invariant}: ${claim}`, () =>
      Effect.gen(function* () {
        const verdict = validateText(apply(yield* traces[trace]))
        const found = new Set(verdict.violations.map((violation) => violation.invariant))
        assert.deepStrictEqual([...found], [invariant], JSON.stringify(verdict.violations, undefined, 1))
        assert.isFalse(verdict.ok)
      })
    )
  }

  it("every invariant about events has its damage", () => {
    const damaged = new Set<string>(all.map(({ invariant }) => invariant))
    const missing = Object.keys(invariants).filter((id) => !damaged.has(id))
    // Files are damaged on disk, in TraceValidatorArtifacts.test.ts.
    assert.deepStrictEqual(missing, ["T34"])
  })
})
