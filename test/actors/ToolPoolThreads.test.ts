import { spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { makeThreads, type PiscinaOptions } from "../../src/actors/ToolPool.ts"
import type { FailureKind, ToolOutcome } from "../../src/tools/ToolCall.ts"
import { registry } from "../fixtures/toolkits/stubborn.ts"
import { admitted, until } from "../kit/toolCalls.ts"

const toolkit = (name: string) => new URL(`../fixtures/toolkits/${name}.ts`, import.meta.url)

const threads = (options: Partial<PiscinaOptions> = {}) =>
  makeThreads({ module: toolkit("stubborn"), graceMillis: 50, ...options })

/** Threads of this process as the system counts them; `undefined` where it does not say. */
const systemThreads = (): number | undefined =>
  fs.existsSync("/proc/self/task") ? fs.readdirSync("/proc/self/task").length : undefined

/** Waits until this process does next to nothing over a stretch of 100 ms. */
const idle = Effect.suspend(function again(): Effect.Effect<void> {
  const before = process.cpuUsage()
  return Effect.flatMap(Effect.sleep(100), () => {
    const { system, user } = process.cpuUsage(before)
    return system + user < 30_000 ? Effect.void : Effect.suspend(again)
  })
})

describe("ToolPool.layerPiscina", () => {
  it.live("runs calls on threads and hands over results, failures and artifacts", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { run } = yield* threads()
      assert.deepInclude(yield* run(admitted(tools, "echo", { value: { a: [1, "é"] } })), { result: { a: [1, "é"] } })
      assert.deepInclude(yield* run(admitted(tools, "refuse")), {
        kind: "not_found",
        errors: [{ path: "value", reason: "no such thing" }]
      })
      const made = yield* run(admitted(tools, "produce"))
      assert.deepStrictEqual(made._tag === "Succeeded" && made.artifacts.map(({ bytes, name }) => [name, ...bytes]), [
        ["a.txt", 97, 98, 99]
      ])
    })
  )

  it.live("cuts a tool that loops for ever; the next one runs meanwhile, the thread goes, the processor rests", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { piscina, run } = yield* threads()
      yield* run(admitted(tools, "echo", { value: 0 }))
      const before = systemThreads()
      const gone: Array<number> = []
      for (const thread of piscina.threads) thread.once("exit", () => gone.push(1))
      const cut = yield* run(admitted(tools, "spin", {}, { deadlineMillis: 50 }))
      assert.deepInclude(cut, { kind: "timed_out", effect: "none" })
      assert.deepInclude(yield* run(admitted(tools, "echo", { value: "next" })), { result: "next" })
      yield* until(() => gone.length === 1)
      yield* idle
      assert.strictEqual(piscina.threads.length, 2)
      if (before !== undefined) yield* until(() => systemThreads()! <= before)
      assert.deepInclude(yield* run(admitted(tools, "spin_outside", {}, { deadlineMillis: 20 })), {
        kind: "timed_out",
        effect: "unknown"
      })
    })
  )

  it.live("is back at its size after any number of terminations", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { piscina, run } = yield* threads({ graceMillis: 0 })
      for (let round = 0; round < 3; round++) {
        const name = round % 3 === 2 ? "exit" : "spin"
        const outcomes = yield* Effect.all(
          [1, 2].map(() => run(admitted(tools, name, {}, { deadlineMillis: 30 + (name === "exit" ? 10_000 : 0) }))),
          { concurrency: 2 }
        )
        assert.deepStrictEqual(
          outcomes.map((outcome) => outcome._tag === "Failed" && outcome.kind),
          name === "exit" ? ["crashed", "crashed"] : ["timed_out", "timed_out"]
        )
      }
      const answers = yield* Effect.all(
        Array.from({ length: 20 }, (_, index) => run(admitted(tools, "echo", { value: index }))),
        { concurrency: 20 }
      )
      assert.deepStrictEqual(
        answers.map((answer) => answer._tag === "Succeeded" && answer.result),
        Array.from({ length: 20 }, (_, index) => index)
      )
      assert.strictEqual(piscina.threads.length, 2)
    })
  )

  it.live("starts no deadline while a call waits for a thread, and lets that wait be interrupted", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { run } = yield* threads()
      yield* run(admitted(tools, "echo", { value: 0 }))
      const busy = yield* Effect.forkChild(
        Effect.all(
          [1, 2].map(() => run(admitted(tools, "wait", { value: 400 }))),
          { concurrency: 2 }
        ),
        { startImmediately: true }
      )
      const queued = yield* Effect.forkChild(run(admitted(tools, "wait", { value: 1 }, { deadlineMillis: 300 })), {
        startImmediately: true
      })
      const given = yield* Effect.forkChild(run(admitted(tools, "exit")), { startImmediately: true })
      yield* Fiber.interrupt(given)
      assert.deepInclude(yield* Fiber.join(queued), { _tag: "Succeeded" })
      yield* Fiber.join(busy)
    })
  )

  it.live("tells of an outcome that arrives within the grace period, and of none that does not", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { piscina, run } = yield* threads({ graceMillis: 60_000 })
      const late: Array<ToolOutcome> = []
      const call = admitted(tools, "wait", { value: 200 }, { deadlineMillis: 20 })
      assert.deepInclude(yield* run(call, (outcome) => late.push(outcome)), { kind: "timed_out" })
      yield* until(() => late.length === 1)
      assert.deepInclude(late[0], { result: "waited" })
      const fiber = yield* Effect.forkChild(
        run(admitted(tools, "wait", { value: 100 }), (outcome) => late.push(outcome)),
        { startImmediately: true }
      )
      yield* until(() => piscina.threads.length === 2)
      yield* Fiber.interrupt(fiber)
      yield* until(() => late.length === 2)
    })
  )

  it.live("survives whatever a tool does to its thread", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { run } = yield* threads({ maxOldGenerationSizeMb: 64, maxResultBytes: 1_000 })
      const expected: ReadonlyArray<readonly [string, FailureKind]> = [
        ["exit", "crashed"],
        ["throw", "crashed"],
        ["throw_text", "crashed"],
        ["reject", "crashed"],
        ["memory", "crashed"],
        ["interrupt", "crashed"],
        ["function", "bad_result"],
        ["instance", "bad_result"],
        ["cycle", "bad_result"],
        ["nothing", "bad_result"]
      ]
      for (const [name, kind] of expected) assert.deepInclude(yield* run(admitted(tools, name)), { kind }, name)
      assert.deepInclude(yield* run(admitted(tools, "big", { value: 600 })), { kind: "bad_result", effect: "present" })
      assert.deepInclude(yield* run(admitted(tools, "print")), { result: "printed" })
      assert.deepInclude(yield* run(admitted(tools, "reject_later")), { result: "answered" })
      for (let turn = 0; turn < 20; turn++) {
        // The rejection that came too late takes no later call of its thread with it.
        assert.deepInclude(yield* run(admitted(tools, "echo", { value: turn })), { result: turn })
      }
      assert.deepInclude(yield* run(admitted(tools, "echo", { value: "fine" })), { result: "fine" })
    })
  )

  it.live("gives work that a tool left behind no processor time between calls", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { run } = yield* threads()
      assert.deepInclude(yield* run(admitted(tools, "leave_running")), { result: "answered" })
      yield* idle
    })
  )

  it.live("gives threads an environment of their own", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { run } = yield* threads({ env: { LANG: "C" } })
      assert.deepInclude(yield* run(admitted(tools, "environment")), { result: ["LANG"] })
    })
  )

  it.live("executes nothing when the toolkit cannot be loaded or has another tool of that name", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const broken = yield* threads({ module: toolkit("broken") })
      const outcome = yield* broken.run(admitted(tools, "echo"))
      assert.deepInclude(outcome, { kind: "not_executed", effect: "none" })
      assert.include(outcome._tag === "Failed" ? outcome.errors[0]!.reason : "", "this module is broken")
      const { run } = yield* threads()
      const call = admitted(tools, "echo")
      assert.deepInclude(yield* run({ ...call, tool: { ...call.tool, hash: "other" } }), { kind: "stale_contract" })
    })
  )

  it.live("leaves no thread when its scope closes, stragglers included", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const scope = yield* Scope.make()
      const before = systemThreads()
      const { piscina, run } = yield* Scope.provide(threads({ graceMillis: 60_000 }), scope)
      const exits: Array<Promise<unknown>> = []
      for (const thread of piscina.threads) exits.push(new Promise((resolve) => thread.once("exit", resolve)))
      assert.deepInclude(yield* run(admitted(tools, "spin", {}, { deadlineMillis: 10 })), { kind: "timed_out" })
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual(piscina.threads.length, 0)
      yield* Effect.promise(() => Promise.all(exits))
      if (before !== undefined) assert.isAtMost(systemThreads()!, before)
    })
  )

  it.live("does not keep the process alive, not even with a deadline far away", () =>
    Effect.sync(() => {
      const program = `
        import * as Effect from "effect/Effect"
        import { layerPiscina, ToolPool } from "${new URL("../../src/actors/ToolPool.ts", import.meta.url)}"
        import { registry } from "${toolkit("stubborn")}"
        import { admitted } from "${new URL("../kit/toolCalls.ts", import.meta.url)}"
        const run = (name) => Effect.gen(function* () {
          return yield* (yield* ToolPool).run(admitted(yield* registry, name, {}, { deadlineMillis: 3_600_000 }))
        })
        const outcomes = Effect.all([run("echo"), run("throw")]).pipe(Effect.provide(layerPiscina({ module: new URL("${toolkit("stubborn")}") })))
        console.log((await Effect.runPromise(outcomes)).map((outcome) => outcome._tag).join())`
      const ended = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
        encoding: "utf8",
        timeout: 240_000
      })
      assert.strictEqual(ended.stdout, "Succeeded,Failed\n", ended.stderr)
      assert.strictEqual(ended.status, 0)
    })
  )
})
