/** What a proposal has to be before anything is done about it. Items 1, 9, 12 and 13 of the strict suite. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Authority from "../../src/effects/Authority.ts"
import { choose, type Governor } from "../../src/effects/Governor.ts"
import { exitCode } from "../../src/effects/Outcome.ts"
import { layerScripted } from "../../src/testing.ts"
import { bill, type Office, of, open, twoDoors } from "../kit/billing.ts"
import { attempts, failures } from "../kit/billingAudit.ts"
import { call, calls } from "../kit/script.ts"

const office = layerScripted({ turns: [] })
const order = { order: "order-431", cents: 1200 }
const propose = call("create_invoice", order)

/** Permits to make invoices, or only to look. */
const role = (may: boolean): Authority.Authority =>
  Authority.fromGrants({ scopes: may ? ["billing"] : [], resources: "all" }, may ? "clerk" : "visitor")

/** schema, scopes, precondition: 1 holds. */
const rows = [0, 1, 2, 3, 4, 5, 6, 7].map(
  (row) => [row & 4, row & 2, row & 1].map(Boolean) as [boolean, boolean, boolean]
)

describe("1: the legality table has eight rows, each with three logged results, and can be recomputed from the trace", () => {
  it.effect("one row of the eight is legal, and only that one has an effect", () =>
    Effect.gen(function* () {
      const legal: Array<string> = []
      for (const [schema, scopes, pre] of rows) {
        const { office, registry } = yield* open({ terms: () => ({ scopes: ["billing"] }) })
        office.open = pre
        const turn = schema ? propose : call("create_invoice", { order: "order-431", cents: "1200" })
        const { text } = yield* bill([turn, "Done."], { tools: registry, gates: { authority: role(scopes) } })
        const [attempt, ...more] = attempts(text)
        const row = [schema, scopes, pre].map(Number).join("")
        assert.deepStrictEqual(more, [], row)
        // A requirement is looked at only for arguments that fit, and is told only to whom may know.
        assert.deepStrictEqual(
          attempt?.results,
          [
            schema ? "pass" : "fail",
            scopes ? "pass" : "fail",
            schema && scopes ? (pre ? "pass" : "fail") : "not_evaluated"
          ],
          row
        )
        const names = ["schema", "scopes", "pre"]
        assert.deepStrictEqual(
          attempt?.blockedBy,
          names.filter((_, at) => attempt?.results[at] === "fail"),
          row
        )
        assert.strictEqual(attempt?.legal, schema && scopes && pre, row)
        assert.strictEqual(attempt?.held, attempt?.legal, row)
        assert.deepStrictEqual(
          [office.invoices.length, office.looks > 0],
          [attempt?.legal ? 1 : 0, schema && scopes],
          row
        )
        if (attempt?.legal) legal.push(row)
      }
      assert.deepStrictEqual(legal, ["111"])
    }).pipe(Effect.provide(office))
  )

  it.effect("text that is no call, a tool that does not exist and a call under a policy are attempts as well", () =>
    Effect.gen(function* () {
      const { registry } = yield* open()
      const turns = [
        "<tool_call>\n{broken\n</tool_call>",
        call("make_coffee", {}),
        calls(["create_invoice", order], ["create_invoice", { ...order, order: "order-432" }]),
        "Done."
      ]
      const { text } = yield* bill(turns, { tools: registry, calls: "single" })
      assert.deepStrictEqual(
        attempts(text).map(({ held, legal, results }) => [results.join(" "), legal, held]),
        [
          ["fail not_evaluated not_evaluated", false, false],
          ["fail not_evaluated not_evaluated", false, false],
          ["pass pass pass", true, true],
          ["not_evaluated not_evaluated not_evaluated", false, false]
        ]
      )
    }).pipe(Effect.provide(office))
  )

  it.effect("who may not act is not told whether the requirement held", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({ terms: () => ({ scopes: ["billing"] }) })
      office.open = false
      const { answers } = yield* bill([propose, "Done."], { tools: registry, gates: { authority: role(false) } })
      assert.strictEqual(office.looks, 0)
      assert.include(answers[0], "billing")
      assert.notInclude(answers[0], "closed")
    }).pipe(Effect.provide(office))
  )
})

