import { hash } from "node:crypto"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import * as Wiring from "../../src/effects/Wiring.ts"
import { Model } from "../../src/engine/Model.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { play } from "../kit/run.ts"
import { call, type Line, lines } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const provenance = (events: ReadonlyArray<Line>) => events.find((event) => event.event_type === "provenance")!.data

describe("the provenance of a run", () => {
  it.effect("tells product, model, codec and why, tools, system, policy, sampling and phases", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const { events } = yield* play(["hi"], { thinking: false, sampling: { seed: 7, temperature: 0.5 } }).pipe(
        Effect.provideService(Approval, allowAll)
      )
      const found = provenance(events)
      assert.deepStrictEqual(Object.keys(found["product"] as object), ["writ", "effect", "node"])
      assert.deepInclude(found["model"], { engine: "scripted", name: "script" })
      assert.strictEqual(found["codec"], "qwen2.5")
      assert.include(found["codec_reason"], "script")
      assert.strictEqual(found["tools_hash"], registry.hash)
      assert.deepStrictEqual(
        found["tools"],
        registry.tools.map(({ contract, hash: contractHash, name }) => ({
          name,
          hash: contractHash,
          risk: contract.risk,
          ledger: contract.ledger,
          retry: contract.retry,
          reversible: contract.reversible,
          evidence: contract.evidence.source,
          ...(contract.compensation === undefined ? {} : { compensation: contract.compensation })
        }))
      )
      assert.strictEqual(found["system"], "S")
      assert.strictEqual(found["policy"], "allow-all")
      assert.deepStrictEqual(found["sampling"], { temperature: 0.5, topK: 40, topP: 0.95, seed: 7 })
      assert.deepInclude(found["profile"], { thinking: false })
    })
  )

  it.effect("tells all limits, with none as null", () =>
    Effect.gen(function* () {
      const { events } = yield* play(["hi"], { limits: { wallMillis: Infinity, modelTurns: 3 } })
      const limits = events[0]!.data["limits"] as Record<string, unknown>
      assert.deepInclude(limits, { wallMillis: null, modelTurns: 3, toolCalls: 16, outputTokens: 512 })
    })
  )

  it.effect("tells the seed of every turn, never the same twice", () =>
    Effect.gen(function* () {
      const add = (a: number) => call("add", { a, b: 1 })
      const { events } = yield* play([add(1), add(2), add(3), "done"], { sampling: { seed: 42 } })
      const seeds = events
        .filter((event) => event.event_type === "model_call_started")
        .map((event) => event.data["seed"])
      assert.strictEqual(new Set(seeds).size, 4)
    })
  )

  it.effect("tells a template by its hash and what in it decided on the codec, also against the caller", () =>
    Effect.gen(function* () {
      const template = "{{ '<|im_start|>' }} <tool_call> <tools></tools> <tool_response>"
      const { registry } = yield* TestTools.make()
      yield* Agent.run({ task: "t", tools: registry, codec: "llama3" })
      const found = provenance(lines((yield* MemoryTraces).text("run-1")))
      assert.strictEqual((found["model"] as Record<string, unknown>)["templateSha256"], hash("sha256", template))
      assert.notProperty(found["model"], "template")
      assert.include(found["codec_reason"], "asked for by name")
    }).pipe(
      Effect.provide(
        layerScripted({
          turns: ["hi"],
          template: "{{ '<|im_start|>' }} <tool_call> <tools></tools> <tool_response>"
        })
      )
    )
  )
})

describe("a model file's provenance", () => {
  const identity = (modelHash: boolean) =>
    Effect.acquireUseRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-provenance-"))),
      (directory) =>
        Layer.build(
          Wiring.layerModel({ contextTokens: 256, sessions: 1, modelHash, modelHashes: join(directory, "hashes.json") })
        ).pipe(
          Effect.map((context) => Context.get(context, Model).identity),
          Effect.scoped
        ),
      (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
    )

  it.live("tells the hash of the file, of its header, and the versions of the library", () =>
    Effect.gen(function* () {
      const found = yield* identity(true)
      assert.strictEqual(found.fileSha256, hash("sha256", readFileSync(Wiring.tinyModel)))
      assert.match(String(found.build?.["headerHash"]), /^[0-9a-f]{64}$/)
      assert.include(String(found.build?.["library"]), "node-llama-cpp")
      assert.isDefined(found.build?.["llamaCpp"])
    })
  )

  it.live("leaves the hash of the file out where it is not wanted", () =>
    Effect.gen(function* () {
      assert.notProperty(yield* identity(false), "fileSha256")
    })
  )
})
