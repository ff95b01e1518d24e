import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { layerPiscina, makeThreads, type PiscinaOptions, ToolPool } from "../../src/actors/ToolPool.ts"
import type { Registry } from "../../src/tools/Registry.ts"
import type { ToolOutcome } from "../../src/tools/ToolCall.ts"
import { registry } from "../fixtures/toolkits/hostile.ts"
import { admitted, until } from "../kit/toolCalls.ts"

const options: PiscinaOptions = {
  module: new URL("../fixtures/toolkits/hostile.ts", import.meta.url),
  graceMillis: 20,
  maxOldGenerationSizeMb: 64,
  maxBufferMb: 100
}

/** What each attack comes to: a failure's kind, or `answered`. */
const inThreads: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["never", "spin", "regex", "atomics", "microtasks", "ticks", "immediates", "threads", "messages"].map((name) => [
      name,
      "timed_out"
    ])
  ),
  ...Object.fromEntries(
    [
      ...["exit", "abort", "kill_self", "kill_group", "throw_nothing", "throw_proxy", "throw_getter", "throw_long"],
      ...["reject_aside", "throw_aside", "heap", "buffers", "stack"]
    ].map((name) => [name, "crashed"])
  ),
  ...Object.fromEntries(
    [
      ...["function", "symbol", "bigint", "shared", "weak", "deep", "long", "cycle"],
      ...["artifacts", "artifact_names"]
    ].map((name) => [name, "bad_result"])
  ),
  reject_later: "answered",
  throw_later: "answered",
  deafen: "answered",
  poison: "answered",
  print: "answered",
  wordy: "not_found"
}

/** What differs in a process, and what it is for. A process costs a start of Node each time it is ended, so not all of it. */
const inProcesses: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      ...[
        "spin",
        "threads",
        "exit",
        "abort",
        "kill_self",
        "kill_group",
        "throw_proxy",
        "reject_aside",
        "heap",
        "buffers"
      ],
      ...["shared", "long", "artifacts", "reject_later", "deafen", "poison", "print", "wordy"]
    ].map((name) => [name, inThreads[name]!])
  ),
  grandchild: "answered",
  ...Object.fromEntries(
    ["close_pipe", "forge_noise", "forge_length", "forge_reply", "forge_kind", "forge_flood"].map((name) => [
      name,
      "crashed"
    ])
  )
}

const systemThreads = (): number =>
  fs.existsSync("/proc/self/task") ? fs.readdirSync("/proc/self/task").length : Number.NaN

/** Children of this process as the system lists them. */
const children = (): ReadonlyArray<string> => {
  const file = `/proc/self/task/${process.pid}/children`
  return fs.existsSync(file) ? fs.readFileSync(file, "utf8").split(" ").filter(Boolean) : []
}

/** Pipes and processes that this process waits for. */
const pipesHeld = (): number => process.getActiveResourcesInfo().filter((kind) => /Pipe|Process/.test(kind)).length

const kindOf = (outcome: ToolOutcome): string => (outcome._tag === "Failed" ? outcome.kind : "answered")

/** Attacks one after the other, and after each an innocent call, which has to be right. */
const attack = (
  tools: Registry,
  run: ToolPool["Service"]["run"],
  expected: Readonly<Record<string, string>>,
  seen: Map<string, ToolOutcome>
) =>
  Effect.forEach(
    Object.entries(expected),
    Effect.fnUntraced(function* ([name, kind], index) {
      const deadlineMillis = kind === "timed_out" ? 200 : Number.POSITIVE_INFINITY
      const outcome = yield* run(admitted(tools, name, {}, { deadlineMillis }))
      seen.set(name, outcome)
      assert.strictEqual(kindOf(outcome), kind, `${name}: ${JSON.stringify(outcome).slice(0, 300)}`)
      const after = yield* run(admitted(tools, "echo", { value: { index } }))
      assert.deepInclude(after, { result: { index } }, `after ${name}`)
    }),
    { discard: true }
  )

describe("a hostile tool", () => {
  it.live(
    "on a thread hangs no run, costs nobody else a call, and leaves the pool whole",
    () =>
      Effect.gen(function* () {
        const tools = yield* registry
        const before = systemThreads()
        const scope = yield* Scope.make()
        const pool = yield* Scope.provide(makeThreads(options), scope)
        const seen = new Map<string, ToolOutcome>()
        assert.isAtLeast(Object.keys(inThreads).length, 20)
        yield* attack(tools, pool.run, inThreads, seen)
        yield* until(() => pool.queue.free === 2)
        assert.strictEqual(pool.piscina.threads.length, 2)
        yield* until(() => pool.stuck === 0)
        for (const [name, outcome] of seen) {
          if (outcome._tag === "Failed") assert.isBelow(JSON.stringify(outcome.errors).length, 10_000, name)
        }
        const late = yield* pool.run(admitted(tools, "wait", { value: 50 }))
        assert.deepInclude(late, { result: "waited" })
        yield* Scope.close(scope, Exit.void)
        if (!Number.isNaN(before)) yield* until(() => systemThreads() <= before)
        assert.notInclude(process.getActiveResourcesInfo(), "MessagePort")
      }),
    600_000
  )

  it.live(
    "in a process does no more than on a thread, and cannot forge an answer",
    () =>
      Effect.gen(function* () {
        const tools = yield* registry
        const before = children()
        const pipes = pipesHeld()
        const seen = new Map<string, ToolOutcome>()
        yield* Effect.gen(function* () {
          const pool = yield* ToolPool
          yield* attack(tools, pool.run, inProcesses, seen)
        }).pipe(Effect.provide(layerPiscina({ ...options, isolation: "process" })))
        yield* until(() => children().length <= before.length)
        const left = seen.get("grandchild")
        const pid = left?._tag === "Succeeded" ? Number(left.result) : 0
        assert.isAbove(pid, 0)
        yield* until(() => !isRunning(pid))
        yield* until(() => pipesHeld() <= pipes)
      }),
    600_000
  )

  it.live("that sits in native code gives its place back, and runs in a process from then on", () =>
    Effect.gen(function* () {
      if (process.platform === "win32") return
      const tools = yield* registry
      const directory = fs.mkdtempSync(path.join(os.tmpdir(), "writ-fifo-"))
      const fifo = path.join(directory, "fifo")
      execFileSync("mkfifo", [fifo])
      const scope = yield* Scope.make()
      const pool = yield* Scope.provide(makeThreads(options), scope)
      const open = () => pool.run(admitted(tools, "open", { value: fifo }, { deadlineMillis: 100 }))
      assert.strictEqual(kindOf(yield* open()), "timed_out")
      yield* until(() => pool.stuck === 1 && pool.queue.free === 2)
      assert.strictEqual(kindOf(yield* open()), "timed_out")
      assert.strictEqual(pool.stuck, 1)
      assert.deepInclude(yield* pool.run(admitted(tools, "echo", { value: 1 })), { result: 1 })
      // Somebody writes at last, and the thread can end.
      fs.closeSync(fs.openSync(fifo, fs.constants.O_WRONLY | fs.constants.O_NONBLOCK))
      yield* until(() => pool.stuck === 0)
      yield* Scope.close(scope, Exit.void)
      fs.rmSync(directory, { recursive: true })
    })
  )
})

/** A process that exists and is more than an entry nobody has collected. */
const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const file = `/proc/${pid}/stat`
  return !fs.existsSync(file) || !/^\d+ \(.*\) Z/.test(fs.readFileSync(file, "utf8"))
}