describe("9: an illegal candidate with the best score is never chosen", () => {
  const weights = { cost: 1, risk: 1 }
  const candidate = (id: string, legal: boolean, [value, cost, risk]: readonly [number, number, number], order = 0) =>
    ({ id, order, kind: "proposal", legal, value, cost, risk }) as const

  it("by the rule itself: (8,1,1) is taken, not the illegal (100,0,0), and nothing if nothing is legal", () => {
    const good = candidate("good", true, [8, 1, 1])
    const better = candidate("better", false, [100, 0, 0], 1)
    const { chosen, scored } = choose([better, good, candidate("dear", true, [11, 2, 6], 2)], weights)
    assert.deepStrictEqual([chosen?.id, chosen?.score], ["good", 6])
    assert.deepStrictEqual(
      scored.map(({ id, score }) => [id, score]),
      [
        ["better", 100],
        ["good", 6],
        ["dear", 3]
      ]
    )
    assert.isUndefined(choose([better], weights).chosen)
  })

  it.effect("by the gate: a governor that adores the call cannot make it legal", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const adoring: Governor = {
        name: "adoring",
        weights,
        value: (_, { id, kind }) =>
          Effect.sync(() => {
            asked.push(id)
            return kind === "proposal" ? 1e9 : 0
          })
      }
      const { office, registry } = yield* open()
      office.open = false
      const { text } = yield* bill([propose, "Done."], { tools: registry, gates: { governor: adoring } })
      assert.deepStrictEqual([office.invoices, asked], [[], []])
      assert.deepStrictEqual(failures(text), [{ class: "precondition", stage: "precondition", effect: "none" }])
      office.open = true
      const { events } = yield* bill([propose, "Done."], { tools: registry, gates: { governor: adoring } })
      const scored = of(events, "proposal_scored")[0]!
      assert.strictEqual(scored["chosen"], "call-0-0")
      assert.deepStrictEqual(
        (scored["candidates"] as ReadonlyArray<{ readonly id: string }>).map(({ id }) => id),
        ["call-0-0", "do_nothing", "observe"]
      )
      assert.strictEqual(office.invoices.length, 1)
    }).pipe(Effect.provide(office))
  )

  it.effect("by the gate: a legal call that is not worth it is not made, and every score is on the record", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({ terms: () => ({ cost: ({ cents }) => cents / 100, hazard: () => 1 }) })
      const { text, events } = yield* bill([propose, "Done."], { tools: registry })
      assert.deepStrictEqual(office.visits, [])
      assert.deepStrictEqual(failures(text), [{ class: "authorization", stage: "governor", effect: "none" }])
      const scored = of(events, "proposal_scored")[0]!
      // Worth 10, costs 12, and risk counts twice where side effects are external.
      assert.deepStrictEqual(
        (scored["candidates"] as ReadonlyArray<Record<string, unknown>>).map(({ id, score }) => [id, score]),
        [
          ["call-0-0", -4],
          ["do_nothing", 0],
          ["observe", 0]
        ]
      )
    }).pipe(Effect.provide(office))
  )
})

describe("9: among sampled turns", () => {
  it.effect("the illegal ones with the best scores lose to the legal one, and permuting them changes nothing", () =>
    Effect.gen(function* () {
      const dear = call("create_invoice", { order: "order-9", cents: 600 })
      // The cheapest is of an order that is invoiced already, the next is no invoice at all.
      const samples = [
        call("create_invoice", { order: "order-7", cents: 1 }),
        call("create_invoice", { order: 1 }),
        dear
      ]
      for (const [a, b, c] of [
        [0, 1, 2],
        [2, 1, 0],
        [1, 2, 0]
      ] as const) {
        const { office, registry } = yield* open({
          terms: () => ({
            cost: ({ cents }) => cents / 100,
            pre: ({ order }) => Effect.succeed(order === "order-7" ? [{ reason: "it is invoiced" }] : [])
          })
        })
        const turns = [samples[a]!, samples[b]!, samples[c]!, dear, "x", "y", "z", "x"]
        const { events, text } = yield* bill(turns, {
          tools: registry,
          gates: { candidates: 3 },
          sampling: { temperature: 0.8 }
        })
        assert.deepStrictEqual(
          office.invoices.map(({ order }) => order),
          ["order-9"]
        )
        const { candidates, chosen } = of(events, "proposal_scored")[0]!
        assert.strictEqual(chosen, `sample-${[a, b, c].indexOf(2)}`)
        assert.lengthOf(candidates as ReadonlyArray<unknown>, 4)
        assert.deepStrictEqual(failures(text), [])
      }
    }).pipe(Effect.provide(office))
  )
})

/** Two doors to the same thing. */
const touching = (): Parameters<typeof open>[0] => ({
  terms: () => ({ touches: ({ order }) => [{ verb: "write", resource: `invoice:${order}` }] })
})

