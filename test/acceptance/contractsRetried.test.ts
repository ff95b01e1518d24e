/** Who tries again, when, and how often. Item 7 of the strict suite. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import * as Agent from "../../src/effects/Agent.ts"
import type * as Gates from "../../src/effects/Gates.ts"
import { exitCode } from "../../src/effects/Outcome.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { strict } from "../../src/effects/Profile.ts"
import { layerScripted } from "../../src/testing.ts"
import { bill, byOrder, make, type Opening, of, open, silent, unwound } from "../kit/billing.ts"
import { attempts, failures } from "../kit/billingAudit.ts"
import { call } from "../kit/script.ts"

const office = layerScripted({ turns: [] })
const order = { order: "order-431", cents: 1200 }
const propose = call("create_invoice", order)

/** Nobody ever answers. */
const dead = (terms: Opening["terms"] = () => ({})) => open({ terms, act: () => Effect.fail(silent()) })

describe("7: the backoff timeline under a virtual clock, and after a restart", () => {
  it.effect("attempts at 0, 1, 3 and 7 seconds, then one escalation that carries all four; no fifth", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* dead()
      const { events, outcome, text, answers } = yield* unwound(bill([propose, "never said"], { tools: registry }))
      assert.deepStrictEqual(office.visits, [0, 1000, 3000, 7000])
      assert.strictEqual(new Set(office.keys).size, 1)
      assert.deepStrictEqual(
        of(events, "retry_scheduled").map(({ attempt, delay_ms, of }) => [attempt, of, delay_ms]),
        [
          [1, 4, 1000],
          [2, 4, 2000],
          [3, 4, 4000]
        ]
      )
      assert.deepStrictEqual(
        of(events, "effect_intent").map(({ attempt, key }) => [attempt, key]),
        [1, 2, 3, 4].map((attempt) => [attempt, of(events, "effect_intent")[0]?.["key"]])
      )
      assert.deepStrictEqual(
        of(events, "effect_escalated").map((data) => data["attempts"]),
        [[0, 1000, 3000, 7000].map((at_ms) => ({ at_ms, kind: "unavailable", effect: "unknown" }))]
      )
      assert.deepStrictEqual([outcome.stop._tag, exitCode(outcome.stop)], ["Escalated", 7])
      assert.deepStrictEqual(failures(text), [{ class: "timeout", stage: "execution", effect: "unknown" }])
      assert.include(answers[0], '"ok":false')
      assert.deepStrictEqual(
        of(events, "effect_settled").map(({ status }) => status),
        ["ambiguous"]
      )
    }).pipe(Effect.provide(office))
  )

  it.effect("an answer at the last attempt is an answer like any other", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        act: (office, order, visit, key) =>
          visit < 4 ? Effect.fail(silent()) : Effect.succeed(make(office, order, key))
      })
      const { answers, outcome } = yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.deepStrictEqual([answers, outcome.text], [['{"ok":true,"result":{"invoice":"INV-1"}}'], "Done."])
      assert.deepStrictEqual([office.visits, office.invoices.length], [[0, 1000, 3000, 7000], 1])
    }).pipe(Effect.provide(office))
  )

  it.effect("after a restart the count goes on where the ledger says it was, and so does the delay", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* dead(() => byOrder)
      const first = yield* Effect.forkChild(bill([propose], { tools: registry }), { startImmediately: true })
      yield* TestClock.adjust(2_500)
      assert.deepStrictEqual(office.visits, [0, 1000])
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust(97_500)
      const { events, outcome } = yield* unwound(bill([propose], { tools: registry }))
      // The third attempt comes 2 s after the restart, the fourth 4 s after it.
      assert.deepStrictEqual(office.visits, [0, 1000, 102_000, 106_000])
      assert.deepStrictEqual(
        of(events, "effect_intent").map(({ attempt }) => attempt),
        [3, 4]
      )
      const [escalated, ...more] = of(events, "effect_escalated")
      assert.deepStrictEqual([(escalated?.["attempts"] as ReadonlyArray<unknown> | undefined)?.length, more], [4, []])
      assert.strictEqual(outcome.stop._tag, "Escalated")
      // And who asks once more is told so at once.
      const third = yield* unwound(bill([propose], { tools: registry }))
      assert.deepStrictEqual([third.outcome.stop._tag, office.visits.length], ["Escalated", 4])
    }).pipe(Effect.provide(office))
  )

  it.effect("cancellation wins over the delay", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* dead()
      const running = yield* Agent.start({ task: "t", tools: registry }).pipe(Effect.provideService(Approval, allowAll))
      yield* TestClock.adjust(2_000)
      yield* running.cancel
      const outcome = yield* running.outcome
      assert.deepStrictEqual([outcome.stop, outcome.millis.total], [{ _tag: "Cancelled", at: "tool" }, 2_000])
      yield* TestClock.adjust(60_000)
      assert.deepStrictEqual(office.visits, [0, 1000])
      const [record] = yield* (yield* EffectLedger).list()
      assert.strictEqual(record?.standing, "unknown")
    }).pipe(Effect.provide(layerScripted({ turns: [propose] })))
  )

  it.effect("so does the time of the run", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* dead()
      const { outcome } = yield* unwound(bill([propose], { tools: registry, limits: { wallMillis: 2_500 } }))
      assert.deepStrictEqual(office.visits, [0, 1000])
      assert.isAtMost(outcome.millis.total, 2_500)
      assert.strictEqual(outcome.stop._tag, "Escalated")
    }).pipe(Effect.provide(office))
  )

  it.effect("waits that do not grow are refused before anything runs", () =>
    Effect.gen(function* () {
      const { registry } = yield* dead()
      for (const factor of [1, 0.5, Number.NaN]) {
        const retry = { attempts: 4, delayMillis: 1000, factor }
        const refused = yield* Effect.flip(bill([propose], { tools: registry, gates: { retry } }))
        assert.strictEqual(refused._tag, "InvalidOptions")
      }
    }).pipe(Effect.provide(office))
  )
})

