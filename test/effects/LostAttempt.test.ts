import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { ToolPool } from "../../src/actors/ToolPool.ts"
import { layerScripted } from "../../src/testing.ts"
import type { Failed } from "../../src/tools/ToolCall.ts"
import { bill, byOrder, make, type Office, type Opening, of, open, silent, unwound } from "../kit/billing.ts"
import { call } from "../kit/script.ts"

const services = layerScripted({ turns: [] })
const propose = call("create_invoice", { order: "a", cents: 1 })

const failed = (kind: Failed["kind"], effect: Failed["effect"]): Failed => ({
  _tag: "Failed",
  kind,
  effect,
  errors: [{ path: "", reason: kind }],
  millis: 0
})

/** A pool whose executions end like this, one after the other. */
const endingWith = (...ends: ReadonlyArray<Failed>) => {
  const left = [...ends]
  let runs = 0
  return { runs: () => runs, pool: { run: () => Effect.sync(() => left[Math.min(runs++, left.length - 1)]!) } }
}

describe("an attempt that was lost", () => {
  it.effect("stays lost when the next one never begins: what it may have done is not said to be nothing", () =>
    Effect.gen(function* () {
      const { registry } = yield* open()
      const { pool, runs } = endingWith(failed("timed_out", "unknown"), failed("not_executed", "none"))
      const billed = bill([propose], { tools: registry }).pipe(Effect.provideService(ToolPool, pool))
      const { events, outcome } = yield* unwound(billed)
      assert.strictEqual(runs(), 2)
      assert.strictEqual(outcome.stop._tag, "Escalated")
      assert.deepInclude(of(events, "tool_execution_finished")[0], { effect: "unknown", class: "timeout" })
      assert.deepInclude(of(events, "effect_settled")[0], { status: "ambiguous" })
    }).pipe(Effect.provide(services))
  )

  it.effect("is followed by another that the other side answers for certain: its word stands for both", () =>
    Effect.gen(function* () {
      const { registry } = yield* open()
      const { pool } = endingWith(failed("timed_out", "unknown"), failed("execution_failed", "none"))
      const billed = bill([propose, "Sorry."], { tools: registry }).pipe(Effect.provideService(ToolPool, pool))
      const { events, outcome } = yield* unwound(billed)
      assert.strictEqual(outcome.stop._tag, "Completed")
      assert.deepInclude(of(events, "effect_settled")[0], { status: "settled_failed" })
    }).pipe(Effect.provide(services))
  )

  it.effect("is not tried again where no call has time to start", () =>
    Effect.gen(function* () {
      const { registry } = yield* open()
      const { pool, runs } = endingWith(failed("timed_out", "none"))
      const billed = bill([propose, "Sorry."], { tools: registry, limits: { toolMillis: 0 } })
      yield* unwound(billed.pipe(Effect.provideService(ToolPool, pool)))
      assert.strictEqual(runs(), 1)
    }).pipe(Effect.provide(services))
  )

  it.effect("stays lost when the other side is not reached any more: nothing is said to have left nothing", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        act: (office, order, visit, key) => {
          if (visit === 1 || visit > 4) make(office, order, key)
          return Effect.fail(silent(visit === 1 ? "unknown" : "none"))
        }
      })
      const { events, outcome } = yield* unwound(bill([propose, propose, "Done."], { tools: registry }))
      assert.deepStrictEqual([office.visits.length, office.invoices.length], [4, 1])
      assert.strictEqual(outcome.stop._tag, "Escalated")
      assert.deepInclude(of(events, "effect_settled")[0], { status: "ambiguous" })
      const [record] = yield* (yield* EffectLedger).list()
      assert.strictEqual(record?.standing, "unknown")
    }).pipe(Effect.provide(services))
  )

  it.effect("stays lost for the run that goes on with it and reaches nobody", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        terms: () => byOrder,
        act: (office, order, visit, key) => {
          if (visit > 1) return Effect.fail(silent("none"))
          make(office, order, key)
          return Effect.never
        }
      })
      const first = yield* Effect.forkChild(bill([propose], { tools: registry }), { startImmediately: true })
      yield* TestClock.adjust(500)
      yield* Fiber.interrupt(first)
      const { outcome } = yield* unwound(bill([propose, "Sorry."], { tools: registry }))
      assert.deepStrictEqual([office.visits.length, outcome.stop._tag], [4, "Escalated"])
      const [record] = yield* (yield* EffectLedger).list()
      assert.strictEqual(record?.standing, "unknown")
    }).pipe(Effect.provide(services))
  )
})

/** Nothing protects from a second effect but a look; a call has 100 ms, and is not ended after them. */
const watched = (act: Opening["act"] & {}): Opening => ({
  terms: (office: Office) => ({
    ...byOrder,
    deadlineMillis: 100,
    terminable: false,
    ledger: "observe",
    probe: ({ order }) =>
      Effect.sync(() => {
        const found = office.invoices.find((one) => one.order === order)
        return found === undefined ? { _tag: "Absent" } : { _tag: "Present", result: { invoice: found.id } }
      })
  }),
  act
})

const issue = (
  office: Office,
  order: { readonly order: string; readonly cents: number },
  key: string,
  millis: number
) =>
  Effect.delay(
    Effect.sync(() => {
      const id = `INV-${office.invoices.length + 1}`
      office.invoices.push({ id, ...order, key })
      return { invoice: id }
    }),
    millis
  )

describe("an attempt that goes on after its time, where only a look protects", () => {
  it.effect("and has its effect during the wait is seen before anything is done again", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        ...watched((office, order, _, key) => Effect.andThen(issue(office, order, key, 600), Effect.never))
      })
      const { answers } = yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.deepStrictEqual([office.visits.length, office.invoices.length], [1, 1])
      assert.deepStrictEqual(answers, ['{"ok":true,"result":{"invoice":"INV-1"}}'])
    }).pipe(Effect.provide(services))
  )

  it.effect("and then says that it left nothing says nothing of the attempt that is under way", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open(
        watched((office, order, visit, key) =>
          visit === 1 ? Effect.delay(Effect.fail(silent("none")), 1_150) : issue(office, order, key, 90)
        )
      )
      const { answers } = yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.deepStrictEqual(answers, ['{"ok":true,"result":{"invoice":"INV-1"}}'])
      yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.deepStrictEqual([office.visits.length, office.invoices.length], [2, 1])
    }).pipe(Effect.provide(services))
  )

  it.effect("and has its effect later than that is not done a second time meanwhile", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open(watched((office, order, _, key) => issue(office, order, key, 2_000)))
      yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.lengthOf(office.invoices, 1)
    }).pipe(Effect.provide(services))
  )
})
