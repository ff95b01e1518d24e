import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Risk } from "../../src/tools/Contract.ts"
import { execute } from "../../src/tools/Execution.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { ToolError } from "../../src/tools/ToolError.ts"
import { acts } from "../kit/contracts.ts"

const ping = Tool.make("ping", { description: "Ping.", success: Schema.String })
const add = Tool.make("add", {
  description: "Add.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  success: Schema.Finite
}).annotate(Risk, "read")
const toolkit = Toolkit.make(ping, add)
const handlers = {
  ping: () => Effect.succeed("pong"),
  add: ({ a, b }: { readonly a: number; readonly b: number }) => Effect.succeed(a + b)
}
const settings = { fixtures: {} }
const anyTool = (name: string, schema: JsonObject = { type: "object" }) =>
  Registry.dynamic({ name, description: "", schema, run: Effect.succeed })

describe("Registry", () => {
  it.effect("keeps the order, finds by name, and is frozen", () =>
    Effect.gen(function* () {
      const registry = yield* Registry.fromToolkit(toolkit, handlers)
      assert.deepStrictEqual(
        registry.specs.map((spec) => spec.name),
        ["ping", "add"]
      )
      assert.strictEqual(registry.get("add"), registry.tools[1])
      assert.isUndefined(registry.get("toString"))
      assert.isTrue(Object.isFrozen(registry) && Object.isFrozen(registry.tools) && Object.isFrozen(registry.tools[0]))
    })
  )

  it.effect("treats a tool that says nothing as the most dangerous kind", () =>
    Effect.gen(function* () {
      const registry = yield* Registry.fromToolkit(toolkit, handlers)
      assert.deepInclude(registry.get("ping")!.contract, { risk: "external", ledger: "none" })
      assert.deepInclude(registry.get("add")!.contract, { risk: "read", ledger: "none" })
      assert.deepInclude((yield* anyTool("x")).contract, { risk: "external", ledger: "none", terminable: true })
    })
  )

  it.effect("changes a tool's hash with its spec and its contract, and the registry's with the order", () =>
    Effect.gen(function* () {
      const registry = yield* Registry.fromToolkit(toolkit, handlers)
      const again = yield* Registry.fromToolkit(toolkit, handlers)
      const riskier = yield* Registry.fromToolkit(Toolkit.make(acts("external", add)), { add: handlers.add })
      assert.strictEqual(registry.hash, again.hash)
      assert.match(registry.hash, /^[0-9a-f]{64}$/)
      assert.notStrictEqual(riskier.get("add")!.hash, registry.get("add")!.hash)
      assert.notStrictEqual((yield* Registry.pick(registry, ["add", "ping"])).hash, registry.hash)
    })
  )

  it.effect("refuses bad names, duplicates and unusable schemas by name", () =>
    Effect.gen(function* () {
      const registry = yield* Registry.fromToolkit(toolkit, handlers)
      const refused = <A>(effect: Effect.Effect<A, Registry.RegistrationError>) =>
        Effect.map(Effect.flip(effect), (error) => `${error.tool}: ${error.message}`)
      assert.match(yield* refused(Registry.merge(registry, registry)), /^ping: there are two/)
      assert.match(yield* refused(anyTool("a b")), /^a b: a tool name/)
      assert.match(yield* refused(anyTool("")), /a tool name/)
      assert.match(yield* refused(anyTool("n".repeat(65))), /a tool name/)
      assert.match(yield* refused(anyTool("remote", { $ref: "http://x/" })), /^remote: its schema is refused/)
      assert.strictEqual(yield* refused(Registry.pick(registry, ["ad"])), "ad: unknown tool; did you mean add?")
      assert.strictEqual(
        yield* refused(Registry.pick(registry, ["elephants"])),
        "elephants: unknown tool; known tools: ping, add"
      )
      assert.match(yield* refused(Registry.fromToolkit(toolkit, {} as never)), /^ping: it has no handler/)
      const text = Tool.make("text", { parameters: Schema.String as never })
      assert.match(
        yield* refused(Registry.fromToolkit(Toolkit.make(text), { text: () => Effect.void } as never)),
        /^text: its schema/
      )
    })
  )

  it.effect("gives a handler the services of the place the registry was made in", () =>
    Effect.gen(function* () {
      class Greeting extends Context.Service<Greeting, { readonly word: string }>()("test/Greeting") {}
      const greet = Toolkit.make(Tool.make("greet", { success: Schema.String }))
      const registry = yield* Registry.fromToolkit(greet, {
        greet: () => Effect.map(Greeting, ({ word }) => word)
      }).pipe(Effect.provideService(Greeting, { word: "hello" }))
      const tool = registry.get("greet")!
      const outcome = yield* execute(tool, Result.getOrThrow(tool.check({})), { settings })
      assert.deepInclude(outcome, { _tag: "Succeeded", result: "hello" })
    })
  )

  it.effect("does not run arguments that were not checked", () =>
    Effect.gen(function* () {
      const tool = (yield* Registry.fromToolkit(toolkit, handlers)).get("add")!
      const forged = {
        raw: { a: 1, b: 2 },
        effective: { a: 1, b: 2 },
        canonical: ""
      } as unknown as Registry.ValidatedArguments
      assert.deepInclude(yield* execute(tool, forged, { settings }), { _tag: "Failed", kind: "crashed" })
    })
  )

  it.effect("passes effective arguments to a declared tool", () =>
    Effect.gen(function* () {
      const tool = yield* anyTool("limit", { type: "object", properties: { limit: { type: "integer", default: 5 } } })
      const outcome = yield* execute(tool, Result.getOrThrow(tool.check({})), { settings })
      assert.deepInclude(outcome, { _tag: "Succeeded", result: { limit: 5 } })
    })
  )

  it.effect("turns a tool's own failure type into a failure that promises nothing about its effect", () =>
    Effect.gen(function* () {
      const sell = Tool.make("sell", { failure: Schema.Struct({ message: Schema.String }), success: Schema.Void })
      const registry = yield* Registry.fromToolkit(Toolkit.make(sell), {
        sell: () => Effect.fail({ message: "closed" })
      })
      const tool = registry.get("sell")!
      const outcome = yield* execute(tool, Result.getOrThrow(tool.check({})), { settings })
      assert.deepInclude(outcome, {
        kind: "execution_failed",
        effect: "unknown",
        errors: [{ path: "", reason: "closed" }]
      })
      assert.isTrue(new ToolError({ kind: "refused", message: "x" }).effect === "none")
    })
  )
})

