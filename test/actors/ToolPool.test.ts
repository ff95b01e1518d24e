import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { layerInline, layerNoop, ToolPool } from "../../src/actors/ToolPool.ts"
import type { ToolOutcome } from "../../src/tools/ToolCall.ts"
import { registry } from "../fixtures/toolkits/stubborn.ts"
import { admitted } from "../kit/toolCalls.ts"

describe("ToolPool.layerInline", () => {
  it.effect("answers like the tool does", () =>
    Effect.gen(function* () {
      const [tools, pool] = [yield* registry, yield* ToolPool]
      assert.deepInclude(yield* pool.run(admitted(tools, "echo", { value: 1 }, { deadlineMillis: 1_000 })), {
        result: 1
      })
      assert.deepInclude(yield* pool.run(admitted(tools, "throw")), { kind: "crashed" })
    }).pipe(Effect.provide(layerInline()))
  )

  it.effect("frees the caller at the deadline and tells of a late outcome within the grace period", () =>
    Effect.gen(function* () {
      const [tools, pool] = [yield* registry, yield* ToolPool]
      const late: Array<ToolOutcome> = []
      const call = admitted(tools, "wait", { value: 1_500 }, { deadlineMillis: 1_000 })
      const fiber = yield* Effect.forkChild(
        pool.run(call, (outcome) => late.push(outcome)),
        { startImmediately: true }
      )
      yield* TestClock.adjust(1_000)
      assert.deepStrictEqual(yield* Fiber.join(fiber), {
        _tag: "Failed",
        kind: "timed_out",
        errors: [{ path: "", reason: "no answer within 1000 ms" }],
        effect: "none",
        millis: 1_000
      })
      assert.deepStrictEqual(late, [])
      yield* TestClock.adjust(500)
      assert.deepStrictEqual(late, [{ _tag: "Succeeded", result: "waited", artifacts: [], millis: 1_500 }])
    }).pipe(Effect.provide(layerInline({ graceMillis: 2_000 })))
  )

  it.effect("interrupts a straggler after the grace period, and then nothing is told", () =>
    Effect.gen(function* () {
      const [tools, pool] = [yield* registry, yield* ToolPool]
      const late: Array<ToolOutcome> = []
      const call = admitted(tools, "wait", { value: 60_000 }, { deadlineMillis: 1_000 })
      const fiber = yield* Effect.forkChild(
        pool.run(call, (outcome) => late.push(outcome)),
        { startImmediately: true }
      )
      yield* TestClock.adjust(120_000)
      assert.deepInclude(yield* Fiber.join(fiber), { kind: "timed_out" })
      assert.deepStrictEqual(late, [])
    }).pipe(Effect.provide(layerInline({ graceMillis: 2_000 })))
  )

  it.effect("lets a tool that may not be terminated finish, however long it takes", () =>
    Effect.gen(function* () {
      const [tools, pool] = [yield* registry, yield* ToolPool]
      const late: Array<ToolOutcome> = []
      const call = admitted(tools, "wait_on", { value: 60_000 }, { deadlineMillis: 1_000 })
      const fiber = yield* Effect.forkChild(
        pool.run(call, (outcome) => late.push(outcome)),
        { startImmediately: true }
      )
      yield* TestClock.adjust(60_000)
      assert.deepInclude(yield* Fiber.join(fiber), { kind: "timed_out" })
      assert.strictEqual(late.length, 1)
    }).pipe(Effect.provide(layerInline({ graceMillis: 2_000 })))
  )

  it.effect("treats an interrupted caller like a deadline: the work goes on and is told of", () =>
    Effect.gen(function* () {
      const [tools, pool] = [yield* registry, yield* ToolPool]
      const late: Array<ToolOutcome> = []
      const run = pool.run(admitted(tools, "wait", { value: 500 }), (outcome) => late.push(outcome))
      const fiber = yield* Effect.forkChild(run, { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      yield* TestClock.adjust(500)
      assert.strictEqual(late.length, 1)
    }).pipe(Effect.provide(layerInline({ graceMillis: 2_000 })))
  )

  it.effect("does not start a call that has no time left", () =>
    Effect.gen(function* () {
      const [tools, pool] = [yield* registry, yield* ToolPool]
      assert.deepInclude(yield* pool.run(admitted(tools, "exit", {}, { deadlineMillis: 0 })), {
        kind: "timed_out",
        effect: "none"
      })
    }).pipe(Effect.provide(layerInline()))
  )

  it.effect("claims nothing about the world when a tool that acts was cut", () =>
    Effect.gen(function* () {
      const [tools, pool] = [yield* registry, yield* ToolPool]
      const call = admitted(tools, "wait", { value: 5_000 }, { deadlineMillis: 1 })
      const acting = { ...call, tool: { ...call.tool, contract: { ...call.tool.contract, risk: "external" as const } } }
      const fiber = yield* Effect.forkChild(pool.run(acting), { startImmediately: true })
      yield* TestClock.adjust(1)
      assert.deepInclude(yield* Fiber.join(fiber), { kind: "timed_out", effect: "unknown" })
    }).pipe(Effect.provide(layerInline()))
  )

  it.effect("ends what is still running when its scope closes", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const call = admitted(tools, "wait_on", { value: 1e9 }, { deadlineMillis: 1 })
      const outcome = yield* Effect.gen(function* () {
        const pool = yield* ToolPool
        const fiber = yield* Effect.forkChild(pool.run(call), { startImmediately: true })
        yield* TestClock.adjust(1)
        return yield* Fiber.join(fiber)
      }).pipe(Effect.provide(layerInline()))
      assert.deepInclude(outcome, { kind: "timed_out" })
    })
  )
})

describe("ToolPool.layerNoop", () => {
  it.effect("executes nothing and says so", () =>
    Effect.gen(function* () {
      const [tools, pool] = [yield* registry, yield* ToolPool]
      assert.deepInclude(yield* pool.run(admitted(tools, "exit")), { kind: "not_executed", effect: "none" })
    }).pipe(Effect.provide(layerNoop))
  )
})
