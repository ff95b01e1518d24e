import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import * as Governor from "../../src/effects/Governor.ts"

const ones: Governor.Weights = { cost: 1, risk: 1 }

const candidate = (id: string, value: number, cost: number, risk: number): Governor.Candidate => ({
  id,
  order: id.charCodeAt(0),
  kind: "proposal",
  legal: true,
  value,
  cost,
  risk
})

const prospect = (id: string, cost = 0, risk = 0): Governor.Prospect => {
  const { value: _, ...rest } = candidate(id, 0, cost, risk)
  return rest
}

const winner = (candidates: ReadonlyArray<Governor.Candidate>, weights = ones) =>
  Governor.choose(candidates, weights).chosen?.id

const situation = (candidates: ReadonlyArray<Governor.Prospect>): Governor.Situation => ({
  task: "bill order 431",
  turn: 1,
  toolCalls: 0,
  candidates
})

/** Chosen by the standard governor. */
const decided = (candidates: ReadonlyArray<Governor.Prospect>, governor = Governor.standard) =>
  Effect.map(Governor.weigh(governor, situation(candidates)), ({ chosen }) => chosen?.id)

const amount = fc.oneof(
  fc.integer({ min: 0, max: 4 }),
  fc.double(),
  fc.constantFrom(0, -1, Infinity, -Infinity, Number.NaN, Number.MAX_VALUE)
)
const candidates = fc
  .array(
    fc.record({
      order: fc.nat(3),
      kind: fc.constantFrom<Governor.CandidateKind>("proposal", "answer", "do_nothing", "observe"),
      legal: fc.boolean(),
      value: amount,
      cost: amount,
      risk: amount
    }),
    { maxLength: 8 }
  )
  .map((list) => list.map((one, index): Governor.Candidate => ({ ...one, id: `c${index}` })))
const weights = fc.record({ cost: amount, risk: amount })

describe("choose", () => {
  it("scores 0.9 * 10 - 2 - 1 as 6", () => {
    assert.strictEqual(Governor.choose([candidate("a", 0.9 * 10, 2, 1)], ones).chosen?.score, 6)
  })

  it("prefers (8,1,1) with 6 to (11,2,6) with 3, and (10,2,1) with 7 to the same", () => {
    const first = Governor.choose([candidate("a", 11, 2, 6), candidate("b", 8, 1, 1)], ones)
    assert.deepStrictEqual(
      first.scored.map(({ score }) => score),
      [3, 6]
    )
    assert.strictEqual(first.chosen?.id, "b")
    const second = Governor.choose([candidate("a", 11, 2, 6), candidate("b", 10, 2, 1)], ones)
    assert.deepStrictEqual(
      second.scored.map(({ score }) => score),
      [3, 7]
    )
    assert.strictEqual(second.chosen?.id, "b")
  })

  it("never takes an illegal candidate, however good, but scores it", () => {
    const illegal = { ...candidate("a", 100, 0, 0), legal: false }
    const { chosen, scored } = Governor.choose([illegal, candidate("b", 1, 0, 0)], ones)
    assert.strictEqual(chosen?.id, "b")
    assert.strictEqual(scored[0]?.score, 100)
    assert.strictEqual(Governor.choose([illegal], ones).chosen, undefined)
    assert.strictEqual(Governor.choose([], ones).chosen, undefined)
  })

  it("takes infinite risk or cost as forbidden, also where the weight is zero", () => {
    for (const weight of [0, 1]) {
      const weights = { cost: weight, risk: weight }
      assert.strictEqual(winner([candidate("a", 100, 0, Infinity)], weights), undefined)
      assert.strictEqual(winner([candidate("a", 100, Infinity, 0)], weights), undefined)
    }
    assert.strictEqual(winner([candidate("a", 5, 900, 900), candidate("b", 4, 0, 0)], { cost: 0, risk: 0 }), "a")
  })

  it("breaks ties by lower risk, then lower cost, then proposals before what is always open, then order", () => {
    assert.strictEqual(winner([candidate("a", 10, 1, 3), candidate("b", 10, 3, 1)]), "b")
    const free: Governor.Weights = { cost: 0, risk: 0 }
    assert.strictEqual(winner([candidate("a", 10, 3, 1), candidate("b", 10, 1, 1)], free), "b")
    const nothing = { ...candidate("a", 10, 1, 1), kind: "do_nothing" as const }
    assert.strictEqual(winner([nothing, candidate("b", 10, 1, 1)]), "b")
    assert.strictEqual(winner([candidate("c", 10, 1, 1), candidate("b", 10, 1, 1)]), "b")
  })

  it("chooses the same one whatever the sequence, never an illegal one, and never scores NaN", () => {
    const shuffled = candidates.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length }))
    )
    fc.assert(
      fc.property(shuffled, weights, ([list, other], weights) => {
        const one = Governor.choose(list, weights)
        assert.deepStrictEqual(Governor.choose(other, weights).chosen, one.chosen)
        assert.strictEqual(one.scored.length, list.length)
        for (const { score } of one.scored) assert.isFalse(Number.isNaN(score))
        if (one.chosen === undefined) return
        assert.isTrue(one.chosen.legal && Number.isFinite(one.chosen.risk))
        for (const { legal, score } of one.scored) if (legal) assert.isAtMost(score, one.chosen.score)
      })
    )
  })
})

