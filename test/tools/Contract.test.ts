import { assert, describe, it } from "@effect/vitest"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Contract from "../../src/tools/Contract.ts"
import { execute } from "../../src/tools/Execution.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { holds } from "../../src/tools/Terms.ts"

describe("contracts at registration", () => {
  const tool = Tool.make("charge", {
    description: "Charges.",
    parameters: Schema.Struct({ order: Schema.String }),
    success: Schema.String
  })
  const whole = {
    risk: "external",
    ledger: "external",
    retry: "safe",
    reversible: false,
    evidence: { source: "sensor", describes: "the invoice in the billing system" },
    post: () => Effect.succeed(holds())
  } as const
  const handler = { charge: () => Effect.succeed("ok") }
  const refusal = (said: Partial<typeof whole>) =>
    Effect.map(
      Effect.flip(Registry.fromToolkit(Toolkit.make(Contract.declare(tool, said as typeof whole)), handler)),
      ({ message }) => message
    )

  it.effect("name every term that a tool which acts owes and does not state", () =>
    Effect.gen(function* () {
      for (const term of ["ledger", "retry", "reversible", "evidence", "post"] as const) {
        const { [term]: _, ...said } = whole
        assert.strictEqual(yield* refusal(said), `its contract says risk "external" and lacks ${term}`)
      }
      const bare = Registry.fromToolkit(Toolkit.make(tool.annotate(Contract.Risk, "local-write")), handler)
      assert.match((yield* Effect.flip(bare)).message, /lacks ledger, retry, reversible, evidence, post$/)
      assert.isDefined(
        (yield* Registry.fromToolkit(Toolkit.make(Contract.declare(tool, whole)), handler)).get("charge")
      )
    })
  )

  it.effect("refuse what contradicts itself, in words", () =>
    Effect.gen(function* () {
      assert.match(yield* refusal({ ...whole, ledger: "none" as never }), /retry "safe" needs a ledger mode/)
      const self = { source: "self", describes: "its answer" } as never
      assert.match(yield* refusal({ ...whole, evidence: self }), /evidence other than the tool's own word/)
      assert.match(yield* refusal({ ...whole, ledger: "observe" as never }), /"observe" needs a probe/)
      const extra = { keyParameter: "order", ledger: "atomic" } as never
      assert.match(yield* refusal({ ...whole, ...(extra as object) }), /a key parameter is for ledger mode "external"/)
      assert.match(yield* refusal({ ...whole, ...({ version: 0 } as object) }), /its version is a whole number from 1/)
      const settle = { settle: { everyMillis: 0, withinMillis: 5 } } as object
      assert.match(yield* refusal({ ...whole, ...settle }), /its settle rule needs/)
    })
  )

  it.effect("take a tool that says nothing for the most dangerous kind", () =>
    Effect.gen(function* () {
      const { contract } = (yield* Registry.fromToolkit(Toolkit.make(tool), handler)).get("charge")!
      assert.deepInclude(contract, {
        risk: "external",
        ledger: "none",
        retry: "never",
        reversible: false,
        stated: false
      })
    })
  )

  it.effect("hide the key parameter from the model, refuse it when sent, and fill it in for the tool", () =>
    Effect.gen(function* () {
      const keyed = Tool.make("charge", {
        description: "Charges.",
        parameters: Schema.Struct({ order: Schema.String, key: Schema.String.check(Schema.isMinLength(8)) }),
        success: Schema.String
      })
      const declared = Contract.declare(keyed, {
        ...whole,
        keyParameter: "key",
        touches: ({ key }) => [{ verb: "send", resource: `x:${key}` }]
      })
      const registry = yield* Registry.fromToolkit(Toolkit.make(declared), {
        charge: ({ key, order }) => Effect.succeed(`${order} under ${key}`)
      })
      const charge = registry.get("charge")!
      assert.deepStrictEqual(charge.spec.parameters["required"], ["order"])
      assert.deepStrictEqual(Object.keys(charge.spec.parameters["properties"] as object), ["order"])
      const forged = charge.check({ order: "431", key: "typed by a model" })
      assert.deepInclude(Result.isFailure(forged) && forged.failure[0], { path: "key", code: "unknown_field" })
      const args = Result.getOrThrow(charge.check({ order: "431" }))
      assert.strictEqual(args.canonical, '{"order":"431"}')
      assert.deepStrictEqual(charge.terms.touches(args), [{ verb: "send", resource: `x:${"0".repeat(64)}` }])
      const settings = { fixtures: {}, idempotencyKey: "k".repeat(64) }
      const done = yield* execute(charge, args, { settings })
      assert.deepInclude(done, { result: `431 under ${"k".repeat(64)}` })
      assert.deepInclude(yield* execute(charge, args, { settings: { fixtures: {} } }), { kind: "execution_failed" })
    })
  )
})