interface Injected {
  readonly name: string
  readonly class: string
  readonly opening?: Opening
  readonly turn?: string
  readonly gates?: Partial<Gates.Gates>
  /** How often it is tried, and how often the tool runs. */
  readonly tried: number
  readonly ran: number
}

const nobody = { name: "nobody", check: () => Effect.succeed([{ what: "all", reason: "not yours" }]) }

const injected: ReadonlyArray<Injected> = [
  { name: "schema", class: "schema", turn: call("create_invoice", { order: 4 }), tried: 1, ran: 0 },
  { name: "authorization", class: "authorization", gates: { authority: nobody }, tried: 1, ran: 0 },
  {
    name: "precondition",
    class: "precondition",
    opening: { terms: () => ({ pre: () => Effect.succeed([{ reason: "closed" }]) }) },
    tried: 1,
    ran: 0
  },
  {
    name: "postcondition",
    class: "postcondition",
    opening: { act: () => Effect.succeed({ invoice: "INV-77" }) },
    tried: 1,
    ran: 1
  },
  {
    name: "timeout of a tool that is safe by its key",
    class: "timeout",
    opening: { act: () => Effect.fail(silent()) },
    tried: 4,
    ran: 4
  },
  {
    name: "timeout of a tool whose answer is late",
    class: "timeout",
    opening: { terms: () => ({ deadlineMillis: 50 }), act: () => Effect.never },
    tried: 4,
    ran: 4
  },
  {
    name: "timeout of a tool in mode none",
    class: "timeout",
    opening: { terms: () => ({ ledger: "none", retry: "never" }), act: () => Effect.fail(silent()) },
    tried: 1,
    ran: 1
  },
  {
    name: "timeout of a tool that says never",
    class: "timeout",
    opening: { terms: () => ({ retry: "never" }), act: () => Effect.fail(silent()) },
    tried: 1,
    ran: 1
  },
  {
    name: "timeout in a task where a repeat is dangerous",
    class: "timeout",
    gates: { profile: { ...strict, evidence: "observable" } },
    opening: { act: () => Effect.fail(silent()) },
    tried: 1,
    ran: 1
  }
]

describe("7: one injected failure per class, and how often it is tried", () => {
  for (const { class: expected, gates, name, opening, ran, tried, turn = propose } of injected) {
    it.effect(`${name}: ${tried}`, () =>
      Effect.gen(function* () {
        const { office, registry } = yield* open(opening)
        const { events, text } = yield* unwound(
          bill([turn, "Hm."], { tools: registry, ...(gates === undefined ? {} : { gates }) })
        )
        const [failure, ...more] = failures(text)
        assert.deepStrictEqual([failure?.class, more, attempts(text).length], [expected, [], 1])
        assert.deepStrictEqual([office.visits.length, of(events, "retry_scheduled").length + 1], [ran, tried])
        assert.isAtMost(new Set(office.keys).size, 1)
      }).pipe(Effect.provide(office))
    )
  }
})

describe("7: where the effect can be looked for, the look comes first", () => {
  const observed = (found: (visit: number) => "Present" | "Absent" | "Unclear", seen: Array<string>): Opening => ({
    terms: (office) => ({
      ledger: "observe",
      probe: (_, key) =>
        Effect.sync(() => {
          seen.push(key)
          const tag = found(office.visits.length)
          return tag === "Present" ? { _tag: tag, result: { invoice: "INV-1" } } : { _tag: tag }
        })
    }),
    act: (office, order, visit, key) => {
      if (visit > 1 || found(1) === "Present") make(office, order, key)
      return visit > 1 ? Effect.succeed({ invoice: "INV-1" }) : Effect.fail(silent())
    }
  })

  it.effect("present: what was found is the answer, and the tool does not run again", () =>
    Effect.gen(function* () {
      const looks: Array<string> = []
      const { office, registry } = yield* open(observed(() => "Present", looks))
      const { answers, events, outcome } = yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.deepStrictEqual([answers, outcome.text], [['{"ok":true,"result":{"invoice":"INV-1"}}'], "Done."])
      assert.deepStrictEqual([office.visits, looks], [[0], [office.keys[0]]])
      assert.deepStrictEqual(
        of(events, "effect_settled").map(({ status }) => status),
        ["settled_ok"]
      )
    }).pipe(Effect.provide(office))
  )

  it.effect("absent: it runs again under the same key", () =>
    Effect.gen(function* () {
      const looks: Array<string> = []
      const { office, registry } = yield* open(observed(() => "Absent", looks))
      const { outcome } = yield* unwound(bill([propose, "Done."], { tools: registry }))
      assert.deepStrictEqual([office.visits, office.invoices.length, outcome.text], [[0, 1000], 1, "Done."])
      // Looked for at once, and once more before it is done again.
      assert.deepStrictEqual([new Set(office.keys).size, looks.length], [1, 2])
    }).pipe(Effect.provide(office))
  )

  it.effect("unclear: only the look is repeated, and then a person has to", () =>
    Effect.gen(function* () {
      const looks: Array<string> = []
      const { office, registry } = yield* open(observed(() => "Unclear", looks))
      const { events, outcome } = yield* unwound(bill([propose], { tools: registry }))
      assert.deepStrictEqual([office.visits, looks.length, outcome.stop._tag], [[0], 4, "Escalated"])
      assert.deepStrictEqual(
        of(events, "effect_probed").map(({ found }) => found),
        ["unclear", "unclear", "unclear", "unclear"]
      )
    }).pipe(Effect.provide(office))
  )
})
