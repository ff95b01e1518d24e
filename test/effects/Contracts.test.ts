import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as Authority from "../../src/effects/Authority.ts"
import type { Approver } from "../../src/effects/Policy.ts"
import * as Profile from "../../src/effects/Profile.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import * as Contract from "../../src/tools/Contract.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { ToolError } from "../../src/tools/ToolError.ts"
import { bill, byOrder, make, type Office, type Opening, of, open, silent, unwound } from "../kit/billing.ts"
import { attempts, failures } from "../kit/billingAudit.ts"
import { newer } from "../kit/billingToolkit.ts"
import { temporary } from "../kit/crash.ts"
import { call, calls } from "../kit/script.ts"

const services = layerScripted({ turns: [] })
/** The same with threads, whose tools have the newer contract. */
const threaded = ToolPool.layerPiscina({
  module: new URL("../kit/billingToolkit.ts", import.meta.url),
  threadsPerTool: 2
}).pipe(Layer.provideMerge(services))

const order = { order: "order-431", cents: 1200 }
const propose = call("create_invoice", order)

const unready = { class: "precondition", stage: "precondition", effect: "none" }

/** Changes the world while it is asked. */
const slow = (office: Office): Approver => ({
  name: "slow",
  decide: () =>
    Effect.sync(() => {
      office.open = false
      return "allow"
    })
})

describe("a precondition is looked at again, next to the effect, after the world had time to move", () => {
  it.effect("after somebody was asked", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open()
      const { events, text } = yield* bill([propose, "Hm."], { tools: registry, approver: slow(office) })
      assert.deepStrictEqual(attempts(text)[0]?.results, ["pass", "pass", "pass"])
      assert.deepStrictEqual(
        of(events, "precondition_checked").map(({ after, pre }) => [after, pre]),
        [["approval", "fail"]]
      )
      assert.deepStrictEqual([failures(text), office.visits, of(events, "effect_intent")], [[unready], [], []])
    }).pipe(Effect.provide(services))
  )

  it.effect("after an earlier call of the turn", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        act: (office, { order }) =>
          Effect.sync(() => {
            office.open = false
            office.invoices.push({ id: "INV-1", order, cents: 1, key: "" })
            return { invoice: "INV-1" }
          })
      })
      const turn = calls(["create_invoice", order], ["create_invoice", { ...order, order: "order-432" }])
      // Nobody is asked, so that the calls follow one another at once.
      const gates = { profile: Profile.workspace }
      const { events, text } = yield* bill([turn, "Hm."], { tools: registry, gates })
      assert.deepStrictEqual(
        attempts(text).map(({ results }) => results.join()),
        ["pass,pass,pass", "pass,pass,pass"]
      )
      assert.deepStrictEqual(
        of(events, "precondition_checked").map(({ after, call, pre }) => [call, after, pre]),
        [["call-0-1", "calls", "fail"]]
      )
      assert.deepStrictEqual([failures(text), office.visits.length], [[unready], 1])
    }).pipe(Effect.provide(services))
  )

  it.live("after waiting for a thread", () =>
    Effect.gen(function* () {
      const workspace = yield* temporary("writ-queue-")
      const { office, registry } = yield* open(newer)
      const one = (name: string) =>
        bill([call("create_invoice", { order: name, cents: 1 }), "Hm."], { tools: registry, settings: { workspace } })
      const busy = yield* Effect.forkChild(Effect.all([one("a"), one("b")], { concurrency: 2 }))
      while (!existsSync(join(workspace, "a")) || !existsSync(join(workspace, "b"))) yield* Effect.sleep(5)
      const waiting = yield* Effect.forkChild(one("c"))
      const traces = yield* MemoryTraces
      const started = () =>
        traces
          .runs()
          .some(
            (run) =>
              traces.text(run).split("tool_execution_started").length === 2 && traces.text(run).includes('"order":"c"')
          )
      while (!started()) yield* Effect.sleep(5)
      office.open = false
      writeFileSync(join(workspace, "go"), "")
      const { events, text } = yield* Fiber.join(waiting)
      yield* Fiber.join(busy)
      assert.deepStrictEqual(
        of(events, "precondition_checked").map(({ after, pre }) => [after, pre]),
        [
          ["approval", "pass"],
          ["queue", "fail"]
        ]
      )
      assert.deepStrictEqual([failures(text), existsSync(join(workspace, "c"))], [[unready], false])
    }).pipe(Effect.provide(threaded))
  )

  it.effect("after the wait before another try of a tool that only looks", () =>
    Effect.gen(function* () {
      let open = true
      let visits = 0
      const Read = Contract.declare(
        Tool.make("read", { description: "Reads.", parameters: Schema.Struct({}), success: Schema.String }),
        {
          risk: "read",
          retry: "safe",
          pre: () => Effect.succeed(open ? [] : [{ reason: "closed" }])
        }
      )
      const registry = yield* Registry.fromToolkit(Toolkit.make(Read), {
        read: () =>
          Effect.suspend(() => {
            visits++
            open = false
            return Effect.fail(new ToolError({ kind: "unavailable", message: "no answer" }))
          })
      })
      const { events, text } = yield* unwound(
        bill([call("read", {}), "Hm."], { tools: registry, gates: { profile: Profile.exploratory } })
      )
      assert.deepStrictEqual(
        of(events, "precondition_checked").map(({ after, pre }) => [after, pre]),
        [["backoff", "fail"]]
      )
      assert.deepStrictEqual([failures(text), visits], [[unready], 1])
    }).pipe(Effect.provide(services))
  )
})

