import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import { corrupt, data, drop } from "../../kit/corrupt.ts"
import { type GoodName, good } from "../../kit/traces.ts"

const places: ReadonlyArray<readonly [type: string, nth: number, trace: GoodName, by: string]> = [
  ["context_compacted", 0, "a session's third task, compacted", "T12"],
  ["engine_restarted", 0, "engine opened again", "T19"],
  ["routed", 0, "a talk", "T69"],
  ["routed", 0, "a talk, no content", "T69"],
  ["routed", 0, "handed over", "T69"],
  ["routed", 1, "handed over", "T19"],
  ["child_run_started", 0, "around another run", "T71"]
]

describe("what only the record tells of, and no record may leave out", () => {
  for (const [type, nth, trace, by] of places) {
    it.effect(`${type} ${nth}, in: ${trace}`, () =>
      Effect.gen(function* () {
        const text = yield* good[trace]
        assert.deepStrictEqual(validateText(text).violations, [])
        const without = corrupt(text, (lines) => drop(lines, type, nth))
        const found = validateText(without).violations.map(({ invariant }) => invariant)
        assert.include(found, by)
      })
    )
  }

  it.effect("but an older record, which did not say which tools are runs, or which phase was asked for", () =>
    Effect.gen(function* () {
      const inside = corrupt(yield* good["around another run"], (lines) => {
        drop(lines, "child_run_started")
        for (const tool of data(lines, "provenance")["tools"]) delete tool.run
      })
      assert.deepStrictEqual(validateText(inside).violations, [])
      const talk = corrupt(yield* good["a talk"], (lines) => {
        drop(lines, "routed")
        delete data(lines, "provenance")["profile"]
      })
      assert.deepStrictEqual(validateText(talk).violations, [])
    })
  )
})
