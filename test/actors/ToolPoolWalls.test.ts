import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { type AdmittedCall, layerInline, layerPiscina, makeThreads, ToolPool } from "../../src/actors/ToolPool.ts"
import { failed } from "../../src/tools/Execution.ts"
import { registry as flaky } from "../fixtures/toolkits/flaky.ts"
import { registry } from "../fixtures/toolkits/hostile.ts"
import { admitted, until } from "../kit/toolCalls.ts"

const toolkit = (name: string) => new URL(`../fixtures/toolkits/${name}.ts`, import.meta.url)
const options = { module: toolkit("hostile"), graceMillis: 20 }

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  const file = `/proc/${pid}/stat`
  return !fs.existsSync(file) || !/^\d+ \(.*\) Z/.test(fs.readFileSync(file, "utf8"))
}

describe("the tool pool", () => {
  it.live("lets a stuck tool take all threads but one, and the others run meanwhile", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { queue, run } = yield* makeThreads(options)
      const spinning = yield* Effect.forkChild(
        Effect.all(
          [1, 2, 3].map(() => run(admitted(tools, "spin"))),
          { concurrency: 3 }
        ),
        { startImmediately: true }
      )
      for (let turn = 0; turn < 5; turn++) {
        assert.deepInclude(yield* run(admitted(tools, "echo", { value: turn })), { result: turn })
      }
      assert.strictEqual(queue.waiting, 2)
      yield* Fiber.interrupt(spinning)
    })
  )

  it.live("answers two hundred calls of two runs that come at once, in turns, and refuses none", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { run } = yield* makeThreads(options)
      const order: Array<string> = []
      const one = (runId: string) =>
        Effect.map(run({ ...admitted(tools, "echo", { value: runId }), runId }), (outcome) => {
          assert.deepInclude(outcome, { result: runId })
          order.push(runId)
        })
      const all = [...Array.from({ length: 190 }, () => one("big")), ...Array.from({ length: 10 }, () => one("small"))]
      yield* Effect.all(all, { concurrency: "unbounded", discard: true })
      assert.isAtMost(order.lastIndexOf("small"), 40)
    })
  )

  it.live("prints no warning and keeps no listener over fifty calls in a row", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { run } = yield* makeThreads(options)
      const warnings: Array<Error> = []
      const note = (warning: Error) => warnings.push(warning)
      yield* Effect.acquireRelease(
        Effect.sync(() => process.on("warning", note)),
        () => Effect.sync(() => process.off("warning", note))
      )
      for (let turn = 0; turn < 50; turn++) yield* run(admitted(tools, "echo", { value: turn }))
      assert.deepStrictEqual(warnings, [])
    })
  )

  it.live("starts another pool when its threads cannot start any more, and refuses calls until then", () =>
    Effect.gen(function* () {
      const tools = yield* flaky
      const directory = fs.mkdtempSync(path.join(os.tmpdir(), "writ-flag-"))
      const flag = path.join(directory, "flag")
      const pool = yield* makeThreads({ module: toolkit("flaky"), graceMillis: 20, env: { FLAG: flag } })
      const fine = () => pool.run(admitted(tools, "fine"))
      assert.deepInclude(yield* fine(), { result: "fine" })
      fs.writeFileSync(flag, "")
      assert.deepInclude(yield* pool.run(admitted(tools, "exit")), { kind: "crashed" })
      yield* Effect.repeat(fine(), { while: (outcome) => outcome._tag === "Succeeded" })
      assert.deepInclude(yield* fine(), { kind: "crashed", effect: "none" })
      fs.rmSync(directory, { recursive: true })
      yield* Effect.repeat(Effect.delay(fine(), 20), { while: (outcome) => outcome._tag === "Failed" })
      assert.strictEqual(pool.piscina.threads.length, 2)
      assert.deepInclude(yield* fine(), { result: "fine" })
    })
  )
})

