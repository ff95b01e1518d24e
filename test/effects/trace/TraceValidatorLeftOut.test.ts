import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import { corrupt, drop } from "../../kit/corrupt.ts"
import { type GoodName, good } from "../../kit/traces.ts"

const places: ReadonlyArray<readonly [type: string, trace: GoodName]> = [
  ["context_compacted", "a session's third task, compacted"],
  ["engine_restarted", "engine opened again"],
  ["routed", "handed over"]
]

describe("what the simulation never has, and no record may leave out", () => {
  for (const [type, trace] of places) {
    it.effect(`${type}, in: ${trace}`, () =>
      Effect.gen(function* () {
        const text = yield* good[trace]
        assert.deepStrictEqual(validateText(text).violations, [])
        const without = corrupt(text, (lines) => drop(lines, type, type === "routed" ? 1 : 0))
        assert.isNotEmpty(validateText(without).violations)
      })
    )
  }
})
