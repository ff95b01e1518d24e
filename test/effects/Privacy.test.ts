import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as EffectLedger from "../../src/actors/EffectLedger.ts"
import { argumentsDigest, keyOf } from "../../src/actors/EffectLedgerKey.ts"
import * as Ids from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as TraceWriter from "../../src/actors/TraceWriter.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll, denyAll } from "../../src/effects/Policy.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import * as TraceTimeline from "../../src/effects/trace/TraceTimeline.ts"
import { EngineError } from "../../src/engine/EngineError.ts"
import { Model } from "../../src/engine/Model.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { canonical } from "../../src/tools/JsonText.ts"
import { canary, digests, type Place, places, registry, spellings } from "../kit/canaries.ts"
import { call, calls } from "../kit/script.ts"

/** Runs that between them let content in at every place; the last ones end in every way that has words of its own. */
const scripts: ReadonlyArray<{ readonly turns: Script["turns"]; readonly limits?: Agent.AgentOptions["limits"] }> = [
  {
    turns: [
      `<think>\n${canary("reasoning")}\n</think>\n\n${canary("prose")}\n${call("give", { value: canary("argument") })}`,
      calls(["fail_with", { how: "error" }], ["fail_with", { how: "crash" }]),
      call("fail_with", { how: canary("argument") }),
      call("give", { value: "x", [canary("argumentname")]: 1 }),
      call(`tool_${canary("unknowntool")}`.replace("é", "e"), {}),
      `<tool_call>\n{"name": "give", ${canary("malformed")}\n</tool_call>`,
      calls(["keep", {}], ["long", {}], ["where", {}]),
      canary("final")
    ],
    limits: { modelTurns: 20, repairs: 20, resultBytes: 2_000 }
  },
  { turns: [call("send", { to: canary("approval") }), canary("final")] },
  { turns: [call("ask", { question: canary("question") })] },
  {
    turns: [call("give", { value: canary("argument") }), call("give", { value: canary("argument") })],
    limits: { loopThreshold: 2 }
  },
  {
    turns: [{ text: [canary("partial"), "a", "b"] }, { text: [canary("partial"), "a", "b"] }],
    limits: { outputTokens: 2 }
  },
  { turns: [{ text: [canary("rolledback"), "x"], fault: { before: 1, kind: "lost" } }] },
  { turns: [{ text: [canary("rolledback"), "x"], fault: { before: 1, kind: "defect" } }] },
  { turns: [] }
]

/** A scripted engine; without a script one that fails in words of its own before the first turn. */
const engine = (turns: Script["turns"]) => {
  const scripted = layerScripted({ turns })
  if (turns.length > 0) return scripted
  const words = new EngineError({ reason: "failed", message: canary("engine") })
  const failing = Layer.effect(
    Model,
    Effect.map(Model, (model) =>
      Model.of({
        ...model,
        session: Effect.map(model.session, (session) => ({ ...session, commit: () => Effect.fail(words) }))
      })
    )
  )
  return Layer.merge(scripted, Layer.provide(failing, scripted))
}

/** Every output of the runs: the bytes of their traces and everything that was logged. */
const outputs = (content: boolean) =>
  Effect.gen(function* () {
    const traces: Array<string> = []
    const logged: Array<string> = []
    const tools = yield* registry
    const logger = Logger.make(({ cause, message }) => void logged.push(JSON.stringify([message, String(cause)])))
    for (const approver of [allowAll, denyAll]) {
      for (const { limits, turns } of scripts) {
        const run = Effect.gen(function* () {
          yield* Effect.exit(
            Agent.run({
              task: canary("task"),
              tools,
              system: canary("system"),
              codec: "qwen3",
              settings: {
                workspace: `/home/${canary("workspace")}`,
                fixtures: { [canary("fixture")]: canary("fixture") }
              },
              trace: { content, tokenEvents: true },
              ...(limits === undefined ? {} : { limits })
            })
          )
          traces.push((yield* MemoryTraces).text("run-1"))
        })
        yield* run.pipe(
          Effect.provideService(Approval, approver),
          Effect.provide(Layer.mergeAll(engine(turns), Logger.layer([logger]))),
          Effect.provideService(References.MinimumLogLevel, "All")
        )
      }
    }
    return { traces, logged }
  })

