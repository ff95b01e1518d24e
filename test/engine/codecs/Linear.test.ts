import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { byId, ids } from "../../../src/engine/codecs/Families.ts"
import { readSlow, slowTexts } from "../../kit/slowTexts.ts"
import { countingWork } from "../../kit/work.ts"

/** Counts operations, so it does not depend on the machine; `node bench/linear.ts` measures time. */
describe("ten times the text", () => {
  for (const id of ids) {
    it(`costs ${id} twelve times the work at most, in pieces and all at once`, () => {
      const codec = Result.getOrThrow(byId(id))
      for (const [name, shape] of Object.entries(slowTexts)) {
        for (const size of [64, Number.POSITIVE_INFINITY]) {
          const [small, large] = [shape(codec, 200), shape(codec, 2000)]
          const work = (text: string) => countingWork(() => readSlow(codec, text, size))
          const times = (work(large) / work(small) / (large.length / small.length)) * 10
          assert.isAtMost(times, 12, `${name}, pieces of ${size}`)
        }
      }
    })
  }
})