describe("weigh", () => {
  it.effect("lets a value function that looks at the next state change the winner", () =>
    Effect.gen(function* () {
      const now = [prospect("pay", 1, 1), prospect("reserve", 2, 1)]
      assert.strictEqual(yield* decided(now), "pay")
      // Paying now uses up the permission to pay: the state behind `reserve` is worth more.
      const worth: Record<string, number> = { pay: 3, reserve: 9 }
      const ahead: Governor.Governor = {
        ...Governor.standard,
        name: "ahead",
        value: (_, { id }) => Effect.succeed(worth[id]!)
      }
      assert.strictEqual(yield* decided(now, ahead), "reserve")
    })
  )

  it.effect("shows the value function the situation and the call, and keeps the call out of the scores", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const call = { tool: "create_invoice", arguments: { order: 431 } }
      const proposal = { ...prospect("a", 1, 1), call }
      const governor: Governor.Governor = {
        ...Governor.standard,
        value: (at, one) => Effect.sync(() => seen.push([at.task, at.candidates.length, one.call]))
      }
      const { scored } = yield* Governor.weigh(governor, situation([proposal]))
      assert.deepStrictEqual(seen, [["bill order 431", 1, call]])
      assert.notProperty(scored[0], "call")
    })
  )

  it.effect(
    "fails with a fault that names the candidate where the value function throws, dies, or gives no number",
    () =>
      Effect.gen(function* () {
        const crash = new Error("boom")
        const cases: ReadonlyArray<readonly [Governor.Governor["value"], string]> = [
          [
            () => {
              throw crash
            },
            "the value function threw"
          ],
          [() => Effect.die(crash), "the value function threw"],
          [() => Effect.succeed(Number.NaN), "the value is not a finite number"],
          [() => 5 as never, "the value is not a finite number"],
          [() => Effect.succeed(Infinity), "the value is not a finite number"]
        ]
        for (const [value, reason] of cases) {
          const fault = yield* Effect.flip(decided([prospect("a")], { ...Governor.standard, value }))
          assert.strictEqual(fault._tag, "GovernorFault")
          assert.strictEqual(fault.message, `governor standard, candidate a: ${reason}`)
          assert.strictEqual(fault.cause, reason.endsWith("threw") ? crash : undefined)
        }
      })
  )

  it.effect("fails with a fault where cost, risk or weights are no amounts, instead of taking them as zero", () =>
    Effect.gen(function* () {
      for (const bad of [Number.NaN, -1]) {
        assert.match((yield* Effect.flip(decided([prospect("a", bad, 0)]))).reason, /^the cost/)
        assert.match((yield* Effect.flip(decided([prospect("a", 0, bad)]))).reason, /^the risk/)
        const governor = { ...Governor.standard, weights: { cost: 1, risk: bad } }
        assert.match((yield* Effect.flip(decided([prospect("a")], governor))).reason, /^the weights/)
      }
    })
  )

  it.effect("accepts that an illegal candidate has no price, and scores it without NaN", () =>
    Effect.gen(function* () {
      const illegal = { ...prospect("a", Number.NaN, Number.NaN), legal: false }
      const { chosen, scored } = yield* Governor.weigh(Governor.standard, situation([illegal, prospect("b")]))
      assert.strictEqual(chosen?.id, "b")
      assert.strictEqual(scored[0]?.score, -Infinity)
    })
  )
})

describe("the gate around one proposal", () => {
  it.effect("lets a call through while cost and risk stay below 10 together", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* decided(Governor.gate(prospect("call", 4, 5.9))), "call")
      assert.strictEqual(yield* decided(Governor.gate(prospect("call", 4, 6))), "do_nothing")
      assert.strictEqual(yield* decided(Governor.gate(prospect("call", 0, Infinity))), "do_nothing")
      assert.strictEqual(yield* decided(Governor.gate({ ...prospect("call"), legal: false })), "do_nothing")
    })
  )

  it.effect("observes instead where looking is worth more than acting", () =>
    Effect.gen(function* () {
      const look: Governor.Governor = {
        ...Governor.standard,
        value: (_, { kind }) => Effect.succeed(kind === "observe" ? 5 : 0)
      }
      const proposal = prospect("call", 3, 3)
      assert.strictEqual(yield* decided(Governor.gate(proposal, { legal: true, cost: 1, risk: 0 }), look), "observe")
      assert.strictEqual(
        yield* decided(Governor.gate(proposal, { legal: false, cost: 1, risk: 0 }), look),
        "do_nothing"
      )
      assert.strictEqual(yield* decided(Governor.gate(proposal), look), "do_nothing")
    })
  )

  it.effect("does not let an answer displace a call that may be made", () =>
    Effect.gen(function* () {
      const answer: Governor.Prospect = { ...prospect("answer"), kind: "answer" }
      assert.strictEqual(yield* decided(Governor.withImplicit([answer, prospect("call", 4, 5)])), "call")
      assert.strictEqual(yield* decided(Governor.withImplicit([answer, prospect("call", 6, 5)])), "answer")
    })
  )

  it("puts the implicit candidates after every proposal, under names of their own", () => {
    const built = Governor.withImplicit([{ ...prospect("b"), order: 7 }, prospect("a")], {
      legal: true,
      cost: 1,
      risk: 0
    })
    assert.deepStrictEqual(
      built.map(({ id, kind }) => [id, kind]),
      [
        ["b", "proposal"],
        ["a", "proposal"],
        ["do_nothing", "do_nothing"],
        ["observe", "observe"]
      ]
    )
    assert.deepStrictEqual(
      built.slice(2).map(({ order }) => order),
      ["a".charCodeAt(0) + 1, "a".charCodeAt(0) + 2]
    )
    assert.deepStrictEqual(Governor.withImplicit([]), [
      { id: "do_nothing", order: 0, kind: "do_nothing", legal: true, cost: 0, risk: 0 }
    ])
  })
})
