import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { layerScripted } from "../../src/testing.ts"
import { bill, byOrder, open, silent, unwound } from "../kit/billing.ts"
import { call } from "../kit/script.ts"

const services = layerScripted({ turns: [] })
const propose = call("create_invoice", { order: "a", cents: 1 })

describe("a dry run", () => {
  it.effect("does nothing, also where an earlier attempt of the same effect was lost", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        terms: () => ({ ...byOrder, retry: "never" }),
        act: () => Effect.fail(silent())
      })
      const lost = yield* unwound(bill([propose], { tools: registry }))
      assert.strictEqual(lost.outcome.stop._tag, "Escalated")
      const visits = office.visits.length
      const dry = yield* unwound(bill([propose, "ok"], { tools: registry, gates: { dryRun: true } }))
      assert.strictEqual(office.visits.length, visits)
      assert.deepStrictEqual(dry.outcome.stop, { _tag: "Completed", text: "ok" })
      assert.include(dry.answers[0], '"kind":"dry_run"')
    }).pipe(Effect.provide(services))
  )
})