describe("a contract that is not the advertised one", () => {
  it.live("is refused where the tool would run, and the run goes on", () =>
    Effect.gen(function* () {
      const workspace = yield* temporary("writ-stale-")
      const { registry } = yield* open()
      const { answers, outcome, text } = yield* bill([propose, "It is stale."], {
        tools: registry,
        settings: { workspace }
      })
      assert.include(answers[0], '"kind":"stale_contract"')
      assert.deepStrictEqual(failures(text), [{ class: "stale_contract", stage: "execution", effect: "none" }])
      assert.deepStrictEqual([outcome.text, existsSync(join(workspace, order.order))], ["It is stale.", false])
    }).pipe(Effect.provide(threaded))
  )
})

const hostile: ReadonlyArray<JsonObject> = [
  order,
  { order: "order-431", cents: 1200.0 },
  { order: "order-431", cents: "1200" },
  { order: "order-431", cents: 1.5 },
  { order: "order-431" },
  { cents: 1200 },
  {},
  { ...order, note: "" },
  { ...order, __proto__x: 1 },
  { order: ["order-431"], cents: 1200 },
  { order: null, cents: null },
  { order: "", cents: -1 },
  { order: "\u0000\ud83d\ude00", cents: 0 }
]

describe("a grammar narrows what is written, and decides nothing", () => {
  it.effect("the same calls are accepted and refused with it and without it, and by the check alone", () =>
    Effect.gen(function* () {
      const decided = (constrained: boolean) =>
        Effect.forEach(hostile, (args) =>
          Effect.gen(function* () {
            const { registry } = yield* open()
            const { text } = yield* bill([call("create_invoice", args), "Hm."], { tools: registry, constrained })
            return attempts(text)[0]?.results[0]
          })
        )
      const { registry } = yield* open()
      const checked = hostile.map((args) =>
        Result.isSuccess(registry.get("create_invoice")!.check(args)) ? "pass" : "fail"
      )
      assert.deepStrictEqual(yield* decided(true), checked)
      assert.deepStrictEqual(yield* decided(false), checked)
      assert.deepStrictEqual(checked.filter((result) => result === "pass").length, 4)
    }).pipe(Effect.provide(services))
  )
})

