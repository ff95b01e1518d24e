import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { ToolPool } from "../../src/actors/ToolPool.ts"
import { layerScripted } from "../../src/testing.ts"
import type { Failed } from "../../src/tools/ToolCall.ts"
import { bill, of, open, unwound } from "../kit/billing.ts"
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
})