interface Case {
  readonly id: string
  readonly family: string
  readonly tools: ReadonlyArray<{ readonly name: string; readonly parameters: JsonObject }>
  readonly call: { readonly name: string; readonly arguments: JsonObject }
  readonly expected: {
    readonly action: string
    readonly errors?: ReadonlyArray<string>
    readonly also_ok?: ReadonlyArray<{ readonly action: string }>
  }
}

const cases = readFileSync(new URL("../fixtures/shared-cases.jsonl", import.meta.url), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Case)
  .filter((one) => one.family === "any")

const codes: Record<string, string> = {
  type: "wrong_type",
  enum: "not_in_enum",
  additionalProperties: "unknown_field",
  required: "missing"
}

describe("shared validator cases", () => {
  it("are there", () => assert.isAtLeast(cases.length, 6))

  for (const one of cases) {
    it.effect(`${one.id}: ${one.expected.action}`, () =>
      Effect.gen(function* () {
        const tools = yield* Effect.forEach(one.tools, ({ name, parameters }) =>
          Registry.dynamic({ name, description: "", schema: parameters, run: Effect.succeed })
        )
        const checked = (yield* Registry.make(tools)).get(one.call.name)!.check(one.call.arguments)
        const action = Result.isSuccess(checked) ? "tool_calls" : "malformed"
        assert.include([one.expected.action, ...(one.expected.also_ok ?? []).map((ok) => ok.action)], action)
        if (Result.isSuccess(checked) || one.expected.errors === undefined) return
        const found = checked.failure.map(({ code, pointer }) => `${code}:${pointer}`)
        const wanted = one.expected.errors.map((error) => {
          const [, keyword, pointer] = error.split(":")
          return `${codes[keyword!]}:${pointer}`
        })
        assert.deepStrictEqual(found, wanted)
      })
    )
  }
})

describe("a tool written without care", () => {
  const outcomeOf = Effect.fnUntraced(function* (run: () => unknown) {
    const tool = yield* Registry.dynamic({
      name: "careless",
      description: "d",
      schema: { type: "object", properties: {} },
      run: run as never
    })
    return yield* execute(tool, Result.getOrThrow(tool.check({})), { settings: { fixtures: {} } })
  })

  it.effect("that returns no Effect has a bad result, and the run goes on", () =>
    Effect.gen(function* () {
      for (const returned of [42, undefined, Promise.resolve(1)]) {
        assert.deepInclude(yield* outcomeOf(() => returned), { _tag: "Failed", kind: "bad_result" })
      }
    })
  )

  it.effect("whose result says something else the second time is taken at its first word", () =>
    Effect.gen(function* () {
      let asked = 0
      const unsteady = () => ({
        get a() {
          return asked++ < 2 ? 1 : 10n
        }
      })
      assert.deepInclude(yield* outcomeOf(() => Effect.succeed(unsteady())), { _tag: "Succeeded", result: { a: 1 } })
      asked = 1
      assert.deepInclude(yield* outcomeOf(() => Effect.succeed(unsteady())), { _tag: "Failed", kind: "bad_result" })
    })
  )
})
