/** The file and the memory are two keepers of one set of rules: whatever is asked in whatever order, they answer the same. */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { type Begun, EffectLedger, layerMemory } from "../../src/actors/EffectLedger.ts"
import type { SettledOutcome } from "../../src/actors/EffectLedgerEntry.ts"
import type { LedgerError } from "../../src/actors/EffectLedgerError.ts"
import { layerSqlite } from "../../src/actors/EffectLedgerSqlite.ts"
import { failed, intent, succeeded, unknown } from "../kit/ledger.ts"

type Step =
  | { readonly do: "begin" | "retake"; readonly n: number; readonly other: boolean }
  | { readonly do: "settle" | "late" | "resolve"; readonly n: number; readonly outcome: SettledOutcome }
  | { readonly do: "list" }

const n = fc.nat(2)
const outcome = fc.constantFrom(succeeded("a"), succeeded("b"), failed, unknown)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom("begin" as const, "retake" as const), n, other: fc.boolean() })
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom("settle" as const, "late" as const, "resolve" as const), n, outcome })
  },
  { weight: 1, arbitrary: fc.constant({ do: "list" as const }) }
)

/** Call 2 is of mode none. `other` asks with the key of one call and the arguments of another. */
const asked = (n: number, other: boolean) =>
  intent(n, {
    ...(n === 2 ? { mode: "none" as const } : {}),
    ...(other ? { argumentsDigest: intent(9).argumentsDigest } : {})
  })

const apply = (ledger: EffectLedger["Service"], step: Step): Effect.Effect<unknown, LedgerError> => {
  switch (step.do) {
    case "begin":
    case "retake":
      // Mostly with the right arguments.
      return ledger[step.do](asked(step.n, step.other && step.n === 1))
    case "settle":
    case "late":
      return ledger[step.do](intent(step.n).key, step.outcome)
    case "resolve":
      return ledger.resolve(intent(step.n).key, { outcome: step.outcome, by: "ada", reason: "seen" })
    case "list":
      return ledger.list()
  }
}

const run = (steps: ReadonlyArray<Step>) =>
  Effect.gen(function* () {
    const ledger = yield* EffectLedger
    return yield* Effect.forEach(steps, (step) =>
      apply(ledger, step).pipe(
        Effect.catchTag("LedgerError", ({ message, operation, reason }) =>
          Effect.succeed({ message, operation, reason })
        )
      )
    )
  })

/** Owners are named after processes; everything else has to be the same. */
const withoutOwners = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null, (name, part) => (name === "owner" ? "owner" : part)))

/** What must hold of any history: an answer once given stays, and there is no second `New` without a reason for it. */
const judge = (steps: ReadonlyArray<Step>, replies: ReadonlyArray<unknown>): void => {
  /** The first definite word on the current attempt of a call. */
  const known = new Map<number, SettledOutcome>()
  const claimed = new Set<number>()
  steps.forEach((step, at) => {
    if (step.do === "list") return
    const word = known.get(step.n)
    if ("outcome" in step) {
      if (replies[at] === undefined && step.outcome.state !== "unknown") known.set(step.n, word ?? step.outcome)
      return
    }
    const begun = replies[at] as Begun
    if (begun._tag === "Settled") {
      assert.deepStrictEqual(begun.outcome, word)
    } else if (begun._tag === "New") {
      if (claimed.has(step.n)) assert.strictEqual(step.do, "retake")
      if (word !== undefined) assert.deepStrictEqual(word, failed, "only what left nothing is begun again")
      else assert.isFalse(claimed.has(2) && step.n === 2, "what nobody knows of mode none is begun once")
      claimed.add(step.n)
      known.delete(step.n)
    } else if (begun._tag === "Unknown") {
      assert.isUndefined(word, "what is settled stays settled")
    }
  })
}

const histories = fc.sample(fc.array(step, { minLength: 1, maxLength: 40 }), { numRuns: 400, seed: 11 })

it.effect("no history gives two answers for one key, or a second go without a reason", () =>
  Effect.forEach(histories, (steps) =>
    run(steps).pipe(
      Effect.provide(layerMemory({ waitMillis: 0 }), { local: true }),
      Effect.map((replies) => judge(steps, replies))
    )
  )
)

it.effect("memory and file answer every history alike", () =>
  Effect.forEach(histories.slice(0, 60), (steps) =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-ledger-"))),
      (dir) =>
        Effect.gen(function* () {
          const file = layerSqlite({ path: join(dir, "ledger.sqlite"), waitMillis: 0 })
          const kept = yield* Effect.provide(run(steps), file, { local: true })
          const remembered = yield* Effect.provide(run(steps), layerMemory({ waitMillis: 0 }), { local: true })
          assert.deepStrictEqual(withoutOwners(kept), withoutOwners(remembered))
        }),
      (dir) => Effect.sync(() => rmSync(dir, { recursive: true }))
    )
  )
)

it("the histories reach every answer there is", () => {
  const kinds = histories.flat().map((step) => step.do)
  assert.sameMembers([...new Set(kinds)], ["begin", "retake", "settle", "late", "resolve", "list"])
})
