/**
 * The cases of the shared bug log about files, artifacts, the calculator and the tool pool, each under its id. They are told in
 * words there and have no line in `test/fixtures/shared-cases.jsonl`, which has those about model text and arguments.
 */
import { spawnSync } from "node:child_process"
import { getEventListeners } from "node:events"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { ArtifactStore, layerDirectory } from "../../src/actors/ArtifactStore.ts"
import { layerInline, layerPiscina, makeThreads, ToolPool } from "../../src/actors/ToolPool.ts"
import { registry as builtin } from "../../src/tools/builtin/index.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { registry } from "../fixtures/toolkits/stubborn.ts"
import { admitted, until } from "../kit/toolCalls.ts"

const module = new URL("../fixtures/toolkits/stubborn.ts", import.meta.url)

/** `data` is the workspace; what is beside it must not be reached. */
const scene = Effect.acquireRelease(
  Effect.sync(() => {
    const base = fs.mkdtempSync(join(tmpdir(), "writ-cases-"))
    const workspace = join(base, "data")
    for (const name of ["data", "data-private"]) fs.mkdirSync(join(base, name))
    for (const name of ["secret.txt", "data-private/x"]) fs.writeFileSync(join(base, name), "secret")
    return { base, workspace }
  }),
  ({ base }) => Effect.sync(() => fs.rmSync(base, { recursive: true }))
)

const outcomeOf = Effect.fnUntraced(function* (name: string, args: JsonObject, workspace = ".") {
  const { run } = yield* ToolPool
  return yield* run(admitted(yield* builtin, name, args, { settings: { workspace, fixtures: {} } }))
}, Effect.provide(layerInline()))

const reading = (workspace: string, path: string) => outcomeOf("read_text_file", { path }, workspace)

describe("files", () => {
  it.live("BR-026: a link that leads outside is followed neither to read nor to write", () =>
    Effect.gen(function* () {
      const { base, workspace } = yield* scene
      fs.symlinkSync("../secret.txt", join(workspace, "link"))
      fs.symlinkSync("..", join(workspace, "dirlink"))
      for (const path of ["link", "dirlink/secret.txt"]) {
        assert.deepInclude(yield* reading(workspace, path), { _tag: "Failed", kind: "refused" }, path)
      }
      const bytes = Buffer.from("written")
      const written = yield* Effect.gen(function* () {
        const store = yield* ArtifactStore
        const artifact = { name: "a.txt", mediaType: "text/plain", bytes }
        const { artifactId } = yield* store.put("first", artifact)
        fs.mkdirSync(join(workspace, "second"))
        fs.symlinkSync(join(base, "secret.txt"), join(workspace, "second", artifactId))
        return yield* Effect.exit(store.put("second", artifact))
      }).pipe(Effect.provide(layerDirectory((run) => join(workspace, run))))
      assert.strictEqual(written._tag, "Failure")
      assert.strictEqual(fs.readFileSync(join(base, "secret.txt"), "utf8"), "secret")
      assert.deepStrictEqual(fs.readdirSync(base).sort(), ["data", "data-private", "secret.txt"])
    })
  )

  it.live("BR-067: a sibling whose name begins alike is outside, and a name that begins with dots is inside", () =>
    Effect.gen(function* () {
      const { base, workspace } = yield* scene
      fs.writeFileSync(join(workspace, "..notes"), "dots")
      for (const path of ["../data-private/x", `${base}/data-private/x`, `${workspace}-private/x`]) {
        assert.deepInclude(yield* reading(workspace, path), { _tag: "Failed", kind: "refused" }, path)
      }
      assert.deepInclude(yield* reading(workspace, "..notes"), { _tag: "Succeeded", result: "dots" })
    })
  )

  it.live("BR-082: no name of an artifact or a tool leads out of the store", () =>
    Effect.gen(function* () {
      const { base, workspace } = yield* scene
      const names = ["../x", "a/b", "", ".", "..", "a\0b", "x".repeat(300), "../../tool"]
      yield* Effect.gen(function* () {
        const store = yield* ArtifactStore
        for (const name of names) {
          const put = store.put("run", { name, mediaType: "text/plain", bytes: Buffer.from("x") })
          assert.include((yield* Effect.flip(put)).message, "not an artifact name", JSON.stringify(name))
        }
      }).pipe(Effect.provide(layerDirectory((run) => join(workspace, run))))
      for (const name of names) {
        const { _tag } = yield* outcomeOf("write_artifact", { name, content: "x" }, workspace)
        assert.strictEqual(_tag, "Failed", JSON.stringify(name))
        const tool = { name, description: "", schema: { type: "object" }, run: () => Effect.succeed(null) }
        assert.strictEqual((yield* Effect.exit(Registry.dynamic(tool)))._tag, "Failure", JSON.stringify(name))
      }
      assert.deepStrictEqual(fs.readdirSync(base, { recursive: true }).sort(), [
        "data",
        "data-private",
        "data-private/x",
        "secret.txt"
      ])
    })
  )
})

describe("the calculator", () => {
  const calculated = (expression: string) => outcomeOf("calculate", { expression })

  it.effect("BR-117: program code is no expression", () =>
    Effect.gen(function* () {
      const code = ["1; process.exit(1)", "globalThis", "(()=>1)()", "this.constructor", "2+2//x", "`1`"]
      for (const expression of code) {
        assert.deepInclude(yield* calculated(expression), { _tag: "Failed", effect: "none" }, expression)
      }
      assert.deepInclude(yield* calculated("2+2*3"), { _tag: "Succeeded", result: 8 })
    })
  )

  it.effect("BR-128: what has no finite value is an error and never null", () =>
    Effect.gen(function* () {
      for (const expression of ["1/0", "0/0", "1e308*10"]) {
        assert.deepInclude(yield* calculated(expression), { _tag: "Failed", effect: "none" }, expression)
      }
      assert.deepInclude(yield* calculated("0.1+0.2"), { _tag: "Succeeded", result: 0.3 })
      const page = fs.readFileSync(new URL("../../docs/tools.md", import.meta.url), "utf8")
      assert.include(page, "0.1 + 0.2 is 0.3")
    })
  )
})

