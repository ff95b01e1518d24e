import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { byId, ids } from "../../../src/engine/codecs/Families.ts"
import { fuzz } from "../../kit/fuzz.ts"

/** Bytes of broken turns per family here; `node bench/fuzz.ts` reads ten million. */
const bytes = Number(process.env["WRIT_FUZZ_BYTES"] ?? 200_000)

describe("broken turns", () => {
  for (const id of ids) {
    it(`of ${id} come to an outcome that does not depend on their pieces`, () => {
      const { outcomes, turns } = fuzz(Result.getOrThrow(byId(id)), { bytes, seed: 7 })
      assert.isAbove(turns, 50)
      assert.isAbove(Object.keys(outcomes).length, 6, JSON.stringify(outcomes))
      assert.isAbove(outcomes["ToolCalls"] ?? 0, 0)
      assert.isAbove(outcomes["FinalText"] ?? 0, 0)
    })
  }
})
