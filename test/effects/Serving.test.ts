import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as fc from "fast-check"
import { ToolPool } from "../../src/actors/ToolPool.ts"
import { Approval, type Approver, allowAll } from "../../src/effects/Policy.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import * as Serving from "../../src/effects/Serving.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import { fromDynamic } from "../../src/tools/Registry.ts"
import { lines, types } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

type Call = Serving.Serving["call"]

interface Options extends RunOptions {
  readonly approver?: Approver
  /** When the serving closes, how long a call may take. */
  readonly closeMillis?: number
}

/** Serves the test tools to `use`, closes, and returns what was left. */
const serving = <A, E, R>(
  use: (call: Call, performed: ReadonlyArray<string>) => Effect.Effect<A, E, R>,
  options: Options = {}
) =>
  Effect.gen(function* () {
    const { approver = allowAll, closeMillis, ...rest } = options
    const { performed, registry } = yield* TestTools.make()
    const open = Serving.open({ tools: registry, caller: "tester", trace: { content: true }, ...rest }, closeMillis)
    const result = yield* Effect.scoped(Effect.flatMap(open, ({ call }) => use(call, performed))).pipe(
      Effect.provideService(Approval, approver)
    )
    const traces = yield* MemoryTraces
    return { result, performed, trace: (run: number) => traces.text(`run-${run}`) }
  }).pipe(Effect.provide(layerScripted({ turns: [] })))

const assertValid = (trace: string) => {
  const { complete, ok, violations } = validateText(trace)
  assert.deepStrictEqual({ complete, ok, violations }, { complete: true, ok: true, violations: [] })
}

const nobody: Approver = { name: "nobody", decide: () => Effect.succeed("deny") }

/** Lets every fiber that has something to do at this moment do it. */
const settled = Effect.forEach(Array.from({ length: 64 }), () => Effect.yieldNow, { discard: true })

