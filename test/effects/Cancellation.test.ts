import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval } from "../../src/effects/Policy.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { playUntil } from "../kit/run.ts"
import { call, calls, shape, types } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

describe("cancelling a run", () => {
  it.effect("in prefill: nothing of the turn stays", () =>
    Effect.gen(function* () {
      const { outcome, text } = yield* playUntil(
        [{ text: "Hello", prefillMillis: 1_000 }],
        (event) => event._tag === "StateEntered" && event.state === "Generating"
      )
      assert.deepStrictEqual(outcome.stop, { _tag: "Cancelled", at: "prefill" })
      assert.deepStrictEqual(types(text).slice(-2), ["turn_rolled_back", "run_cancelled"])
    })
  )

  it.effect("in generation: what was streamed is retracted and the context is as before", () =>
    Effect.gen(function* () {
      const { context, outcome, text } = yield* playUntil(
        [{ text: ["He", "llo ", "you"], millisPerToken: 100 }],
        (event) => event._tag === "StateEntered" && event.state === "Generating",
        { afterwards: TestClock.adjust(250) }
      )
      assert.deepStrictEqual(outcome.stop, { _tag: "Cancelled", at: "generation" })
      assert.deepStrictEqual(shape(outcome), ["system", "user"])
      assert.notInclude(context, "He")
      assert.deepStrictEqual(types(text).slice(-2), ["turn_rolled_back", "run_cancelled"])
    })
  )

  it.effect(
    "in a tool: the caller goes on at once, the call is on the record and its result is not put before the model",
    () =>
      Effect.gen(function* () {
        const { events, outcome, performed, text } = yield* playUntil(
          [calls(["wait", { millis: 60_000 }], ["add", { a: 1, b: 1 }]), "never"],
          (event) => event._tag === "CallStarted"
        )
        assert.deepStrictEqual(outcome.stop, { _tag: "Cancelled", at: "tool" })
        assert.deepStrictEqual(performed, ['wait:{"millis":60000}'])
        assert.deepStrictEqual(types(text).slice(-4), [
          "tool_execution_finished",
          "tool_result_uncommitted",
          "call_skipped",
          "run_cancelled"
        ])
        const uncommitted = events.find((event) => event.event_type === "tool_result_uncommitted")
        assert.strictEqual(uncommitted?.data["effect"], "none", "a tool that only reads leaves nothing behind")
      })
  )

  it.effect("in a tool that reaches outside: its effect is unknown", () =>
    Effect.gen(function* () {
      const hang = { name: "yes", decide: () => Effect.succeed("allow" as const) }
      const { events } = yield* playUntil(
        [call("slow_send", { to: "bob" })],
        (event) => event._tag === "CallStarted"
      ).pipe(Effect.provideService(Approval, hang))
      const finished = events.find((event) => event.event_type === "tool_execution_finished")
      assert.deepInclude(finished?.data, { failure_kind: "cancelled", effect: "unknown" })
    })
  )

  it.effect("while somebody is asked: nothing runs", () =>
    Effect.gen(function* () {
      const never = { name: "slow", decide: () => Effect.never }
      const { outcome, performed } = yield* playUntil(
        [call("send", { to: "bob" })],
        (event) => event._tag === "StateEntered" && event.state === "Admitting",
        { afterwards: Effect.yieldNow }
      ).pipe(Effect.provideService(Approval, never))
      assert.deepStrictEqual(outcome.stop, { _tag: "Cancelled", at: "awaiting-approval" })
      assert.deepStrictEqual(performed, [])
    })
  )

  it.effect("interrupting the caller closes the record first", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const fiber = yield* Effect.forkChild(Agent.run({ task: "t", tools: registry }), { startImmediately: true })
      yield* TestClock.adjust(150)
      yield* Fiber.interrupt(fiber)
      const trace = (yield* MemoryTraces).text("run-1")
      assert.deepStrictEqual(types(trace).slice(-2), ["turn_rolled_back", "run_cancelled"])
    }).pipe(Effect.provide(layerScripted({ turns: [{ text: ["He", "llo"], millisPerToken: 100 }] })))
  )

  it.effect("leaves a session that the next task can use, with the open call answered first", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const session = yield* Agent.session({ tools: registry })
      const handle = yield* Agent.startIn(session, "first")
      yield* TestClock.adjust(10)
      yield* handle.cancel
      const cancelled = yield* handle.outcome
      assert.deepStrictEqual(cancelled.stop, { _tag: "Cancelled", at: "tool" })
      const outcome = yield* Agent.runIn(session, "second")
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "hello" })
      assert.deepStrictEqual(shape(outcome), [
        "system",
        "user",
        "assistant:calls",
        "tool:wait",
        "user",
        "assistant:final"
      ])
      assert.isTrue(outcome.transcript.every((entry) => entry.span !== undefined))
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [call("wait", { millis: 60_000 }), "hello"] })))
  )
})
