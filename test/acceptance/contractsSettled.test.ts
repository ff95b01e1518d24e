/** Accepted is not done. Item 8 of the strict suite. */
import { assert, describe, it } from "@effect/vitest"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { exitCode } from "../../src/effects/Outcome.ts"
import type { ApprovalRequest } from "../../src/effects/Policy.ts"
import { layerScripted } from "../../src/testing.ts"
import * as Contract from "../../src/tools/Contract.ts"
import type { Json } from "../../src/tools/JsonText.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { broken, holds, pending } from "../../src/tools/Terms.ts"
import { bill, make, type Office, type Opening, of, open, unwound } from "../kit/billing.ts"
import { attempts, failures, measured } from "../kit/billingAudit.ts"
import { call } from "../kit/script.ts"

const office = layerScripted({ turns: [] })
const order = { order: "order-431", cents: 1200 }
const propose = call("create_invoice", order)

/** The service says yes at once and decides later; `verdict` sees how often it was looked at. */
const accepting = (verdict: (look: number) => ReturnType<typeof pending>, terms = {}): Opening => ({
  terms: (office: Office) => ({
    retry: "never",
    settle: { everyMillis: 1_000, withinMillis: 10_000 },
    post: () => Effect.sync(() => verdict(++office.judgements)),
    ...terms
  }),
  act: () => Effect.succeed({ invoice: "INV-1" })
})

const statuses = (events: Parameters<typeof of>[0]) => of(events, "effect_settled").map(({ status }) => status)

describe("8: accepted and then failed, accepted and then silence, and an adapter that lies", () => {
  it.effect("accepted and then failed is settled as failed: what was said is outweighed by what is seen", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open(
        accepting((look) => (look < 4 ? pending() : broken("the books refused it", { state: "rejected" })))
      )
      const { answers, events, outcome, text } = yield* unwound(bill([propose, "It failed."], { tools: registry }))
      assert.deepStrictEqual([statuses(events), office.judgements], [["settled_failed"], 4])
      assert.deepStrictEqual(failures(text), [{ class: "postcondition", stage: "postcondition", effect: "present" }])
      assert.include(answers[0], '"kind":"postcondition_failed"')
      assert.include(answers[0], "the books refused it")
      assert.deepStrictEqual(of(events, "effect_accepted")[0]?.["settle_within_ms"], 10_000)
      assert.strictEqual(outcome.text, "It failed.")
    }).pipe(Effect.provide(office))
  )

  it.effect("accepted and then silence is ambiguous: the time for it runs out and the run escalates", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open(accepting(() => pending()))
      const { answers, events, outcome, text } = yield* unwound(bill([propose], { tools: registry }))
      assert.deepStrictEqual([statuses(events), office.judgements], [["ambiguous"], 11])
      assert.deepStrictEqual([outcome.stop._tag, exitCode(outcome.stop)], ["Escalated", 7])
      assert.include(answers[0], '"kind":"outcome_unknown"')
      assert.strictEqual(failures(text)[0]?.effect, "unknown")
      const [record] = yield* (yield* EffectLedger).list()
      assert.strictEqual(record?.standing, "unknown")
    }).pipe(Effect.provide(office))
  )

  it.effect("what was accepted is not sent again, however safe that would be: it is looked at", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open(accepting(() => pending(), { retry: "safe" }))
      const { events, outcome } = yield* unwound(bill([propose], { tools: registry }))
      assert.deepStrictEqual([office.visits, statuses(events)], [[0], ["ambiguous"]])
      assert.deepStrictEqual([outcome.stop._tag, of(events, "retry_scheduled")], ["Escalated", []])
    }).pipe(Effect.provide(office))
  )

  it.effect("accepted and done a little later is done, and only then", () =>
    Effect.gen(function* () {
      const { registry } = yield* open(accepting((look) => (look < 3 ? pending() : holds("INV-1"))))
      const { events, outcome } = yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.deepStrictEqual([statuses(events), outcome.text, outcome.millis.tools], [["settled_ok"], "Done.", 2_000])
    }).pipe(Effect.provide(office))
  )

  it.effect("an adapter that always says yes cannot make a broken promise pass", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({ act: () => Effect.succeed({ invoice: "INV-77" }) })
      const { answers, events, text } = yield* unwound(bill([propose, "Hm."], { tools: registry }))
      assert.deepStrictEqual([office.visits.length, office.judgements, statuses(events)], [1, 1, ["settled_failed"]])
      assert.strictEqual(failures(text)[0]?.class, "postcondition")
      assert.include(answers[0], '"ok":false')
      assert.deepStrictEqual(
        of(events, "tool_execution_finished").map(({ ok }) => ok),
        [false]
      )
    }).pipe(Effect.provide(office))
  )

  it.effect("the numbers of success count none of the three, and a hundred instant yeses raise none of them", () =>
    Effect.gen(function* () {
      const openings: ReadonlyArray<Opening> = [
        accepting((look) => (look < 4 ? pending() : broken("refused"))),
        accepting(() => pending()),
        { act: () => Effect.succeed({ invoice: "INV-77" }) }
      ]
      const texts = yield* Effect.forEach(openings, (opening) =>
        Effect.gen(function* () {
          const { registry } = yield* open(opening)
          return (yield* unwound(bill([propose, "Hm."], { tools: registry }))).text
        })
      )
      const found = measured(texts)
      assert.deepStrictEqual([found.postconditionSuccess.count, found.postconditionSuccess.of], [0, 3])
      const { registry } = yield* open(accepting(() => pending(), { settle: { everyMillis: 1, withinMillis: 1 } }))
      const hundred = yield* Effect.forEach(Array.from({ length: 100 }), () =>
        unwound(bill([propose], { tools: registry }), 100)
      )
      const gamed = measured(hundred.map(({ text }) => text))
      assert.deepStrictEqual([gamed.postconditionSuccess.count, gamed.postconditionSuccess.of], [0, 100])
      assert.deepStrictEqual([gamed.progressAfterFailure.count, gamed.duplicateEffects.count], [0, 0])
    }).pipe(Effect.provide(office))
  )
})