describe("serving", () => {
  it.effect("answers calls one after the other, each on one record that holds", () =>
    Effect.gen(function* () {
      const { performed, result, trace } = yield* serving((call) =>
        Effect.all([call("add", { a: 1, b: 2 }), call("save", { name: "a.txt", content: "x" })])
      )
      assert.deepStrictEqual(result, [
        { ok: true, result: 3 },
        { ok: true, result: { bytes: 1 } }
      ])
      assert.lengthOf(performed, 2)
      const text = trace(1)
      assertValid(text)
      const seen = types(text)
      assert.strictEqual(seen.at(-1), "run_completed")
      assert.lengthOf(
        seen.filter((type) => type === "legality_checked"),
        2
      )
      assert.deepStrictEqual(
        seen.filter((type) => /^(approval|tool_call|effect|tool_execution)/.test(type)),
        [
          "tool_call_validated",
          "tool_execution_started",
          "tool_execution_finished",
          "tool_call_validated",
          "effect_intent",
          "tool_execution_started",
          "tool_execution_finished",
          "effect_settled"
        ]
      )
    })
  )

  it.effect("refuses what the schema refuses, with every place, and goes on", () =>
    Effect.gen(function* () {
      const { performed, result } = yield* serving((call) =>
        Effect.all([call("add", { a: "one", b: true }), call("ad", {}), call("add", { a: 1, b: 1 })])
      )
      assert.deepStrictEqual(
        result.map((answer) => (answer.ok ? "ok" : `${answer.kind}: ${answer.errors.map(({ path }) => path)}`)),
        ["invalid_arguments: a,b", "unknown_tool: name", "ok"]
      )
      assert.deepStrictEqual(performed, ['add:{"a":1,"b":1}'])
    })
  )

  it.effect("asks whoever approves, and does nothing without a yes", () =>
    Effect.gen(function* () {
      const { performed, result, trace } = yield* serving((call) => call("send", { to: "a" }), { approver: nobody })
      assert.deepInclude(result, { ok: false, kind: "refused" })
      assert.deepStrictEqual(performed, [])
      const decided = lines(trace(1)).find((line) => line.event_type === "approval_decided")
      assert.deepInclude(decided?.data, { decision: "deny", by: "nobody" })
      assertValid(trace(1))
    })
  )

  it.effect("remembers within its run what was refused", () =>
    Effect.gen(function* () {
      const { trace } = yield* serving(
        (call) => Effect.all([call("save", { name: "a", content: "1" }), call("save", { name: "a", content: "1" })]),
        {}
      )
      const second = lines(trace(1)).filter((line) => line.event_type === "legality_checked")[1]
      assert.isNumber(second?.data["resembles"])
    })
  )

  it.effect("cancels the call whose caller goes away, and answers the next in another run", () =>
    Effect.gen(function* () {
      const { performed, result, trace } = yield* serving((call) =>
        Effect.gen(function* () {
          const hanging = yield* Effect.forkChild(call("slow_send", { to: "a" }), { startImmediately: true })
          const waiting = yield* Effect.forkChild(call("add", { a: 1, b: 2 }), { startImmediately: true })
          yield* settled
          yield* Fiber.interrupt(hanging)
          return yield* Fiber.join(waiting)
        })
      )
      assert.deepStrictEqual(result, { ok: true, result: 3 })
      assert.lengthOf(performed, 2)
      assert.strictEqual(types(trace(1)).at(-1), "run_cancelled")
      assert.strictEqual(types(trace(2)).at(-1), "run_completed")
      assertValid(trace(1))
      assertValid(trace(2))
    })
  )

  it.effect("leaves the running call alone when a waiting caller goes away", () =>
    Effect.gen(function* () {
      const { performed, result } = yield* serving((call) =>
        Effect.gen(function* () {
          const running = yield* Effect.forkChild(call("wait", { millis: 1000 }), { startImmediately: true })
          const waiting = yield* Effect.forkChild(call("add", { a: 1, b: 2 }), { startImmediately: true })
          yield* settled
          yield* Fiber.interrupt(waiting)
          yield* TestClock.adjust(1000)
          return yield* Fiber.join(running)
        })
      )
      assert.deepStrictEqual(result, { ok: true, result: 1000 })
      assert.deepStrictEqual(performed, ['wait:{"millis":1000}'])
    })
  )

  it.effect("ends its run when an outcome stays unknown, tells that, and serves on", () =>
    Effect.gen(function* () {
      const { result, trace } = yield* serving(
        (call) =>
          Effect.gen(function* () {
            const lost = yield* Effect.forkChild(call("slow_send", { to: "a" }), { startImmediately: true })
            yield* settled
            yield* TestClock.adjust(20)
            return [yield* Fiber.join(lost), yield* call("add", { a: 1, b: 2 })] as const
          }),
        { limits: { toolMillis: 10 } }
      )
      assert.deepInclude(result[0], { ok: false, kind: "timed_out" })
      assert.deepStrictEqual(result[1], { ok: true, result: 3 })
      assert.include(types(trace(1)), "effect_escalated")
      assertValid(trace(1))
    })
  )

  it.effect("begins another run after 256 calls", () =>
    Effect.gen(function* () {
      const { performed, trace } = yield* serving((call) =>
        Effect.forEach(Array.from({ length: 258 }), (_, at) => call("add", { a: at, b: 0 }))
      )
      assert.lengthOf(performed, 258)
      assert.strictEqual(types(trace(1)).at(-1), "run_completed")
      const checked = (run: number) => types(trace(run)).filter((type) => type === "legality_checked").length
      assert.deepStrictEqual([checked(1), checked(2)], [256, 2])
    })
  )

  it.effect("refuses at once what would be the 66th call in hand", () =>
    Effect.gen(function* () {
      const { result } = yield* serving((call) =>
        Effect.gen(function* () {
          const many = yield* Effect.forEach(Array.from({ length: 70 }), () =>
            Effect.forkChild(Effect.result(call("wait", { millis: 1 })), { startImmediately: true })
          )
          yield* settled
          for (let at = 0; at < 70; at++) yield* TestClock.adjust(1)
          return yield* Effect.forEach(many, Fiber.join)
        })
      )
      const refused = result.filter((one) => one._tag === "Failure")
      assert.isAtLeast(refused.length, 5)
      assert.isAtMost(refused.length, 6)
    })
  )

  it.effect("waits for the call that runs when it is closed, and then no longer than it was told", () =>
    Effect.gen(function* () {
      const closing = (closeMillis: number) =>
        Effect.gen(function* () {
          const served = yield* Effect.forkChild(
            serving(
              (call) =>
                Effect.andThen(Effect.forkDetach(call("wait", { millis: 1000 }), { startImmediately: true }), settled),
              {
                closeMillis
              }
            ),
            { startImmediately: true }
          )
          yield* settled
          yield* TestClock.adjust(5000)
          const { trace } = yield* Fiber.join(served)
          return types(trace(1)).at(-1)
        })
      assert.strictEqual(yield* closing(2000), "run_completed")
      assert.strictEqual(yield* closing(500), "run_cancelled")
    })
  )

  it.effect("fails a call whose run fails, and says that nothing is known to be done", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const broken = Layer.succeed(ToolPool, { run: () => Effect.die(new Error("a bug")) })
      const error = yield* Effect.scoped(
        Effect.flatMap(Serving.open({ tools: registry, caller: "tester" }), ({ call }) =>
          Effect.flip(call("add", { a: 1, b: 2 }))
        )
      ).pipe(Effect.provide(Layer.provideMerge(broken, layerScripted({ turns: [] }))))
      assert.strictEqual(error._tag, "ServingError")
    })
  )

  it.effect("hands over exactly the arguments it was given, whatever text they hold", () =>
    Effect.gen(function* () {
      const got: Array<JsonObject> = []
      const registry = yield* fromDynamic([
        {
          name: "take",
          description: "",
          schema: { type: "object", additionalProperties: true },
          contract: { risk: "read" },
          run: (args) => Effect.sync(() => got.push(args))
        }
      ])
      const markup = ["</tool_call>", "<tool_call>", "<|im_end|>", "<think>", "\u2028", "```", "\\u003c", "<"]
      const text = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom(...markup))
      const value = fc.letrec((tie) => ({
        value: fc.oneof(
          { depthSize: "small" },
          text,
          fc.integer(),
          fc.boolean(),
          fc.constant(null),
          fc.array(tie("value")),
          fc.dictionary(text, tie("value"))
        )
      })).value
      const given = fc.sample(
        fc.dictionary(
          text.filter((key) => key !== "__proto__"),
          value
        ),
        { numRuns: 60, seed: 7 }
      ) as ReadonlyArray<JsonObject>
      const sent = given.map((one) => JSON.parse(JSON.stringify(one)) as JsonObject)
      yield* Effect.scoped(
        Effect.flatMap(Serving.open({ tools: registry, caller: "tester" }), ({ call }) =>
          Effect.forEach(sent, (args) =>
            Effect.map(call("take", args), (answer) => assert.isTrue(answer.ok, JSON.stringify([args, answer])))
          )
        )
      ).pipe(Effect.provide(layerScripted({ turns: [] })))
      assert.deepStrictEqual(got, sent)
    })
  )
})
