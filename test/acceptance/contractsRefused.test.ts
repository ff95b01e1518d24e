/** A refused proposal changes nothing. Item 2 of the strict suite. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "fast-check"
import * as Authority from "../../src/effects/Authority.ts"
import { allowAll, denyAll } from "../../src/effects/Policy.ts"
import { layerScripted } from "../../src/testing.ts"
import type { Json } from "../../src/tools/JsonText.ts"
import { bill } from "../kit/billing.ts"
import { attempts, failures } from "../kit/billingAudit.ts"
import { spies, untouched } from "../kit/billingSpies.ts"
import { call } from "../kit/script.ts"

const office = layerScripted({ turns: [] })

type Fault = "pre" | "cost" | "hazard" | "touches" | "key"

/** A way to be refused, for one proposal of a tool. */
interface Illegal {
  readonly why: string
  readonly text: (tool: string) => string
  readonly ready: boolean
  readonly fault: Fault | undefined
  readonly scopes: ReadonlyArray<string>
  readonly resources: ReadonlyArray<Authority.Grant> | "all"
  readonly approved: boolean
  readonly dryRun: boolean
}

const fc = FastCheck

const name = fc.string({ minLength: 1, maxLength: 40, unit: "binary" }).filter((text) => text.trim() !== "")
const good = fc.record({ name, amount: fc.integer({ min: 1, max: 1_000 }) })

const json = fc.jsonValue({ maxDepth: 2 }) as FastCheck.Arbitrary<Json>

/** Arguments that break the schema: a wrong type, nothing, too little, too much. */
const misfit = fc.oneof(
  fc.record({ name: json.filter((value) => typeof value !== "string"), amount: fc.integer({ min: 1 }) }),
  fc.record({ name, amount: fc.oneof(fc.integer({ max: 0 }), fc.constant("5"), fc.constant(null), fc.constant(1.5)) }),
  fc.record({ name }),
  fc.constant({}),
  fc.record({ name, amount: fc.integer({ min: 1 }), approved: fc.boolean() }),
  fc.record({ name: fc.constant(""), amount: fc.integer({ min: 1 }) })
)

/** Text that means to be a call and is none. */
const broken = fc.constantFrom(
  (tool: string) => `<tool_call>\n{"name": "${tool}", "arguments": {"name": "a", "amount": 1}`,
  (tool: string) =>
    `<tool_call>\n{"name": "${tool}", "arguments": {"name": "a", "name": "b", "amount": 1}}\n</tool_call>`,
  (tool: string) =>
    `<tool_call>\n{"name": "${tool}", "arguments": "{\\"name\\":\\"a\\",\\"amount\\":1}"}\n</tool_call>`,
  (tool: string) => `<tool_call>\n${tool}(name="a", amount=1)\n</tool_call>`,
  (tool: string) =>
    `\`\`\`json\n<tool_call>\n{"name": "${tool}", "arguments": {"name": "a", "amount": 1}}\n</tool_call>\n\`\`\``
)

const legal = {
  ready: true,
  fault: undefined,
  scopes: ["act"],
  resources: "all",
  approved: true,
  dryRun: false
} as const

const said = (of: FastCheck.Arbitrary<object>, change: Partial<Illegal> & { readonly why: string }) =>
  of.map((args): Illegal => ({ ...legal, ...change, text: (tool) => call(tool, args) }))

const faults: ReadonlyArray<Fault> = ["pre", "cost", "hazard", "touches", "key"]

const illegal: FastCheck.Arbitrary<Illegal> = fc.oneof(
  broken.map((text): Illegal => ({ ...legal, why: "malformed", text })),
  good.map((args): Illegal => ({ ...legal, why: "unknown tool", text: (tool) => call(`${tool}_now`, args) })),
  said(misfit, { why: "schema" }),
  said(good, { why: "scope", scopes: ["look"] }),
  said(good, { why: "resource", resources: [{ verb: "read", pattern: "thing:**" }] }),
  said(good, { why: "precondition", ready: false }),
  said(good, { why: "approval", approved: false }),
  said(good, { why: "dry run", dryRun: true }),
  said(
    good.map((args) => ({ ...args, amount: 2_000 })),
    { why: "too dear" }
  ),
  ...faults.map((fault) => said(good, { why: `fault of ${fault}`, fault })),
  said(
    good.map((args) => ({ ...args, name: args.name.padEnd(300, "x") })),
    { why: "oversized key" }
  )
)

const tool = fc.constantFrom("write_file", "post", "publish", "invoice")

describe("2: a rejected proposal has zero effects", () => {
  it.live(
    "whatever is wrong with it: no file, no request, no artifact, no line of the ledger, no handler",
    () =>
      Effect.gen(function* () {
        const { mood, registry, services, writes } = yield* spies()
        const seen = new Set<string>()
        const refused = ([name, way]: readonly [string, Illegal]) =>
          Effect.gen(function* () {
            mood.ready = way.ready
            mood.fault = way.fault
            const { outcome, text } = yield* bill([way.text(name), "I could not."], {
              tools: registry,
              approver: way.approved ? allowAll : denyAll,
              gates: {
                authority: Authority.fromGrants({ scopes: way.scopes, resources: way.resources }),
                dryRun: way.dryRun
              }
            })
            assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "I could not." }, way.why)
            assert.deepStrictEqual(writes(), untouched, way.why)
            // Refused is on the record, with one class and no effect.
            assert.deepStrictEqual([attempts(text).length, failures(text).length], [1, 1], way.why)
            assert.strictEqual(failures(text)[0]?.effect, "none", way.why)
            seen.add(way.why)
          }).pipe(Effect.provide(services))
        const context = yield* Effect.context<never>()
        yield* Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.tuple(tool, illegal), (proposal) =>
              Effect.runPromiseWith(context)(refused(proposal).pipe(Effect.provide(office)))
            ),
            { numRuns: 300 }
          )
        )
        assert.deepStrictEqual([...seen].length, 15)
      }),
    120_000
  )

  it.live("and the spies do see: the same tools, legal, leave something at each place", () =>
    Effect.gen(function* () {
      const { names, registry, services, writes } = yield* spies()
      for (const name of names) {
        const { outcome } = yield* bill([call(name, { name: `a-${name}`, amount: 1 }), "Done."], {
          tools: registry
        }).pipe(Effect.provide(services))
        assert.strictEqual(outcome.text, "Done.", name)
      }
      assert.deepStrictEqual(writes(), { files: ["a-write_file"], requests: 1, artifacts: 1, ledger: 8, handlers: 4 })
    }).pipe(Effect.provide(office))
  )
})