describe("8: what cannot be undone says beforehand by what it will be judged", () => {
  it.effect("the request for approval and the record hold the evidence before, and what was seen after", () =>
    Effect.gen(function* () {
      const evidence = { source: "sensor", describes: "the tax office lists the invoice" } as const
      const { registry } = yield* open({
        terms: (office) => ({
          reversible: false,
          evidence,
          cost: () => 2,
          hazard: () => 1,
          preview: ({ cents, order }) => Effect.succeed(`+ ${order}: ${cents}`),
          post: ({ order }) =>
            Effect.succeed(holds({ listed: office.invoices.filter((one) => one.order === order).length }))
        })
      })
      const requests: Array<ApprovalRequest> = []
      const approver = {
        name: "asked",
        decide: (request: ApprovalRequest) =>
          Effect.sync(() => {
            requests.push(request)
            return "allow" as const
          })
      }
      const { events } = yield* bill([propose, "Done."], { tools: registry, approver })
      assert.deepStrictEqual(
        requests.map(({ cost, evidence, hazard, preview, reversible }) => [
          evidence,
          reversible,
          cost,
          hazard,
          preview
        ]),
        [[evidence, false, 2, 1, "+ order-431: 1200"]]
      )
      const [requested] = of(events, "approval_requested")
      assert.deepStrictEqual([requested?.["evidence"], requested?.["reversible"]], [evidence, false])
      const types = events.map(({ event_type }) => event_type)
      assert.isBelow(types.indexOf("approval_requested"), types.indexOf("effect_intent"))
      assert.deepStrictEqual(of(events, "effect_settled")[0]?.["evidence"], { source: "sensor", seen: { listed: 1 } })
    }).pipe(Effect.provide(office))
  )
})