/** What is made of a trace for people and for programs. */
const derived = (trace: string): string => {
  const records = trace
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)
  const totals = new TraceTimeline.Totals()
  for (const record of records) totals.add(record)
  return JSON.stringify([records, records.map(TraceTimeline.rowOf), totals.summary])
}

const leaks = (text: string, wanted: ReadonlyArray<Place> = places): ReadonlyArray<string> =>
  wanted.flatMap((place) =>
    spellings(place).flatMap((spelling) => (text.includes(spelling) ? [`${place}: ${spelling}`] : []))
  )

describe("a trace without content", () => {
  it.effect("holds no content in any spelling, and neither does what is made of it or logged", () =>
    Effect.gen(function* () {
      const { logged, traces } = yield* outputs(false)
      assert.deepStrictEqual(leaks(traces.join("\n")), [])
      assert.deepStrictEqual(leaks(traces.map(derived).join("\n")), [])
      assert.deepStrictEqual(leaks(logged.join("\n")), [])
    })
  )

  it.effect("would hold every one of them if it were one with content: the search can find", () =>
    Effect.gen(function* () {
      const { traces } = yield* outputs(true)
      const found = new Set(leaks(traces.join("\n")).map((leak) => leak.split(":")[0]))
      // The bytes of artifacts are never in a trace.
      const expected = places.filter((place) => place !== "artifactbytes")
      assert.deepStrictEqual(
        expected.filter((place) => !found.has(place)),
        []
      )
    })
  )

  it.effect("holds no digest from which content could be guessed", () =>
    Effect.gen(function* () {
      const { traces } = yield* outputs(false)
      const text = traces.join("\n")
      const runId = "run-1"
      const to = canary("approval")
      const key = (step: string, ordinal: number, tool: string, args: unknown) =>
        keyOf({ runId, step, ordinal, tool, argumentsDigest: argumentsDigest(canonical(args as never)) })
      const guesses = [
        ...places.filter((place) => place !== "artifactbytes").flatMap((place) => digests(canary(place))),
        ...digests({ to }),
        ...digests({ value: canary("argument") }),
        ...digests({ question: canary("question") }),
        ...digests({ ok: true, result: { [canary("resultkey")]: [canary("result")] } }),
        // What an approval is bound to, and what an effect is kept under.
        hash("sha256", canonical(["send", { to }])),
        key("model-0", 0, "send", { to }),
        key("model-6", 0, "keep", {})
      ]
      assert.deepStrictEqual(
        guesses.filter((guess) => text.includes(guess)),
        []
      )
    })
  )

  it.effect("says how many tokens there were and not which", () =>
    Effect.gen(function* () {
      const { traces } = yield* outputs(false)
      const tokens = traces
        .flatMap((trace) => trace.split("\n"))
        .filter((line) => line.includes('"generation_token"'))
        .map((line) => (JSON.parse(line) as { readonly data: object }).data)
      assert.isAbove(tokens.length, 0)
      for (const data of tokens) assert.deepStrictEqual(Object.keys(data), ["count"])
    })
  )

  it.effect("hides the same text differently in every run", () =>
    Effect.gen(function* () {
      const tools = yield* registry
      for (let run = 0; run < 2; run++) yield* Agent.run({ task: canary("task"), tools })
      const traces = yield* MemoryTraces
      const [first, second] = ["run-1", "run-2"].map(
        (runId) => /"task":\{"bytes":\d+,"hmac":"([0-9a-f]{64})"/.exec(traces.text(runId))?.[1]
      )
      assert.isDefined(first)
      assert.isDefined(second)
      assert.notStrictEqual(first, second)
    }).pipe(
      Effect.provide(
        // As `layerScripted`, but with the key a run has by itself.
        Layer.mergeAll(
          ScriptedModel.layer({ turns: ["a", "a"] }),
          ToolPool.layerInline(),
          TraceWriter.layerMemory,
          ArtifactStore.layerMemory,
          EffectLedger.layerMemory(),
          Ids.layerSequence
        )
      )
    )
  )
})
