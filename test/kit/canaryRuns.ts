/** Runs that between them let a canary in at every place where content can enter, and everything that they leave. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Agent from "../../src/effects/Agent.ts"
import { Approval, allowAll, denyAll } from "../../src/effects/Policy.ts"
import type { TraceChoices } from "../../src/effects/Run.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import * as TraceTimeline from "../../src/effects/trace/TraceTimeline.ts"
import { EngineError } from "../../src/engine/EngineError.ts"
import { Model } from "../../src/engine/Model.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import { canary, type Place, places, registry, spellings } from "./canaries.ts"
import { call, calls } from "./script.ts"

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
export const outputs = (trace: TraceChoices) =>
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
              trace: { tokenEvents: true, ...trace },
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

export const recordsOf = (trace: string): ReadonlyArray<TraceRecord> =>
  trace
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

/** What is made of a trace for people and for programs. */
export const derived = (trace: string): string => {
  const records = recordsOf(trace)
  const totals = new TraceTimeline.Totals()
  for (const record of records) totals.add(record)
  return JSON.stringify([records, records.map(TraceTimeline.rowOf), totals.summary])
}

export const leaks = (text: string, wanted: ReadonlyArray<Place> = places): ReadonlyArray<string> =>
  wanted.flatMap((place) =>
    spellings(place).flatMap((spelling) => (text.includes(spelling) ? [`${place}: ${spelling}`] : []))
  )
