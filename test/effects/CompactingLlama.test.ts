import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeWorker, type WorkerModel } from "../../src/actors/Inference.ts"
import * as Agent from "../../src/effects/Agent.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import type { Session } from "../../src/effects/RunContext.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { tinyModel } from "../../src/effects/Wiring.ts"
import { Model } from "../../src/engine/Model.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { lines } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const options: RunOptions = {
  context: { onFull: "compact" },
  limits: { outputTokens: 64, modelTurns: 2 },
  trace: { content: true },
  sampling: { temperature: 0 }
}

const tasks = [
  "What is 2 plus 3?",
  "Say hello.",
  "What is 19 plus 23?",
  "Who are you?",
  "What is 7 plus 8?",
  "Say goodbye."
]

/** Everything but the model is a double. */
const around = (worker: WorkerModel) => Layer.merge(layerScripted({ turns: [] }), Layer.succeed(Model, worker.model))

/** Tokens of the session, pending one included. */
const tokensOf = (worker: WorkerModel, { context }: Session) =>
  Effect.map(worker.snapshot(context), ({ kv, pending }) => [...kv, ...pending])

describe("a full context of the model that ships", () => {
  it.live(
    "keeps the tokens of system and tools, and those of what was kept, through every compaction",
    () =>
      Effect.gen(function* () {
        const registry = yield* Registry.pick((yield* TestTools.make()).registry, ["add"])
        const room = yield* Effect.gen(function* () {
          const { model } = yield* makeWorker({ modelPath: tinyModel, threads: 1, gpu: false, sequences: 1 })
          const session = yield* Agent.session({ tools: registry, system: "Be brief." }).pipe(
            Effect.provideService(Model, model)
          )
          return (yield* model.tokenize(session.codec.system("Be brief.", { tools: registry.specs }))).length
        }).pipe(Effect.scoped)
        const contextTokens = room + 300
        const worker = yield* makeWorker({
          modelPath: tinyModel,
          threads: 1,
          gpu: false,
          sequences: 1,
          contextTokens,
          verify: true
        })
        yield* Effect.gen(function* () {
          const session = yield* Agent.session({ tools: registry, system: "Be brief." })
          const prefix = yield* worker.model.tokenize(session.codec.system("Be brief.", { tools: registry.specs }))
          const memory = yield* MemoryTraces
          let compactions = 0
          let compared = 0
          for (const task of tasks) {
            const before = yield* tokensOf(worker, session)
            const places = session.transcript.entries.flatMap(({ span }) => span ?? [])
            const { runId } = yield* Agent.runIn(session, task, options)
            const text = memory.text(runId)
            assert.deepStrictEqual(validateText(text).violations, [])
            const after = yield* tokensOf(worker, session)
            assert.deepStrictEqual(after.slice(0, prefix.length), prefix)
            assert.isAtMost(after.length, contextTokens)
            const last = session.transcript.entries.findLast(({ span }) => span !== undefined)!.span!.end
            assert.strictEqual(after.length, last)
            const made = lines(text).filter(({ event_type }) => event_type === "context_compacted")
            compactions += made.length
            if (made.length !== 1) continue
            // The first that came back, behind the marker, holds the tokens it held before.
            const { dropped, kept } = made[0]!.data as {
              readonly dropped: readonly [number, number]
              readonly kept: ReadonlyArray<readonly [number, number]>
            }
            const first = places.find(({ start }) => start === dropped[1])
            if (first === undefined) continue
            const [from, to] = kept[1]!
            assert.deepStrictEqual(after.slice(from, to), before.slice(first.start, first.end))
            compared++
          }
          assert.isAtLeast(compactions, 2)
          assert.isAtLeast(compared, 1)
        }).pipe(Effect.provide(around(worker)))
      }).pipe(Effect.scoped),
    300_000
  )
})
