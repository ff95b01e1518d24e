import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeWorker } from "../../src/actors/Inference.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { tinyModel } from "../../src/effects/Wiring.ts"
import { Model } from "../../src/engine/Model.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { registry } from "../../src/tools/builtin/index.ts"
import { pick } from "../../src/tools/Registry.ts"
import { lines } from "../kit/script.ts"

const tasks = Array.from({ length: 10 }, (_, index) => `What is ${index + 12} plus ${2 * index + 3}?`)

describe("ten tasks with a tool in one session", () => {
  it.live(
    "evaluate each token once: what is prefilled is what is new",
    () =>
      Effect.gen(function* () {
        const options = { modelPath: tinyModel, sequences: 1, threads: 1, gpu: false, reuse: "never" } as const
        const worker = yield* makeWorker({ ...options, verify: true })
        yield* Effect.gen(function* () {
          const tools = yield* pick(yield* registry, ["calculate"])
          const session = yield* Agent.session({ tools })
          const memory = yield* MemoryTraces
          let calls = 0
          let reread = 0
          let generated = 0
          let before = 0
          for (const task of tasks) {
            const { runId, stop } = yield* Agent.runIn(session, task, { limits: { outputTokens: 64 } })
            assert.strictEqual(stop._tag, "Completed", task)
            const text = memory.text(runId)
            assert.deepStrictEqual(validateText(text).violations, [])
            const events = lines(text)
            calls += events.filter(({ event_type }) => event_type === "tool_execution_finished").length
            for (const { data } of events.filter(({ event_type }) => event_type === "model_call_finished")) {
              generated += Number(data["output_tokens"])
              reread += Number(data["prefill_tokens"])
            }
            const { kv } = yield* worker.snapshot(session.context)
            const { erasedTokens, evaluatedTokens } = yield* worker.stats
            assert.strictEqual(evaluatedTokens, kv.length, task)
            assert.strictEqual(erasedTokens, 0)
            assert.isAbove(kv.length, before)
            before = kv.length
          }
          assert.isAtLeast(calls, 8)
          // Before its first token a turn evaluates its opening and the one token that waited.
          const opening = (yield* worker.model.tokenize(session.codec.opening({ tools: tools.specs }))).length
          assert.isAbove(generated, 100)
          assert.strictEqual(reread % (opening + 1), 0)
        }).pipe(Effect.provide(Layer.merge(layerScripted({ turns: [] }), Layer.succeed(Model, worker.model))))
      }),
    240_000
  )
})
