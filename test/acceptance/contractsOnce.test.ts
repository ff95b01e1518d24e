/** What is asked for several times happens once. Items 3, 5 and 6 of the strict suite. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import { layerScripted } from "../../src/testing.ts"
import { bill, byOrder, of, open, silent, unwound } from "../kit/billing.ts"
import { attempts, failures } from "../kit/billingAudit.ts"
import { services, together } from "../kit/billingCrash.ts"
import { bundled } from "../kit/crash.ts"
import { call, calls } from "../kit/script.ts"

const office = layerScripted({ turns: [] })
const order = { order: "order-431", cents: 1200 }
const propose = call("create_invoice", order)
const named = { terms: () => byOrder }

describe("3: delivered 1, 2 and 5 times, one after the other, at once and from two processes: one effect, equal replies", () => {
  for (const times of [1, 2, 5]) {
    it.effect(`${times}, one after the other`, () =>
      Effect.gen(function* () {
        const { office, registry } = yield* open(named)
        const billed = yield* Effect.forEach(Array.from({ length: times }), () =>
          bill([propose, "Done."], { tools: registry })
        )
        assert.deepStrictEqual([office.invoices.length, office.visits.length], [1, 1])
        assert.deepStrictEqual(
          new Set(billed.flatMap(({ answers }) => answers)),
          new Set(['{"ok":true,"result":{"invoice":"INV-1"}}'])
        )
        assert.lengthOf(yield* (yield* EffectLedger).list(), 1)
        assert.deepStrictEqual(
          billed.map(({ events }) => of(events, "effect_settled").map(({ replayed, status }) => [replayed, status])),
          billed.map((_, at) => [[at > 0, "settled_ok"]])
        )
      }).pipe(Effect.provide(office))
    )

    it.effect(`${times}, at once`, () =>
      Effect.gen(function* () {
        const { office, registry } = yield* open({
          ...named,
          act: (office, { cents, order }, _, key) =>
            Effect.as(Effect.sleep(100), { invoice: `INV-${office.invoices.push({ id: "INV-1", order, cents, key })}` })
        })
        const billed = yield* unwound(
          Effect.all(
            Array.from({ length: times }, () => bill([propose, "Done."], { tools: registry })),
            { concurrency: "unbounded" }
          )
        )
        assert.deepStrictEqual([office.invoices.length, office.visits.length], [1, 1])
        const replies = billed.flatMap(({ answers }) => answers)
        assert.deepStrictEqual([replies.length, new Set(replies).size], [times, 1])
        assert.lengthOf(yield* (yield* EffectLedger).list(), 1)
      }).pipe(Effect.provide(office))
    )
  }

  it.live(
    "1, 2 and 5, at once in each of two processes that share a ledger and a service that honours no keys",
    () =>
      Effect.gen(function* () {
        const { url } = yield* services
        const program = yield* bundled("billingChild")
        for (const times of [1, 2, 5]) {
          const { ended, invoices } = yield* together(program, url, 2, times)
          assert.deepStrictEqual([ended.length, invoices], [2 * times, 1], `${times}`)
          assert.deepStrictEqual(
            new Set(ended.map(({ answers, exit }) => `${exit} ${answers.join()}`)),
            new Set(['0 {"ok":true,"result":{"id":"INV-1"}}']),
            `${times}`
          )
        }
      }),
    120_000
  )
})

describe("5: a key names one thing", () => {
  it.effect("the same key with other arguments: a conflict, no effect, and no stored answer is returned", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open(named)
      yield* bill([propose, "Done."], { tools: registry })
      const { answers, text } = yield* bill([call("create_invoice", { ...order, cents: 9900 }), "Hm."], {
        tools: registry
      })
      assert.deepStrictEqual(
        office.invoices.map(({ cents }) => cents),
        [1200]
      )
      assert.deepStrictEqual(failures(text), [{ class: "conflict", stage: "ledger", effect: "none" }])
      assert.include(answers[0], '"kind":"idempotency_conflict"')
      assert.notInclude(answers[0], "INV-1")
      assert.lengthOf(yield* (yield* EffectLedger).list(), 1)
    }).pipe(Effect.provide(office))
  )

  it.effect("an empty key and one that is too long are schema errors", () =>
    Effect.gen(function* () {
      for (const order of ["", "   ", "x".repeat(257)]) {
        const { office, registry } = yield* open({ terms: () => ({ key: ({ order }) => order }) })
        const { text } = yield* bill([call("create_invoice", { order, cents: 1 }), "Hm."], { tools: registry })
        assert.deepStrictEqual(failures(text), [{ class: "schema", stage: "ledger", effect: "none" }])
        assert.deepStrictEqual(office.visits, [])
      }
      assert.lengthOf(yield* (yield* EffectLedger).list(), 0)
    }).pipe(Effect.provide(office))
  )

  it.effect("the same key with other arguments at the same time: one acts, the other is a conflict", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        ...named,
        act: (office, { cents, order }, _, key) =>
          Effect.as(Effect.sleep(100), { invoice: `INV-${office.invoices.push({ id: "INV-1", order, cents, key })}` })
      })
      const both = [order, { ...order, cents: 9900 }].map((args) =>
        bill([call("create_invoice", args), "Done."], { tools: registry })
      )
      const billed = yield* unwound(Effect.all(both, { concurrency: "unbounded" }))
      assert.lengthOf(office.invoices, 1)
      const conflicts = billed.filter(({ answers }) => answers[0]?.includes("idempotency_conflict"))
      assert.lengthOf(conflicts, 1)
      assert.deepStrictEqual(failures(conflicts[0]!.text), [{ class: "conflict", stage: "ledger", effect: "none" }])
    }).pipe(Effect.provide(office))
  )

  it.effect("what is on the record of a key says nothing of what it was made from", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({ terms: () => ({ key: ({ order }) => `invoice:${order}:v1` }) })
      const secret = "order-of-a-secret-customer"
      const { text } = yield* bill([call("create_invoice", { order: secret, cents: 1 }), "Done."], {
        tools: registry,
        trace: { content: false }
      })
      assert.notInclude(text, secret)
      assert.match(office.keys[0] ?? "", /^[0-9a-f]{64}$/)
      assert.notInclude(text, office.keys[0]!)
      const [record] = yield* (yield* EffectLedger).list()
      assert.notInclude(JSON.stringify(record), secret)
    }).pipe(Effect.provide(office))
  )
})

describe("6: a precondition that is false because of one's own effect", () => {
  /** Holds as long as the order is not invoiced. */
  const onlyOnce = (key: boolean): Parameters<typeof open>[0] => ({
    terms: (office) => ({
      pre: ({ order }) => {
        office.looks++
        return Effect.succeed(office.invoices.some((one) => one.order === order) ? [{ reason: "invoiced before" }] : [])
      },
      ...(key ? byOrder : {})
    })
  })

  it.effect("who asks again under the key is given the stored outcome, not a precondition error", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open(onlyOnce(true))
      const first = yield* bill([propose, "Done."], { tools: registry })
      const looks = office.looks
      const approver = { name: "nobody", decide: () => Effect.die(new Error("an inquiry asks nobody")) }
      const { answers, events, text } = yield* bill([propose, "Done."], { tools: registry, approver })
      assert.deepStrictEqual(answers, first.answers)
      assert.deepStrictEqual([office.looks - looks, office.visits.length], [0, 1])
      const [checked] = of(events, "legality_checked")
      assert.deepStrictEqual([checked?.["pre"], checked?.["cause"]], ["not_evaluated", "superseded_by_ledger"])
      assert.deepStrictEqual([attempts(text)[0]?.legal, failures(text)], [true, []])
    }).pipe(Effect.provide(office))
  )

  it.effect("the reply is lost, the precondition is false by now, and the retry gets what the first attempt did", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        ...onlyOnce(false),
        act: (office, { cents, order }, visit, key) => {
          if (visit > 1)
            return Effect.succeed({ invoice: office.invoices.find((one) => one.key === key)?.id ?? "none" })
          office.invoices.push({ id: "INV-1", order, cents, key })
          return Effect.fail(silent())
        }
      })
      const { answers, outcome } = yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.deepStrictEqual([answers, outcome.text], [['{"ok":true,"result":{"invoice":"INV-1"}}'], "Done."])
      assert.deepStrictEqual([new Set(office.keys).size, office.visits], [1, [0, 1000]])
    }).pipe(Effect.provide(office))
  )

  it.effect("asked twice in one turn: the second is given what the first came to", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open(onlyOnce(true))
      const { answers } = yield* bill([calls(["create_invoice", order], ["create_invoice", order]), "Done."], {
        tools: registry
      })
      assert.deepStrictEqual(
        [new Set(answers), answers.length],
        [new Set(['{"ok":true,"result":{"invoice":"INV-1"}}']), 2]
      )
      assert.lengthOf(office.visits, 1)
    }).pipe(Effect.provide(office))
  )

  it.effect("asked again while the first is about to act: the second is given what the first came to", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        terms: (office) => ({
          ...byOrder,
          pre: ({ order }) =>
            Effect.map(Effect.sleep(100), () =>
              office.invoices.some((one) => one.order === order) ? [{ reason: "invoiced before" }] : []
            )
        })
      })
      // The second asks the ledger before the first acts, and looks at the world after it.
      const second = Effect.delay(bill([propose, "Done."], { tools: registry }), 50)
      const billed = yield* unwound(
        Effect.all([bill([propose, "Done."], { tools: registry }), second], { concurrency: "unbounded" })
      )
      assert.deepStrictEqual(
        billed.map(({ answers }) => answers),
        [['{"ok":true,"result":{"invoice":"INV-1"}}'], ['{"ok":true,"result":{"invoice":"INV-1"}}']]
      )
      assert.lengthOf(office.visits, 1)
    }).pipe(Effect.provide(office))
  )

  it.effect("who may not ask is told nothing of what happened", () =>
    Effect.gen(function* () {
      const { registry } = yield* open({ terms: () => ({ ...byOrder, scopes: ["billing"] }) })
      yield* bill([propose, "Done."], { tools: registry })
      const nobody = { name: "nobody", check: () => Effect.succeed([{ what: "scope billing", reason: "not yours" }]) }
      const { answers } = yield* bill([propose, "Hm."], { tools: registry, gates: { authority: nobody } })
      assert.include(answers[0], '"kind":"unauthorized"')
      assert.notInclude(answers[0], "INV-1")
    }).pipe(Effect.provide(office))
  )

  it.effect(
    "without a key of its own the same proposal is another attempt, and the record says which it resembles",
    () =>
      Effect.gen(function* () {
        const { office, registry } = yield* open()
        const { text } = yield* bill([propose, propose, "Done."], { tools: registry })
        const [first, second] = attempts(text)
        assert.deepStrictEqual([first?.resembles, second?.resembles], [undefined, first?.seq])
        assert.deepStrictEqual([office.invoices.length, new Set(office.keys).size], [2, 2])
      }).pipe(Effect.provide(office))
  )
})
