/** The simulation watches itself: what would be wrong with the product is noticed, and soon. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { droppable, dropsEvent, mutants } from "../kit/simulation/mutants.ts"
import { firstFailure } from "../kit/simulation/search.ts"
import type { Mutant } from "../kit/simulation/world.ts"

/** Worlds a mutant may live through. */
const patience = 1_500

/** What only the record tells of: nobody but the validator may be needed to miss it. */
const judged: ReadonlySet<string> = new Set(["context_compacted", "engine_restarted", "routed", "child_run_started"])

const noticed = Effect.fnUntraced(function* (mutant: Mutant, byValidator = false) {
  const failure = yield* firstFailure(1, patience, mutant)
  if (process.env["WRIT_MUTANTS"] !== undefined) console.log(failure?.seed, failure?.problems[0])
  assert.isDefined(failure, `${patience} worlds and nobody noticed`)
  if (byValidator) assert.include(failure.problems.map(({ claim }) => claim[0]).join(""), "T", "not by the validator")
})

describe("the simulation notices when", () => {
  for (const [name, mutant] of Object.entries(mutants)) it.live(name, () => noticed(mutant))
  for (const type of droppable)
    it.live(`the record leaves out ${type}`, () => noticed(dropsEvent(type), judged.has(type)))
})
