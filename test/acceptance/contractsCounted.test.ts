/** What an auditor finds in the log alone. Items 10 and 11 of the strict suite. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { attemptClasses, type Stage } from "../../src/tools/AttemptClass.ts"
import type { Answer, EffectClaim, FailureKind, ToolOutcome } from "../../src/tools/ToolCall.ts"
import { type BillOptions, bill, byOrder, type Opening, of, open, silent, unwound } from "../kit/billing.ts"
import { attempts, census, failures, measured } from "../kit/billingAudit.ts"
import { call, calls } from "../kit/script.ts"

const office = layerScripted({ turns: [] })
const order = { order: "order-431", cents: 1200 }
const propose = call("create_invoice", order)
const nobody = { name: "nobody", check: () => Effect.succeed([{ what: "all", reason: "not yours" }]) }

const played = (turn: string, opening: Opening = {}, options: Omit<BillOptions, "tools"> = {}) =>
  Effect.flatMap(open(opening), ({ registry }) =>
    Effect.map(bill([turn, "Hm."], { tools: registry, ...options }), ({ text }) => text)
  )

/** The same key for two different things, one after the other: the second run is the one of interest. */
const conflicting = Effect.gen(function* () {
  const { registry } = yield* open({ terms: () => byOrder })
  yield* bill([propose, "Done."], { tools: registry })
  const { text } = yield* bill([call("create_invoice", { ...order, cents: 1 }), "Hm."], { tools: registry })
  return text
})

/** The threads have a newer contract than the one the model was shown. */
const stale = Effect.provide(
  played(propose),
  ToolPool.layerPiscina({ module: new URL("../kit/billingToolkit.ts", import.meta.url) })
)

const stopped = Effect.gen(function* () {
  const reached = yield* Deferred.make<void>()
  const { registry } = yield* open({ act: () => Effect.andThen(Deferred.succeed(reached, undefined), Effect.never) })
  const running = yield* Agent.start({ task: "t", tools: registry })
  yield* Deferred.await(reached)
  yield* running.cancel
  const { runId } = yield* running.outcome
  return (yield* MemoryTraces).text(runId)
}).pipe(Effect.provideService(Approval, allowAll), Effect.provide(layerScripted({ turns: [propose] })))

type Expected = readonly [stage: Stage, effect: EffectClaim]

describe("10: the census of classes, from the log", () => {
  it.live("one injected failure per class: the auditor counts one of each, no other, each with stage and effect", () =>
    Effect.gen(function* () {
      const texts = {
        schema: yield* played(call("create_invoice", { order: 4 })),
        authorization: yield* played(propose, {}, { gates: { authority: nobody } }),
        precondition: yield* played(propose, { terms: () => ({ pre: () => Effect.succeed([{ reason: "closed" }]) }) }),
        postcondition: yield* played(propose, { act: () => Effect.succeed({ invoice: "INV-77" }) }),
        timeout: yield* played(propose, { terms: () => ({ retry: "never" }), act: () => Effect.fail(silent()) }),
        conflict: yield* conflicting,
        stale_contract: yield* stale,
        contract_fault: yield* played(propose, { terms: () => ({ cost: () => Number.NaN }) }),
        cancelled: yield* stopped
      }
      const log = Object.values(texts)
      const each = Object.fromEntries([...attemptClasses].sort().map((name) => [name, 1]))
      assert.deepStrictEqual(
        Object.fromEntries(Object.entries(census(log.join(""))).sort(([a], [b]) => (a < b ? -1 : 1))),
        each
      )
      const expected: Record<keyof typeof texts, Expected> = {
        schema: ["schema", "none"],
        authorization: ["scopes", "none"],
        precondition: ["precondition", "none"],
        postcondition: ["postcondition", "present"],
        timeout: ["execution", "unknown"],
        conflict: ["ledger", "none"],
        stale_contract: ["execution", "none"],
        contract_fault: ["governor", "none"],
        cancelled: ["execution", "unknown"]
      }
      for (const name of attemptClasses) {
        const [stage, effect] = expected[name]
        assert.deepStrictEqual(failures(texts[name]), [{ class: name, stage, effect }])
      }
      // The command that prints the numbers counts the same.
      assert.deepStrictEqual(
        Object.fromEntries(Object.entries(measured(log).classes).sort(([a], [b]) => (a < b ? -1 : 1))),
        each
      )
    }).pipe(Effect.provide(office))
  )

  it.effect("refusal, timeout and ambiguity have three labels, which no consumer has to look for in words", () =>
    Effect.gen(function* () {
      const runs: ReadonlyArray<readonly [FailureKind, Opening, Omit<BillOptions, "tools">]> = [
        ["unauthorized", {}, { gates: { authority: nobody } }],
        ["timed_out", { terms: () => ({ retry: "never", deadlineMillis: 50 }), act: () => Effect.never }, {}],
        [
          "outcome_unknown",
          {
            terms: () => ({
              retry: "never",
              settle: { everyMillis: 100, withinMillis: 1_000 },
              post: () => Effect.succeed({ _tag: "Pending" as const })
            })
          },
          {}
        ]
      ]
      const ends: Array<unknown> = []
      for (const [kind, opening, options] of runs) {
        const { registry } = yield* open(opening)
        const { answers, events, outcome } = yield* unwound(
          bill([propose, "I was refused."], { tools: registry, ...options })
        )
        const answer = JSON.parse(answers[0] ?? "{}") as Answer
        assert.isFalse(answer.ok)
        assert.strictEqual(answer.ok ? undefined : answer.kind, kind)
        ends.push([outcome.stop._tag, of(events, "effect_settled")[0]?.["status"]])
      }
      // A refusal is data for the next step; what nobody knows is neither success nor failure, and ends the run as that.
      assert.deepStrictEqual(ends, [
        ["Completed", undefined],
        ["Escalated", "ambiguous"],
        ["Escalated", "ambiguous"]
      ])
    }).pipe(Effect.provide(office))
  )

  it.effect("an attempt that an earlier run lost is of one class as well, with stage and effect", () =>
    Effect.gen(function* () {
      const { registry } = yield* open({
        terms: () => ({ ...byOrder, ledger: "none", retry: "never" }),
        act: () => Effect.fail(silent())
      })
      yield* bill([propose], { tools: registry })
      const { answers, text } = yield* bill([propose], { tools: registry })
      assert.include(answers[0], '"kind":"outcome_unknown"')
      assert.deepStrictEqual(measured([text]).classes, { timeout: 1 })
      assert.deepStrictEqual(attempts(text).length, 1)
    }).pipe(Effect.provide(office))
  )
})

