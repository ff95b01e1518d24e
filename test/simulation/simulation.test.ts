/** Thousands of worlds. `WRIT_SEEDS` says how many (5,000), `WRIT_SEED` plays one alone. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { describeFailure, firstFailure, shrink } from "../kit/simulation/search.ts"

const alone = process.env["WRIT_SEED"]
const seeds = Number(process.env["WRIT_SEEDS"] ?? 5_000)
const part = 250
const parts = Array.from({ length: Math.ceil(seeds / part) }, (_, at) => ({
  from: at * part + 1,
  count: Math.min(part, seeds - at * part)
}))

const holds = Effect.fnUntraced(function* (from: number, count: number) {
  const failure = yield* firstFailure(from, count)
  if (failure !== undefined) assert.fail(describeFailure(yield* shrink(failure)))
})

describe("every world ends, and its record tells what happened in it", () => {
  if (alone !== undefined) {
    it.live(`with seed ${alone}`, () => holds(Number(alone), 1))
    return
  }
  for (const { count, from } of parts) {
    it.live(`with seeds ${from} to ${from + count - 1}`, () => holds(from, count))
  }
})