const circle: Record<string, unknown> = {}
circle["self"] = circle

const odd: ReadonlyArray<readonly [name: string, value: unknown]> = [
  ["a function", { invoice: () => "INV-1" }],
  ["a circle", circle],
  ["a BigInt", { invoice: 1n }],
  ["a Buffer", { invoice: Buffer.from("INV-1") }],
  ["nothing", undefined],
  ["NaN", { invoice: Number.NaN }],
  ["a symbol", { invoice: Symbol("INV-1") }],
  ["an object of a class", { invoice: new Map() }]
]

const misfits: ReadonlyArray<readonly [name: string, value: unknown]> = [
  ["a wrong type", { invoice: 1 }],
  ["a missing field", {}],
  ["an extra field", { invoice: "INV-1", password: "canary-1234" }],
  ["null", null],
  ["a list", ["INV-1"]],
  ...odd
]

describe("8: a result that is not the promised one is a broken promise, and what was done stays done", () => {
  const check = (registry: Registry.Registry, name: string, acted: () => number) =>
    Effect.gen(function* () {
      const { answers, events, text } = yield* bill([propose, "Hm."], { tools: registry })
      assert.deepStrictEqual(failures(text), [{ class: "postcondition", stage: "execution", effect: "present" }], name)
      assert.include(answers[0], '"kind":"bad_result"', name)
      assert.notInclude(answers[0], "canary", name)
      assert.deepStrictEqual([statuses(events), acted()], [["settled_failed"], 1], name)
      assert.deepStrictEqual(attempts(text).length, 1, name)
      // What came instead is kept, bounded and hashed, for a person; the model was not told.
      const [kept] = of(events, "artifact_written")
      if (name === "nothing") return assert.isUndefined(kept)
      assert.deepInclude(kept, { name: "bad-result.txt", media_type: "text/plain" }, name)
      assert.isAtMost(Number(kept?.["size_bytes"]), 64 * 1024, name)
    })

  it.effect("of a tool with an Effect Schema: wrong types, extra and missing fields, and what is not JSON", () =>
    Effect.gen(function* () {
      for (const [name, value] of misfits) {
        const { office, registry } = yield* open({
          act: (office, order, _, key) =>
            Effect.sync(() => {
              make(office, order, key)
              return value as { readonly invoice: string }
            })
        })
        yield* check(registry, name, () => office.invoices.length)
      }
    }).pipe(Effect.provide(office))
  )

  it.effect("of a tool that is declared as JSON: what is not JSON", () =>
    Effect.gen(function* () {
      for (const [name, value] of odd) {
        let acted = 0
        const registry = yield* Registry.fromDynamic([
          {
            name: "create_invoice",
            description: "Makes the invoice of an order.",
            schema: { type: "object", properties: { order: { type: "string" }, cents: { type: "integer" } } },
            contract: {
              risk: "external",
              ledger: "external",
              retry: "safe",
              reversible: true,
              evidence: { source: "self", describes: "its own answer" }
            },
            terms: { post: "result" },
            run: () =>
              Effect.sync(() => {
                acted++
                return value as Json
              })
          }
        ])
        yield* check(registry, name, () => acted)
      }
    }).pipe(Effect.provide(office))
  )

  it.effect("of a tool that only reads there is no effect to keep", () =>
    Effect.gen(function* () {
      const Read = Tool.make("create_invoice", {
        description: "Reads.",
        parameters: Schema.Struct({ order: Schema.String, cents: Schema.Int }),
        success: Schema.String
      }).annotate(Contract.Risk, "read")
      const registry = yield* Registry.fromToolkit(Toolkit.make(Read), {
        create_invoice: () => Effect.succeed(7 as unknown as string)
      })
      const { text } = yield* bill([propose, "Hm."], { tools: registry })
      assert.deepStrictEqual(failures(text), [{ class: "postcondition", stage: "execution", effect: "none" }])
    }).pipe(Effect.provide(office))
  )
})
