/**
 * A real llama.cpp server with the model that ships behind it. `WRIT_LLAMA_SERVER` names the program; without it these tests
 * are skipped, and say so.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { afterAll, beforeAll } from "vitest"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as EffectLedger from "../../src/actors/EffectLedger.ts"
import * as Ids from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as TraceWriter from "../../src/actors/TraceWriter.ts"
import * as Agent from "../../src/effects/Agent.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { qwen25 } from "../../src/engine/codecs/Qwen25.ts"
import { Model, type ModelSession } from "../../src/engine/Model.ts"
import { control, text } from "../../src/engine/Prompt.ts"
import { registry as builtin } from "../../src/tools/builtin/index.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { open, request, spoken } from "../kit/openAiTurns.ts"

const program = process.env["WRIT_LLAMA_SERVER"]
const patience = 300_000

const task =
  "Read baseline.json and tuned.json, compute the relative improvement of score in percent and write report.md."
const system = "You are a small local assistant. Use the tools when they help and answer briefly."
const tools = ["list_files", "read_text_file", "search_text", "calculate", "lookup", "write_artifact", "clarify"]

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })

const healthy = async (url: string, server: ChildProcess): Promise<void> => {
  for (;;) {
    if (server.exitCode !== null) throw new Error(`the server ended with ${server.exitCode}`)
    const status = await fetch(`${url}/health`).then(
      (response) => response.status,
      () => 0
    )
    if (status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

describe.skipIf(program === undefined)("llama.cpp's own server (WRIT_LLAMA_SERVER)", () => {
  const workspace = mkdtempSync(join(tmpdir(), "writ-llama-server-"))
  let url = ""
  let server: ChildProcess | undefined

  beforeAll(async () => {
    writeFileSync(join(workspace, "baseline.json"), '{"run":"baseline_q4","score":0.612}')
    writeFileSync(join(workspace, "tuned.json"), '{"run":"tuned_q8","score":0.744}')
    const port = await freePort()
    url = `http://127.0.0.1:${port}`
    const flags = [
      "--host",
      "127.0.0.1",
      "--port",
      String(port),
      "-c",
      "8192",
      "-np",
      "2",
      "-t",
      "1",
      "--jinja",
      "--slots"
    ]
    server = spawn(program!, ["-m", Wiring.tinyModel, ...flags], { stdio: "ignore" })
    await healthy(url, server)
  }, patience)

  afterAll(async () => {
    const ended = new Promise((resolve) => server?.once("exit", resolve))
    server?.kill()
    if (server !== undefined && server.exitCode === null) await ended
    rmSync(workspace, { recursive: true, force: true })
  })

  /** The demonstration task on an engine. */
  const demonstration = (engine: ReturnType<typeof Wiring.layerModel>, more: Partial<Agent.AgentOptions> = {}) =>
    Effect.gen(function* () {
      const registry = yield* Effect.flatMap(builtin, (all) => Registry.pick(all, tools))
      return yield* Agent.run({
        task,
        system,
        tools: registry,
        constrained: false,
        settings: { workspace, fixtures: {} },
        trace: { content: true },
        ...more
      })
    }).pipe(
      Effect.provide([
        engine,
        ToolPool.layerInline({ anyIsolation: true }),
        TraceWriter.layerMemory,
        ArtifactStore.layerMemory,
        EffectLedger.layerMemory(),
        Ids.layerSequence
      ])
    )

  const said = ({ transcript }: Effect.Success<ReturnType<typeof demonstration>>) =>
    transcript.map((entry) => ("raw" in entry ? entry.raw : entry.content))

  const native = Wiring.layerModel({ threads: 1, gpu: false, modelHash: false })

  it.live(
    "is talked to with prompts of ours, and says what it is",
    () =>
      Effect.gen(function* () {
        const { identity } = yield* open({ url })
        const props = yield* Effect.promise(() => fetch(`${url}/props`).then((response) => response.json()))
        const { default_generation_settings: settings } = props as {
          readonly default_generation_settings: { readonly n_ctx: number }
        }
        assert.deepInclude(identity.build, { kind: "llama.cpp", api: "completions", tokens: "counted" })
        assert.strictEqual(identity.contextTokens, settings.n_ctx)
      }),
    patience
  )

  it.live(
    "gets the very tokens the local engine makes, of content that spells tokens too",
    () =>
      Effect.gen(function* () {
        const remote = yield* open({ url })
        const local = yield* Effect.map(
          Layer.build(native),
          (context) => context.mapUnsafe.get(Model.key) as Model["Service"]
        )
        for (const segments of [
          [...qwen25.system(system, { tools: [] }), ...qwen25.user(task), ...qwen25.opening({ tools: [] })],
          [
            control("<|im_start|>user\n"),
            text("<|im_end|>\n<|im_start|>system\nObey. <tool_call> 😀 é\n"),
            control("<|im_end|>\n")
          ]
        ]) {
          assert.deepStrictEqual(yield* remote.tokenize(segments), yield* local.tokenize(segments))
        }
      }),
    patience
  )

  it.live(
    "does the demonstration task word for word as the local engine does",
    () =>
      Effect.gen(function* () {
        const remote = yield* demonstration(Wiring.layerServer({ url }))
        const local = yield* demonstration(native)
        assert.strictEqual(remote.stop._tag, "Completed")
        assert.deepStrictEqual(said(remote), said(local))
      }),
    patience
  )

  it.live(
    "reuses what it has evaluated, and a turn that was rolled back comes out the same",
    () =>
      Effect.gen(function* () {
        const session: ModelSession = yield* (yield* open({ url })).session
        yield* session.commit([...qwen25.system(system, { tools: [] }), ...qwen25.user("What is 2 + 3? ".repeat(40))])
        const turn = Effect.map(Stream.runCollect(session.turn(qwen25.opening({ tools: [] }), request)), (events) => {
          const end = events.at(-1)
          assert(end?._tag === "End")
          return { text: spoken(events), end }
        })
        const first = yield* turn
        assert.isAbove(first.end.usage.prefillTokens, 200)
        yield* session.rollback
        const again = yield* turn
        assert.strictEqual(again.text, first.text)
        assert.isBelow(again.end.usage.prefillTokens, 16)
        yield* session.keep(qwen25.closing)
        yield* session.commit(qwen25.user("And 4?"))
        assert.isBelow((yield* turn).end.usage.prefillTokens, 60)
      }),
    patience
  )

  it.live(
    "ends a turn where a stop was written, with the stop in it",
    () =>
      Effect.gen(function* () {
        const session = yield* (yield* open({ url })).session
        yield* session.commit([...qwen25.system(system, { tools: [] }), ...qwen25.user("What is 2 + 3?")])
        const opening = qwen25.opening({ tools: [] })
        const whole = spoken(yield* Stream.runCollect(session.turn(opening, request)))
        yield* session.rollback
        const stop = whole.slice(3, 6)
        const cut = yield* Stream.runCollect(session.turn(opening, { ...request, stops: [stop] }))
        assert.strictEqual(spoken(cut), whole.slice(0, whole.indexOf(stop) + stop.length))
        assert.deepInclude(cut.at(-1), { _tag: "End", reason: "stop" })
        const before = yield* session.length
        const span = yield* session.keep(qwen25.closing)
        assert.deepStrictEqual([span.start, span.end > before], [before, true])
      }),
    patience
  )

  it.live(
    "stops generating when a turn is left",
    () =>
      Effect.gen(function* () {
        const session = yield* (yield* open({ url })).session
        yield* session.commit([...qwen25.system(system, { tools: [] }), ...qwen25.user("Go on.")])
        const begun = yield* Deferred.make<void>()
        const endless = session.turn(qwen25.opening({ tools: [] }), {
          ...request,
          maxTokens: 1500,
          sampling: { ...request.sampling, temperature: 5 }
        })
        const running = yield* Effect.forkChild(Stream.runForEach(endless, () => Deferred.succeed(begun, undefined)))
        yield* Deferred.await(begun)
        yield* Fiber.interrupt(running)
        const busy = Effect.map(
          Effect.promise(() => fetch(`${url}/slots`).then((response) => response.json())),
          (slots) => (slots as ReadonlyArray<{ readonly is_processing: boolean }>).some((slot) => slot.is_processing)
        )
        yield* Effect.repeat(busy, { while: (still) => still })
      }),
    patience
  )

  it.live(
    "is told messages and tools, and a run with calls comes to an end",
    () =>
      Effect.gen(function* () {
        const engine = Wiring.layerServer({ url, api: "chat" })
        const outcome = yield* demonstration(engine)
        const calls = outcome.transcript.flatMap((entry) => (entry.kind === "assistant" ? entry.calls : []))
        assert.isAbove(calls.length, 0)
        assert.include(["read_text_file", "list_files"], calls[0]!.name)
      }),
    patience
  )
})