/** Waits until this process does next to nothing over a stretch of 100 ms. */
const idle = Effect.suspend(function again(): Effect.Effect<void> {
  const before = process.cpuUsage()
  return Effect.flatMap(Effect.sleep(100), () => {
    const { system, user } = process.cpuUsage(before)
    return system + user < 30_000 ? Effect.void : Effect.suspend(again)
  })
})

describe("the tool pool", () => {
  const one = { module, isolation: "process", processes: 1, graceMillis: 20 } as const

  it.live(
    "BR-005: a tool that loops for ever is timed out, what is queued behind it runs, the pool keeps its size",
    () =>
      Effect.gen(function* () {
        const tools = yield* registry
        // A pool of one is one of processes: threads are two at least.
        const behind = Effect.gen(function* () {
          const { run } = yield* ToolPool
          const first = yield* Effect.forkChild(run(admitted(tools, "spin", {}, { deadlineMillis: 100 })), {
            startImmediately: true
          })
          const second = yield* run(admitted(tools, "echo", { value: "B" }))
          return [yield* Fiber.join(first), second] as const
        })
        const [cut, next] = yield* Effect.provide(behind, layerPiscina(one))
        assert.deepInclude(cut, { kind: "timed_out" })
        assert.deepInclude(next, { result: "B" })
        const { piscina, run } = yield* makeThreads({ module, graceMillis: 20 })
        const spins = Array.from({ length: 2 }, () => run(admitted(tools, "spin", {}, { deadlineMillis: 100 })))
        const all = yield* Effect.all([...spins, run(admitted(tools, "echo", { value: "C" }))], {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(
          all.map((outcome) => (outcome._tag === "Succeeded" ? outcome.result : outcome.kind)),
          ["timed_out", "timed_out", "C"]
        )
        yield* until(() => piscina.threads.length === 2)
        yield* idle
      })
  )

  it.live("BR-020: no timer of a call outlives it, whether it answers or throws", () =>
    Effect.sync(() => {
      const program = `
        import * as Effect from "effect/Effect"
        import { layerInline, layerPiscina, ToolPool } from "${new URL("../../src/actors/ToolPool.ts", import.meta.url)}"
        import { registry } from "${module}"
        import { admitted } from "${new URL("../kit/toolCalls.ts", import.meta.url)}"
        const timers = () => process.getActiveResourcesInfo().filter((one) => one === "Timeout").length
        const run = (name) => Effect.gen(function* () {
          return yield* (yield* ToolPool).run(admitted(yield* registry, name, {}, { deadlineMillis: 3_600_000 }))
        })
        for (const layer of [layerInline(), layerPiscina({ module: new URL("${module}") })]) {
          const before = timers()
          const both = Effect.all([run("echo"), run("throw")]).pipe(Effect.provide(layer))
          const outcomes = await Effect.runPromise(both)
          console.log(outcomes.map((outcome) => outcome._tag).join(), timers() - before)
        }`
      const ended = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
        encoding: "utf8",
        timeout: 120_000
      })
      // An hour is the deadline: that it has ended says that nothing kept it.
      assert.strictEqual(ended.stdout, "Succeeded,Failed 0\nSucceeded,Failed 0\n", ended.stderr)
      assert.strictEqual(ended.status, 0)
    })
  )

  it.live(
    "BR-074: calls that are given up, queued or running, leave the rest of the queue moving and no thread behind",
    () =>
      Effect.gen(function* () {
        const tools = yield* registry
        const { piscina, run } = yield* makeThreads({ module, graceMillis: 20, threadsPerTool: 1 })
        const started = (name: string, value: number) =>
          Effect.forkChild(run(admitted(tools, name, { value })), { startImmediately: true })
        const first = yield* started("wait", 3_600_000)
        const second = yield* started("wait", 0)
        const third = yield* started("wait", 0)
        yield* Fiber.interrupt(second)
        yield* Fiber.interrupt(first)
        assert.deepInclude(yield* Fiber.join(third), { result: "waited" })
        yield* until(() => piscina.threads.length === 2 && piscina.queueSize === 0)
        yield* idle
        assert.strictEqual(piscina.threads.length, 2)
      })
  )

  it("BR-131: fifty calls under one signal leave no listener on it, and no warning", async () => {
    const controller = new AbortController()
    const warnings: Array<Error> = []
    const hear = (warning: Error) => void warnings.push(warning)
    process.on("warning", hear)
    const listeners = () => getEventListeners(controller.signal, "abort").length
    const calls = Effect.gen(function* () {
      const tools = yield* registry
      const { run } = yield* ToolPool
      const counts: Array<number> = []
      for (let value = 0; value < 50; value++) {
        yield* run(admitted(tools, "echo", { value }))
        counts.push(listeners())
      }
      return counts
    }).pipe(Effect.provide(layerPiscina({ module })))
    const counts = await Effect.runPromise(calls, { signal: controller.signal })
    process.off("warning", hear)
    assert.deepStrictEqual([...new Set(counts)], [1])
    assert.strictEqual(listeners(), 0)
    assert.deepStrictEqual(warnings, [])
  })
})
