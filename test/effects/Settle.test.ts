/** What became of a call when its answer, or the place to write it down, was lost. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { EffectLedger, layerMemory } from "../../src/actors/EffectLedger.ts"
import { LedgerError } from "../../src/actors/EffectLedgerError.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { pending } from "../../src/tools/Terms.ts"
import { bill, byOrder, make, of, open, unwound } from "../kit/billing.ts"
import { failures } from "../kit/billingAudit.ts"
import { call, lines } from "../kit/script.ts"

const services = layerScripted({ turns: [] })
const order = { order: "order-431", cents: 1200 }
const propose = call("create_invoice", order)
const standing = Effect.flatMap(EffectLedger, (ledger) =>
  Effect.map(ledger.list(), (all) => all.map((record) => record.standing))
)

describe("an answer that comes after its time", () => {
  it.effect("is found in the ledger before anything is sent again: one effect, and the model is told of it", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        terms: () => ({ deadlineMillis: 100 }),
        act: (office, order, _, key) =>
          Effect.delay(
            Effect.sync(() => make(office, order, key)),
            500
          )
      })
      const { answers, events, outcome } = yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.deepStrictEqual([office.visits, office.invoices.length], [[0], 1])
      assert.deepStrictEqual([answers, outcome.text], [['{"ok":true,"result":{"invoice":"INV-1"}}'], "Done."])
      assert.lengthOf(of(events, "late_outcome"), 1)
    }).pipe(Effect.provide(services))
  )

  it.effect("settles the effect of a run that has ended, and the next one is told", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        terms: () => ({ ...byOrder, deadlineMillis: 100, ledger: "none", retry: "never" }),
        act: (office, order, _, key) =>
          Effect.delay(
            Effect.sync(() => make(office, order, key)),
            500
          )
      })
      const first = yield* unwound(bill([propose], { tools: registry }), 100)
      assert.deepStrictEqual([first.outcome.stop._tag, yield* standing], ["Escalated", ["unknown"]])
      yield* TestClock.adjust(400)
      assert.deepStrictEqual(yield* standing, ["settled"])
      const { answers, outcome } = yield* bill([propose, "Done."], { tools: registry })
      assert.deepStrictEqual([answers, outcome.text], [['{"ok":true,"result":{"invoice":"INV-1"}}'], "Done."])
      assert.lengthOf(office.visits, 1)
    }).pipe(Effect.provide(services))
  )
})

describe("a stop while the promise is still open", () => {
  it.effect("leaves the effect unknown, and says so", () =>
    Effect.gen(function* () {
      const { registry } = yield* open({
        terms: () => ({ settle: { everyMillis: 1_000, withinMillis: 60_000 }, post: () => Effect.succeed(pending()) })
      })
      const running = yield* Agent.start({ task: "t", tools: registry }).pipe(Effect.provideService(Approval, allowAll))
      yield* TestClock.adjust(5_500)
      yield* running.cancel
      const { runId, stop } = yield* running.outcome
      const text = (yield* MemoryTraces).text(runId)
      assert.deepStrictEqual(stop, { _tag: "Cancelled", at: "tool" })
      assert.deepStrictEqual(failures(text), [{ class: "cancelled", stage: "execution", effect: "unknown" }])
      assert.deepStrictEqual(
        of(lines(text), "effect_settled").map(({ status }) => status),
        ["ambiguous"]
      )
      assert.deepStrictEqual(yield* standing, ["unknown"])
    }).pipe(Effect.provide(layerScripted({ turns: [propose] })))
  )
})

/** A ledger that keeps intents and has no room for outcomes. */
const full = Layer.effect(
  EffectLedger,
  Effect.map(EffectLedger, (ledger) => ({
    ...ledger,
    settle: () => Effect.fail(new LedgerError({ operation: "settle", reason: "full", message: "no space left" }))
  }))
).pipe(Layer.provide(layerMemory()))

/** One that cannot keep an intent either. */
const shut = Layer.effect(
  EffectLedger,
  Effect.map(EffectLedger, (ledger) => ({
    ...ledger,
    begin: () => Effect.fail(new LedgerError({ operation: "begin", reason: "full", message: "no space left" }))
  }))
).pipe(Layer.provide(layerMemory()))

describe("a ledger without room", () => {
  it.effect("for the outcome: never success, the run fails, and nobody is told that it worked", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open()
      const { answers, outcome, text } = yield* bill([propose, "never said"], { tools: registry }).pipe(
        Effect.provide(full)
      )
      assert.deepInclude(outcome.stop, { _tag: "Failed", class: "ledger" })
      assert.deepStrictEqual([office.visits.length, failures(text)[0]?.effect], [1, "unknown"])
      assert.include(answers[0], '"kind":"outcome_unknown"')
    }).pipe(Effect.provide(services))
  )

  it.effect("for the intent: nothing is done", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open()
      const { outcome } = yield* bill([propose, "never said"], { tools: registry }).pipe(Effect.provide(shut))
      assert.deepInclude(outcome.stop, { _tag: "Failed", class: "ledger" })
      assert.lengthOf(office.visits, 0)
    }).pipe(Effect.provide(services))
  )
})

describe("a key", () => {
  it.effect("is of one tool and one version of its contract: a newer one acts for itself", () =>
    Effect.gen(function* () {
      const old = yield* open({ terms: () => byOrder })
      const next = yield* open({ terms: () => ({ ...byOrder, version: 2 }) })
      yield* bill([propose, "Done."], { tools: old.registry })
      yield* bill([propose, "Done."], { tools: next.registry })
      assert.deepStrictEqual([old.office.visits.length, next.office.visits.length], [1, 1])
      assert.notStrictEqual(old.office.keys[0], next.office.keys[0])
    }).pipe(Effect.provide(services))
  )
})
