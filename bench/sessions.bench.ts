/** What many sessions cost: processor time of a run alone and among a thousand, and the memory of a session that waits. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Scope from "effect/Scope"
import * as ArtifactStore from "../src/actors/ArtifactStore.ts"
import * as EffectLedger from "../src/actors/EffectLedger.ts"
import * as Ids from "../src/actors/Ids.ts"
import * as ToolPool from "../src/actors/ToolPool.ts"
import * as TraceWriter from "../src/actors/TraceWriter.ts"
import * as Agent from "../src/effects/Agent.ts"
import { Model } from "../src/engine/Model.ts"
import * as ScriptedModel from "../src/engine/ScriptedModel.ts"
import { registry } from "../src/tools/builtin/index.ts"

const call = '<tool_call>\n{"name": "calculate", "arguments": {"expression": "17.5*240/100"}}\n</tool_call>'

/** Each turn waits a little, so that all runs are under way at the same time. */
const script: ScriptedModel.Script = {
  turns: [call, "17.5% of 240 is 42."].map((text) => ({ text, prefillMillis: 2 }))
}

/** A scripted engine whose every session plays the script from its start. */
const layerEach: Layer.Layer<Model> = Layer.succeed(
  Model,
  Model.of({
    identity: { engine: "scripted", name: "script", contextTokens: 1_048_576 },
    tokenize: () => Effect.succeed([]),
    session: Effect.flatMap(
      Layer.build(Layer.fresh(ScriptedModel.layer(script))),
      (context) => Context.get(context, Model).session
    )
  })
)

const layer = (trace: Layer.Layer<TraceWriter.TraceWriter>) =>
  Layer.mergeAll(
    layerEach,
    ToolPool.layerInline(),
    trace,
    ArtifactStore.layerMemory,
    EffectLedger.layerMemory(),
    Ids.layerSequence
  )

const collect: () => void = (() => {
  setFlagsFromString("--expose-gc")
  return runInNewContext("gc") as () => void
})()

const heap = (): number => {
  for (let round = 0; round < 4; round++) collect()
  return process.memoryUsage().heapUsed
}

const median = (values: ReadonlyArray<number>): number => [...values].sort((a, b) => a - b)[values.length >> 1]!

/** Microseconds of processor time per run. */
const perRun = async (runs: number, work: () => Promise<unknown>): Promise<number> => {
  const before = process.cpuUsage()
  await work()
  const { system, user } = process.cpuUsage(before)
  return (system + user) / runs
}

const costs = async (count: number, rounds: number) => {
  // A record that goes nowhere: a thousand kept traces would be a cost of memory, not of runs.
  const runtime = ManagedRuntime.make(layer(TraceWriter.layerNone))
  const tools = await runtime.runPromise(registry)
  const run = Effect.map(Agent.run({ task: "What is 17.5% of 240?", tools }), ({ stop }) => {
    if (stop._tag !== "Completed") throw new Error(JSON.stringify(stop))
  })
  const many = (concurrency: number) => () =>
    runtime.runPromise(
      Effect.forEach(
        Array.from({ length: count }, () => run),
        (one) => one,
        { concurrency, discard: true }
      )
    )
  await many(50)()
  const alone: Array<number> = []
  const together: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    alone.push(await perRun(count, many(1)))
    together.push(await perRun(count, many(count)))
  }
  await runtime.dispose()
  return { alone: median(alone), together: median(together) }
}

const idle = async (count: number) => {
  const runtime = ManagedRuntime.make(layer(TraceWriter.layerNone))
  const scope = Scope.makeUnsafe()
  const tools = await runtime.runPromise(registry)
  const openOne = Scope.provide(Agent.session({ tools }), scope)
  const first = await runtime.runPromise(openOne)
  await runtime.runPromise(Agent.runIn(first, "warm"))
  const before = heap()
  const sessions = await runtime.runPromise(Effect.replicateEffect(openOne, count))
  const opened = (heap() - before) / count
  await runtime.runPromise(
    Effect.forEach(sessions, (session) => Agent.runIn(session, "What is 17.5% of 240?"), {
      concurrency: 100,
      discard: true
    })
  )
  const used = (heap() - before) / count
  if (sessions.length !== count) throw new Error("sessions are missing")
  await runtime.runPromise(Scope.close(scope, Exit.void))
  await runtime.dispose()
  return { opened, used }
}

/** Figures: microseconds per run, their ratio, bytes per session. */
export const sessionsBench = async (): Promise<Record<string, number>> => {
  const { alone, together } = await costs(1_000, 5)
  const { opened, used } = await idle(2_000)
  return {
    "one at a time, cpu us per run": Math.round(alone),
    "1000 at a time, cpu us per run": Math.round(together),
    "1000 at a time, ratio": Math.round((together / alone) * 100) / 100,
    "idle session, bytes": Math.round(opened),
    "idle session after a run, bytes": Math.round(used)
  }
}

if (import.meta.main) console.log(await sessionsBench())
