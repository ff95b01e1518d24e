import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { execute } from "../../src/tools/Execution.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import { answerOf, type ToolOutcome } from "../../src/tools/ToolCall.ts"
import { registry } from "../fixtures/toolkits/stubborn.ts"
import { admitted } from "../kit/toolCalls.ts"

const outcomeOf = (name: string, args: JsonObject = {}, maxResultBytes?: number): Effect.Effect<ToolOutcome> =>
  Effect.flatMap(Effect.orDie(registry), (tools) => {
    const call = admitted(tools, name, args)
    return execute(call.tool, call.arguments, { settings: call.settings, maxResultBytes })
  })

describe("execute", () => {
  it.effect("answers with the result, what was produced and the time it took", () =>
    Effect.gen(function* () {
      const call = admitted(yield* registry, "wait", { value: 250 })
      const work = execute(call.tool, call.arguments, { settings: call.settings })
      const fiber = yield* Effect.forkChild(work, { startImmediately: true })
      yield* TestClock.adjust(250)
      assert.deepStrictEqual(yield* Fiber.join(fiber), {
        _tag: "Succeeded",
        result: "waited",
        artifacts: [],
        millis: 250
      })
      const made = yield* outcomeOf("produce")
      assert.isTrue(made._tag === "Succeeded" && made.artifacts.length === 1)
      assert.deepStrictEqual(made._tag === "Succeeded" && [...made.artifacts[0]!.bytes], [97, 98, 99])
    })
  )

  it.effect("passes a tool's own failure on and drops what it had produced", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* outcomeOf("refuse"), {
        _tag: "Failed",
        kind: "not_found",
        errors: [{ path: "value", reason: "no such thing" }],
        effect: "none",
        millis: 0
      })
      const failed = yield* outcomeOf("produce_and_fail")
      assert.isFalse("artifacts" in failed)
    })
  )

  it.effect("calls everything else a crash, without paths of this machine", () =>
    Effect.gen(function* () {
      assert.deepInclude(yield* outcomeOf("throw"), {
        kind: "crashed",
        errors: [{ path: "", reason: "the tool crashed: RangeError: bad news from <path>" }]
      })
      assert.deepInclude(yield* outcomeOf("throw_text"), {
        errors: [{ path: "", reason: "the tool crashed: it threw just text" }]
      })
      assert.deepInclude(yield* outcomeOf("reject"), { kind: "crashed" })
      assert.deepInclude(yield* outcomeOf("interrupt"), { kind: "crashed" })
    })
  )

  it.effect("takes JSON for a result and nothing else", () =>
    Effect.gen(function* () {
      for (const name of ["function", "instance", "nan", "nothing", "cycle"]) {
        assert.deepInclude(yield* outcomeOf(name), { _tag: "Failed", kind: "bad_result", effect: "none" }, name)
      }
      assert.deepInclude(yield* outcomeOf("echo", { value: { a: [1, null, { b: "c" }] } }), {
        result: { a: [1, null, { b: "c" }] }
      })
    })
  )

  it.effect("bounds a result by its bytes as JSON text and admits that the work was done", () =>
    Effect.gen(function* () {
      assert.deepInclude(yield* outcomeOf("big", { value: 10 }, 22), { _tag: "Succeeded" })
      const over = yield* outcomeOf("big", { value: 11 }, 22)
      assert.deepInclude(over, { kind: "bad_result", effect: "present" })
      assert.deepStrictEqual(answerOf(over), {
        ok: false,
        kind: "bad_result",
        errors: [{ path: "", reason: "the result has 24 bytes, at most 22 are allowed" }]
      })
    })
  )

  it.effect("leaves interruption of the caller alone", () =>
    Effect.gen(function* () {
      const call = admitted(yield* registry, "wait", { value: 250 })
      const work = execute(call.tool, call.arguments, { settings: call.settings })
      const fiber = yield* Effect.forkChild(work, { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(exit._tag === "Failure" && Cause.hasInterruptsOnly(exit.cause))
    })
  )
})
