import { hash } from "node:crypto"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as EffectLedger from "../../src/actors/EffectLedger.ts"
import { argumentsDigest, keyOf } from "../../src/actors/EffectLedgerKey.ts"
import * as Ids from "../../src/actors/Ids.ts"
import * as ToolPool from "../../src/actors/ToolPool.ts"
import * as TraceWriter from "../../src/actors/TraceWriter.ts"
import * as Agent from "../../src/effects/Agent.ts"
import * as ScriptedModel from "../../src/engine/ScriptedModel.ts"
import { MemoryTraces } from "../../src/testing.ts"
import { canonical } from "../../src/tools/JsonText.ts"
import { canary, digests, places, registry } from "../kit/canaries.ts"
import { derived, leaks, outputs } from "../kit/canaryRuns.ts"

describe("a trace without content", () => {
  it.effect("holds no content in any spelling, and neither does what is made of it or logged", () =>
    Effect.gen(function* () {
      const { logged, traces } = yield* outputs({ content: false })
      assert.deepStrictEqual(leaks(traces.join("\n")), [])
      assert.deepStrictEqual(leaks(traces.map(derived).join("\n")), [])
      assert.deepStrictEqual(leaks(logged.join("\n")), [])
    })
  )

  it.effect("would hold every one of them if it were one with content: the search can find", () =>
    Effect.gen(function* () {
      const { traces } = yield* outputs({ content: true })
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
      const { traces } = yield* outputs({ content: false })
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
      const { traces } = yield* outputs({ content: false })
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
