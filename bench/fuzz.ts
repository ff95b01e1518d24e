/**
 * Breaks turns at random and reads them: ten million bytes for each family by default (`node bench/fuzz.ts [bytes] [family …]`).
 * A reader must neither throw nor stop, must come to one of the three outcomes, and must not depend on how the text was cut.
 */
import * as Result from "effect/Result"
import type { Codec } from "../src/engine/codecs/Codec.ts"
import { byId, ids } from "../src/engine/codecs/Families.ts"
import { fuzz } from "../test/kit/fuzz.ts"

const [bytes = "10000000", ...families] = process.argv.slice(2)

for (const id of families.length === 0 ? ids : families) {
  const codec: Codec = Result.getOrThrow(byId(id))
  const before = performance.now()
  const { outcomes, turns } = fuzz(codec, { bytes: Number(bytes), seed: 1 })
  const seconds = (performance.now() - before) / 1000
  console.log(`${id.padEnd(24)}${turns} turns, ${seconds.toFixed(1)} s  ${JSON.stringify(outcomes)}`)
}