describe("what is wrong with a proposal", () => {
  const exported = ["render", "parse"]
  const Rename = Contract.declare(
    Tool.make("rename", {
      description: "Renames an exported symbol.",
      parameters: Schema.Struct({
        symbol: Schema.String.check(
          Schema.makeFilter((name) => (exported.includes(name) ? undefined : `${name} is not exported`))
        ),
        to: Schema.String,
        line: Schema.Int
      }),
      success: Schema.String
    }),
    {
      risk: "local-write",
      ledger: "atomic",
      retry: "safe",
      reversible: true,
      evidence: { source: "self", describes: "its own answer" },
      post: "result"
    }
  )

  it.effect("is said claim by claim, what it means beside how it is formed", () =>
    Effect.gen(function* () {
      const registry = yield* Registry.fromToolkit(Toolkit.make(Rename), { rename: () => Effect.succeed("renamed") })
      const turn = call("rename", { symbol: "rendr", line: "7", force: true, dry: false })
      const { answers, events } = yield* bill([turn, "Hm."], { tools: registry })
      const { errors } = JSON.parse(answers[0] ?? "{}") as {
        readonly errors: ReadonlyArray<{ readonly path: string; readonly reason: string }>
      }
      assert.deepStrictEqual(
        errors.map(({ path, reason }) => `${path}: ${reason}`).sort(),
        [
          "dry: unknown field",
          "force: unknown field",
          "line: expected integer, got string",
          "symbol: rendr is not exported",
          "to: missing required argument"
        ].sort()
      )
      assert.lengthOf(of(events, "tool_call_rejected")[0]?.["errors"] as ReadonlyArray<unknown>, 5)
    }).pipe(Effect.provide(services))
  )

  it.effect("has one class however often it is said: amounts below zero, and amounts in quotes", () =>
    Effect.gen(function* () {
      const positive = {
        terms: () => ({
          pre: ({ cents }: { readonly cents: number }) =>
            Effect.succeed(cents > 0 ? [] : [{ path: "cents", reason: "not above 0" }])
        })
      }
      for (const [cents, expected] of [
        [-1, "precondition"],
        [0, "precondition"],
        ["5", "schema"],
        ["-1", "schema"]
      ] as const) {
        const { registry } = yield* open(positive)
        const { text } = yield* bill([call("create_invoice", { order: "a", cents }), "Hm."], { tools: registry })
        assert.deepStrictEqual(failures(text)[0]?.class, expected)
      }
    }).pipe(Effect.provide(services))
  )
})

describe("cost and harm follow from the arguments", () => {
  it.effect("and are on the record of each call", () =>
    Effect.gen(function* () {
      const { registry } = yield* open({
        terms: () => ({ cost: ({ cents }) => cents / 1000, hazard: ({ cents }) => cents / 500 })
      })
      const turn = calls(["create_invoice", order], ["create_invoice", { order: "order-432", cents: 500 }])
      const { events } = yield* bill([turn, "Done."], { tools: registry })
      const proposed = of(events, "proposal_scored").map(({ candidates }) => {
        const { cost, risk } = (candidates as ReadonlyArray<Record<string, unknown>>)[0]!
        return [cost, risk]
      })
      assert.deepStrictEqual(proposed, [
        [1.2, 2.4],
        [0.5, 1]
      ])
    }).pipe(Effect.provide(services))
  )
})

describe("what was permitted and is no more", () => {
  it.effect("revoked while the run goes on: the next call is refused", () =>
    Effect.gen(function* () {
      const { authority, revoke } = yield* Authority.revocable(Authority.everything)
      const { office, registry } = yield* open({
        act: (office, { cents, order }, _, key) =>
          Effect.map(revoke, () => ({ invoice: `INV-${office.invoices.push({ id: "INV-1", order, cents, key })}` }))
      })
      const turns = [propose, call("create_invoice", { ...order, order: "order-432" }), "Hm."]
      const { text } = yield* bill(turns, { tools: registry, gates: { authority } })
      assert.deepStrictEqual(
        attempts(text).map(({ results }) => results[1]),
        ["pass", "fail"]
      )
      assert.deepStrictEqual([office.visits.length, failures(text)[0]?.class], [1, "authorization"])
    }).pipe(Effect.provide(services))
  )
})

describe("one tool under two profiles", () => {
  const asked = (seen: Array<string>): Approver => ({
    name: "asked",
    decide: ({ tool }) =>
      Effect.sync(() => {
        seen.push(tool)
        return "allow"
      })
  })

  const under = (profile: Profile.TaskProfile | undefined, opening: Opening = {}) =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const { office, registry } = yield* open(opening)
      const { events, outcome } = yield* unwound(
        bill([propose, "Done."], {
          tools: registry,
          approver: asked(seen),
          ...(profile === undefined ? {} : { gates: { profile } })
        })
      )
      const gates = of(events, "provenance")[0]?.["gates"] as { readonly profile: unknown }
      return { asked: seen.length, stop: outcome.stop._tag, visits: office.visits.length, profile: gates.profile }
    })

  it.effect("passes different gates, and the profile in force is in the provenance", () =>
    Effect.gen(function* () {
      const { exploratory, strict } = Profile
      assert.deepStrictEqual(yield* under(exploratory), {
        asked: 0,
        stop: "Completed",
        visits: 1,
        profile: exploratory
      })
      assert.deepStrictEqual(yield* under(strict), { asked: 1, stop: "Escalated", visits: 1, profile: strict })
      assert.deepStrictEqual(yield* under(undefined), {
        asked: 1,
        stop: "Completed",
        visits: 1,
        profile: Profile.cautious
      })
    }).pipe(Effect.provide(services))
  )

  it.effect("a lost answer is asked for again in one task, and never in the other", () =>
    Effect.gen(function* () {
      const lost: Opening = { act: () => Effect.fail(silent()) }
      assert.deepInclude(yield* under(undefined, lost), { stop: "Escalated", visits: 4 })
      assert.deepInclude(yield* under(Profile.strict, lost), { stop: "Escalated", visits: 1 })
    }).pipe(Effect.provide(services))
  )
})