describe("a tool process", () => {
  it.live("is where a tool runs whose contract asks for one, and the others stay on their threads", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const { pids, run } = yield* makeThreads(options)
      assert.deepInclude(yield* run(admitted(tools, "pid")), { result: process.pid })
      assert.deepStrictEqual(pids(), [])
      const apart = yield* run(admitted(tools, "pid_apart"))
      assert.deepStrictEqual(pids(), [apart._tag === "Succeeded" ? Number(apart.result) : 0])
      assert.deepInclude(yield* run(admitted(tools, "pid_apart")), { result: pids()[0] ?? 0 })
    })
  )

  it.live("is not there inline, and then the tool does not run, unless a test says that it may", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const run = Effect.flatMap(ToolPool, (pool) => pool.run(admitted(tools, "pid_apart")))
      assert.deepInclude(yield* Effect.provide(run, layerInline()), { kind: "not_executed", effect: "none" })
      const anyway = yield* Effect.provide(run, layerInline({ anyIsolation: true }))
      assert.deepInclude(anyway, { result: process.pid })
    })
  )

  it.live("sees no variable that was not granted, is asked again after its start, and tells of a late outcome", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const pool = yield* ToolPool
      const asked: Array<string> = []
      const call = (name: string, value: number, deadlineMillis?: number): AdmittedCall => ({
        ...admitted(tools, name, { value }, deadlineMillis === undefined ? {} : { deadlineMillis }),
        ready: Effect.sync(() => {
          asked.push(name)
          return name === "echo" ? failed("precondition_failed", "none", "no longer", 0) : undefined
        })
      })
      assert.deepInclude(yield* pool.run(call("environment", 0)), { result: ["LANG"] })
      assert.deepInclude(yield* pool.run(call("echo", 1)), { result: 1 })
      assert.deepStrictEqual(asked, ["environment"])
      const late: Array<unknown> = []
      const cut = yield* pool.run(call("wait", 200, 20), (outcome) => late.push(outcome))
      assert.deepInclude(cut, { kind: "timed_out" })
      yield* until(() => late.length === 1)
      assert.deepInclude(late[0], { result: "waited" })
    }).pipe(Effect.provide(layerPiscina({ ...options, isolation: "process", graceMillis: 60_000, env: { LANG: "C" } })))
  )

  it.live("is held to its contract and to every limit, also where what it says is in the form of a reply", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      const told = Effect.fnUntraced(
        function* (name: string) {
          const pool = yield* ToolPool
          return yield* pool.run(admitted(tools, name))
        },
        Effect.provide(layerPiscina({ ...options, isolation: "process" }))
      )
      const statement = yield* told("forge_statement")
      assert.deepInclude(statement, { _tag: "Failed", kind: "bad_result" })
      assert.match(JSON.stringify(statement), /contract does not say stages: true; none was executed/)
      assert.notProperty(statement, "staged")
      const artifacts = yield* told("forge_artifacts")
      assert.match(JSON.stringify(artifacts), /there are 1025 artifacts, at most 1024 are allowed/)
      assert.deepInclude(yield* told("forge_depth"), { _tag: "Failed", kind: "crashed" })
    })
  )

  it.live("ends with the program that started it, also if that is killed while a tool computes", () =>
    Effect.gen(function* () {
      if (process.platform === "win32") return
      const program = `
        import * as Effect from "effect/Effect"
        import { layerPiscina, ToolPool } from "${new URL("../../src/actors/ToolPool.ts", import.meta.url)}"
        import { registry } from "${toolkit("hostile")}"
        import { admitted } from "${new URL("../kit/toolCalls.ts", import.meta.url)}"
        await Effect.runPromise(Effect.gen(function* () {
          const tools = yield* registry
          const { run } = yield* ToolPool
          console.log((yield* run(admitted(tools, "pid"))).result)
          yield* run(admitted(tools, "spin"))
        }).pipe(Effect.provide(layerPiscina({ module: new URL("${toolkit("hostile")}"), isolation: "process" }))))`
      const host = spawn(process.execPath, ["--input-type=module", "-e", program], {
        stdio: ["ignore", "pipe", "inherit"]
      })
      let said = ""
      host.stdout.on("data", (piece: Buffer) => {
        said += piece.toString()
      })
      yield* until(() => said.includes("\n"))
      const pid = Number(said)
      assert.isTrue(isRunning(pid))
      host.kill("SIGKILL")
      yield* until(() => !isRunning(pid))
    })
  )
})
