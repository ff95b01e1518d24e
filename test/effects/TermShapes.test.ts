import { assert, describe, it } from "@effect/vitest"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { misshapen, shapes } from "../../src/effects/legality/TermShapes.ts"
import { layerScripted } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { broken, holds, pending } from "../../src/tools/Terms.ts"
import { bill, open, unwound } from "../kit/billing.ts"
import { failures } from "../kit/billingAudit.ts"
import { acts } from "../kit/contracts.ts"
import { call } from "../kit/script.ts"

const services = layerScripted({ turns: [] })
const propose = call("create_invoice", { order: "a", cents: 1 })

const circle: Record<string, unknown> = {}
circle["self"] = circle

/** What no term may answer; `""` and `[]` are answers of some. */
const nonsense = [undefined, null, 3, true, {}, [undefined], [3], [{}], new Map(), Symbol("s"), circle, [{ reason: 3 }]]

const revoked = (): object => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

describe("what a term answers", () => {
  it("is an answer where it has the shape of one", () => {
    const wrong = [
      misshapen("scopes", ["a"]),
      misshapen("touches", [{ verb: "write", resource: "workspace:a" }]),
      misshapen("precondition", [{ reason: "closed" }, { path: "order", reason: "closed" }]),
      misshapen("preview", ""),
      ...[holds(), holds({ a: 1 }), pending(), broken("no")].map((verdict) => misshapen("postcondition", verdict)),
      ...["Present", "Absent", "Unclear"].map((_tag) => misshapen("probe", { _tag }))
    ]
    assert.deepStrictEqual([...new Set(wrong)], [undefined])
  })

  it("is none where it has another, is not JSON where it has to be, or cannot even be looked at", () => {
    for (const name of Object.keys(shapes) as ReadonlyArray<keyof typeof shapes>) {
      for (const value of [...nonsense, revoked()]) assert.isString(misshapen(name, value), name)
    }
    for (const evidence of [circle, 1n, () => 1]) {
      assert.isString(misshapen("postcondition", { _tag: "Holds", evidence }))
    }
    assert.isString(misshapen("postcondition", { _tag: "Yes" }))
    assert.isString(misshapen("touches", [{ verb: "reed", resource: "workspace:a" }]))
  })
})

describe("a contract that answers nonsense", () => {
  for (const [term, stage] of [
    ["needs", "scopes"],
    ["touches", "scopes"],
    ["pre", "precondition"]
  ] as const) {
    it.effect(`blocks the call, and the run goes on: ${term}`, () =>
      Effect.gen(function* () {
        for (const value of [...nonsense, "x"]) {
          const said = () => (term === "pre" ? Effect.succeed(value) : value)
          const { office, registry } = yield* open({ terms: () => ({ [term]: said }) as never })
          const { outcome, text } = yield* unwound(bill([propose, "Hm."], { tools: registry }))
          assert.deepStrictEqual(failures(text), [{ class: "contract_fault", stage, effect: "none" }])
          assert.deepStrictEqual([office.visits, outcome.text], [[], "Hm."])
        }
      }).pipe(Effect.provide(services))
    )
  }

  it.effect("leaves open what became of a call whose postcondition did", () =>
    Effect.gen(function* () {
      for (const value of [...nonsense, "x", holds(1n as never)]) {
        const { registry } = yield* open({ terms: () => ({ post: () => Effect.succeed(value) }) as never })
        const { outcome, text } = yield* unwound(bill([propose], { tools: registry }))
        assert.deepStrictEqual(failures(text), [{ class: "contract_fault", stage: "postcondition", effect: "unknown" }])
        assert.strictEqual(outcome.stop._tag, "Escalated")
      }
    }).pipe(Effect.provide(services))
  )
})

const Pay = Tool.make("pay", {
  description: "Pays.",
  parameters: Schema.Struct({ what: Schema.Unknown }),
  success: Schema.String
})

const told = { what: { cents: 1 } }

// biome-ignore lint/suspicious/noExplicitAny: it does what its type forbids
const spoil = ({ what }: any): void => {
  what.cents = 1_000_000
}

describe("arguments that were decided about", () => {
  it.effect("are what is performed, whatever terms and approvers do to what they are shown", () =>
    Effect.gen(function* () {
      const paid: Array<unknown> = []
      const spoiling =
        <A>(answer: A) =>
        (params: unknown): A => {
          spoil(params)
          return answer
        }
      const tool = acts("external", Pay, {
        needs: spoiling([]),
        touches: spoiling([]),
        key: spoiling("pay:1"),
        cost: spoiling(1),
        hazard: spoiling(0),
        pre: spoiling(Effect.succeed([])),
        post: spoiling(Effect.succeed(holds())),
        preview: spoiling(Effect.succeed("pays"))
      })
      const registry = yield* Registry.fromToolkit(Toolkit.make(tool), {
        pay: ({ what }) =>
          Effect.sync(() => {
            paid.push(structuredClone(what))
            return "paid"
          })
      })
      const approver = {
        name: "ann",
        decide: ({ arguments: shown }: { readonly arguments: unknown }) =>
          Effect.sync(() => {
            assert.deepStrictEqual(shown, told)
            spoil(shown)
            return "allow" as const
          })
      }
      yield* unwound(bill([call("pay", told), "Paid."], { tools: registry, approver }))
      assert.deepStrictEqual(paid, [told.what])
    }).pipe(Effect.provide(services))
  )
})