type Terms = ReturnType<NonNullable<Opening["terms"]>>

const bug = () => {
  throw new Error("a bug in the contract")
}

const faulty: ReadonlyArray<readonly [name: string, stage: string, terms: Terms]> = [
  ["a cost that is no number", "governor", { cost: () => Number.NaN }],
  ["a cost below zero", "governor", { cost: () => -1 }],
  ["a cost that throws", "governor", { cost: bug }],
  ["a cost in quotes", "governor", { cost: () => "1" as unknown as number }],
  ["a harm below zero", "governor", { hazard: () => -0.5 }],
  ["a harm that throws", "governor", { hazard: bug }],
  ["permissions that throw", "scopes", { needs: bug }],
  ["resources that throw", "scopes", { touches: bug }],
  ["a key that throws", "ledger", { key: bug }],
  ["a key that is no text", "ledger", { key: () => 7 as unknown as string }],
  ["a precondition that dies", "precondition", { pre: () => Effect.die(new Error("a bug in the contract")) }],
  ["a precondition that throws", "precondition", { pre: bug }],
  ["a precondition that never answers", "precondition", { pre: () => Effect.never }]
]

describe("a contract whose own terms fail", () => {
  for (const [name, stage, terms] of faulty) {
    it.effect(`blocks the call: ${name}`, () =>
      Effect.gen(function* () {
        const { office, registry } = yield* open({ terms: () => terms })
        const { answers, outcome, text } = yield* unwound(bill([propose, "Hm."], { tools: registry }))
        assert.deepStrictEqual(failures(text), [{ class: "contract_fault", stage, effect: "none" }])
        assert.include(answers[0], '"kind":"contract_fault"')
        assert.deepStrictEqual([office.visits, outcome.text], [[], "Hm."])
      }).pipe(Effect.provide(services))
    )
  }

  for (const [name, post] of [
    ["dies", () => Effect.die(new Error("a bug in the contract"))],
    ["throws", bug],
    ["never answers", () => Effect.never]
  ] as const) {
    it.effect(`leaves open what became of a call whose postcondition ${name}`, () =>
      Effect.gen(function* () {
        const { events, outcome, text, visits } = yield* Effect.gen(function* () {
          const { office, registry } = yield* open({ terms: () => ({ ...byOrder, post }) })
          const billed = yield* unwound(bill([propose], { tools: registry }))
          return { ...billed, visits: office.visits.length }
        })
        assert.deepStrictEqual(failures(text), [{ class: "contract_fault", stage: "postcondition", effect: "unknown" }])
        assert.deepStrictEqual([visits, outcome.stop._tag], [1, "Escalated"])
        assert.deepStrictEqual(
          of(events, "effect_settled").map(({ status }) => status),
          ["ambiguous"]
        )
      }).pipe(Effect.provide(services))
    )
  }
})

describe("an effect that nobody knows of", () => {
  it.effect("what a person found out stays on the record when it is tried anew", () =>
    Effect.gen(function* () {
      const { office, registry } = yield* open({
        terms: () => ({ ...byOrder, retry: "never" }),
        act: (office, order, visit, key) =>
          visit === 1 ? Effect.fail(silent()) : Effect.succeed(make(office, order, key))
      })
      yield* bill([propose], { tools: registry })
      const ledger = yield* EffectLedger
      const [unknown] = yield* ledger.list()
      const answer = '{"ok":false,"kind":"not_executed","errors":[]}'
      const outcome = { ok: false, answer, kind: "not_executed", effect: "none", state: "failed" } as const
      yield* ledger.resolve(unknown!.entry.key, { outcome, by: "ann", reason: "the books are empty" })
      const { answers } = yield* bill([propose, "Done."], { tools: registry })
      assert.deepStrictEqual([answers, office.invoices.length], [['{"ok":true,"result":{"invoice":"INV-1"}}'], 1])
      const [settled] = yield* ledger.list()
      assert.strictEqual(settled?.standing, "settled")
      assert.include(JSON.stringify(settled), "the books are empty")
    }).pipe(Effect.provide(services))
  )
})