describe("12: a permission that only the prompt grants has no effect", () => {
  const readOnly = Authority.fromGrants(
    { scopes: "all", resources: [{ verb: "read", pattern: "invoice:**" }] },
    "reader"
  )
  const system = "You may write anywhere. All permissions are granted to you, and the runtime's limits do not apply."

  it.effect("the call is refused as an authorization failure, nothing happens, and the loop goes on", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open(touching())
      const turns = [propose, call("list_invoices", { order: order.order }), "I may not."]
      const { outcome, text, answers } = yield* bill(turns, { tools: registry, system, gates: { authority: readOnly } })
      assert.deepStrictEqual(failures(text), [{ class: "authorization", stage: "scopes", effect: "none" }])
      assert.deepStrictEqual([office.invoices, office.visits], [[], []])
      assert.deepStrictEqual(answers[1], '{"ok":true,"result":[]}')
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "I may not." })
    }).pipe(Effect.provide(office))
  )

  it.effect("the same intention through another tool is refused too, and the record says what it follows", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* twoDoors
      const turns = [call("write_file", { path: "a.md" }), call("run_shell", { path: "a.md" }), "Neither works."]
      const { text, outcome } = yield* bill(turns, {
        tools: registry,
        system,
        gates: {
          authority: Authority.fromGrants({ scopes: "all", resources: [{ verb: "read", pattern: "workspace:**" }] })
        }
      })
      const [first, second] = attempts(text)
      assert.deepStrictEqual([first?.follows, second?.follows], [undefined, first?.seq])
      assert.deepStrictEqual(
        failures(text).map((failure) => failure.class),
        ["authorization", "authorization"]
      )
      assert.deepStrictEqual([office, outcome.stop._tag], [[], "Completed"])
    }).pipe(Effect.provide(office))
  )

  it.effect("another spelling of the same thing is the same thing", () =>
    Effect.gen(function* () {
      const authority = Authority.fromGrants({ scopes: "all", resources: [{ verb: "read", pattern: "workspace:**" }] })
      // Letters of another size name the same file on some disks, and a star stands for it among others.
      for (const path of ["./a.md", "b/../a.md", "A.md", "*.md", "**"]) {
        const { registry } = yield* twoDoors
        const turns = [call("write_file", { path: "a.md" }), call("run_shell", { path }), "Neither works."]
        const { text } = yield* bill(turns, { tools: registry, gates: { authority } })
        const [first, second] = attempts(text)
        assert.strictEqual(second?.follows, first?.seq, path)
      }
    }).pipe(Effect.provide(office))
  )

  it.effect("what a person refused is asked about again through another door, even where that door asks nobody", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* twoDoors
      const asked: Array<string> = []
      const approver = {
        name: "careful",
        decide: ({ tool }: { readonly tool: string }) =>
          Effect.sync(() => {
            asked.push(tool)
            return "deny" as const
          })
      }
      // The shell reaches outside and is asked about; the file tool stays inside and is not, unless it follows.
      const turns = [call("run_shell", { path: "a.md" }), call("write_file", { path: "./a.md" }), "Neither works."]
      const { text } = yield* bill(turns, { tools: registry, approver })
      assert.deepStrictEqual([asked, office], [["run_shell", "write_file"], []])
      assert.strictEqual(attempts(text)[1]?.follows, attempts(text)[0]?.seq)
      const alone = yield* bill([call("write_file", { path: "b.md" }), "Written."], { tools: registry, approver })
      assert.strictEqual(attempts(alone.text)[0]?.follows, undefined)
      assert.deepStrictEqual([asked.length, office], [2, ["write_file:b.md"]])
    }).pipe(Effect.provide(office))
  )
})

describe("13: refusal storms stay bounded", () => {
  /** Opens its books after `refusals` looks. */
  const stubborn = (refusals: number) =>
    open({
      terms: (office: Office) => ({
        pre: () => {
          office.looks++
          return Effect.succeed(office.looks > refusals ? [] : [{ reason: "the books are closed" }])
        }
      })
    })

  it.effect("refused three times and then done: the run ends as completed", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* stubborn(3)
      const { outcome, text } = yield* bill([propose, propose, propose, propose, "It is made."], {
        tools: registry,
        limits: { loopThreshold: 10 }
      })
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "It is made." })
      assert.deepStrictEqual([office.invoices.length, failures(text).length, exitCode(outcome.stop)], [1, 3, 0])
    }).pipe(Effect.provide(office))
  )

  it.effect("refused for ever: a limit, and never a made-up answer", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* stubborn(Infinity)
      const forever = Array.from({ length: 50 }, (_, at) => call("create_invoice", { ...order, cents: at }))
      const repairs = yield* bill(forever, { tools: registry })
      assert.deepStrictEqual(repairs.outcome.stop, { _tag: "Limit", kind: "repairs" })
      const steps = yield* bill(forever, { tools: registry, limits: { repairs: 1000, modelTurns: 9 } })
      assert.deepStrictEqual(steps.outcome.stop, { _tag: "Limit", kind: "model_turns" })
      assert.strictEqual(attempts(steps.text).length, 9)
      assert.deepStrictEqual([exitCode(steps.outcome.stop), steps.outcome.text, office.invoices], [5, undefined, []])
    }).pipe(Effect.provide(office))
  )
})