const many = { modelTurns: 100, toolCalls: 1_000, wallMillis: 600_000 }

/** `wrong` of `all` calls name an order by a number. */
const habits = (wrong: number, all: number): ReadonlyArray<string> => {
  const one = (at: number) => ["list_invoices", { order: at < wrong ? at : `order-${at}` }] as const
  const turns = Array.from({ length: all / 10 }, (_, turn) =>
    calls(...Array.from({ length: 10 }, (_, at) => one(turn * 10 + at)))
  )
  return [...turns, "Done."]
}

/** Gives the first call up, forgets to say so, and tells of its success when the second one has succeeded too. */
const forgetful = (): ToolPool.ToolPool["Service"] => {
  let tell: ((outcome: ToolOutcome) => void) | undefined
  const made: ToolOutcome = { _tag: "Succeeded", result: { invoice: "INV-1" }, artifacts: [], millis: 0 }
  return {
    run: (_, late) =>
      Effect.sync(() => {
        if (tell === undefined) {
          tell = late
          return { _tag: "Failed", kind: "timed_out", errors: [], effect: "unknown", millis: 0 } satisfies ToolOutcome
        }
        tell(made)
        return made
      })
  }
}

describe("11: six numbers, from the log alone", () => {
  it.effect("6 of 200 attempts that break the schema are 3 %, and the same twice", () =>
    Effect.gen(function* () {
      const { registry } = yield* open()
      const { text } = yield* bill(habits(6, 200), { tools: registry, limits: many })
      assert.lengthOf(attempts(text), 200)
      const { schemaViolations } = measured([text])
      assert.deepStrictEqual(schemaViolations, { count: 6, of: 200, rate: 0.03 })
      assert.deepStrictEqual(measured([text]), measured([text.slice()]))
    }).pipe(Effect.provide(office))
  )

  it.effect("each has a run where it is not zero", () =>
    Effect.gen(function* () {
      const undoable = yield* open({ terms: () => ({ compensation: "cancel_invoice" }) })
      const undone = yield* bill([propose, call("cancel_invoice", { order: order.order }), "Undone."], {
        tools: undoable.registry
      })
      const better = yield* open({
        terms: (office) => ({
          pre: () => Effect.sync(() => (office.looks++ > 0 ? [] : [{ reason: "the books are closed" }]))
        })
      })
      const progressed = yield* bill([propose, propose, "Done."], { tools: better.registry })
      // The look said that nothing was there, and then the first try answered after all: so there are two. The pool that
      // comes with the package says when work that was given up is over; this one does not.
      const twice = yield* open({
        terms: () => ({ ledger: "observe", post: "result", probe: () => Effect.succeed({ _tag: "Absent" }) })
      })
      const doubled = yield* unwound(
        bill([propose, "Done."], { tools: twice.registry }).pipe(Effect.provideService(ToolPool.ToolPool, forgetful()))
      )
      const texts = [undone, progressed, doubled].map(({ text }) => text)
      const scores = new Map(
        [undone, progressed, doubled].map(({ outcome }) => [outcome.runId, { with: 1, without: 0.5 }])
      )
      const found = measured(texts, { scores })
      assert.deepStrictEqual(found.preconditionViolations, { count: 1, of: 5, rate: 0.2 })
      assert.deepStrictEqual([found.postconditionSuccess.count, found.postconditionSuccess.of], [4, 4])
      assert.strictEqual(found.duplicateEffects.count, 1)
      assert.strictEqual(found.rollbacks.count, 1)
      assert.deepStrictEqual(found.progressAfterFailure, { count: 1, of: 1, rate: 1 })
      assert.strictEqual(found.utility.gain, 1.5)
      assert.isAbove(found.utility.perCall ?? 0, 0)
    }).pipe(Effect.provide(office))
  )

  it.effect("a run that attempted nothing has no rates, neither 0 nor 100 %", () =>
    Effect.gen(function* () {
      const { registry } = yield* open()
      const { text } = yield* bill(["Nothing to do."], { tools: registry })
      const found = measured([text])
      for (const name of [
        "schemaViolations",
        "preconditionViolations",
        "postconditionSuccess",
        "duplicateEffects"
      ] as const) {
        assert.deepStrictEqual(found[name], { count: 0, of: 0, rate: undefined }, name)
      }
      assert.deepStrictEqual([found.rollbacks.rate, found.progressAfterFailure.rate], [undefined, undefined])
      assert.isUndefined(found.utility.perCall)
    }).pipe(Effect.provide(office))
  )
})
