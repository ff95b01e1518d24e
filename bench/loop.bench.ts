/** What one scripted run costs: one, three and fifty calls; tool here or in the pool; no record, in memory, in a file. */

import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as ArtifactStore from "../src/actors/ArtifactStore.ts"
import * as EffectLedger from "../src/actors/EffectLedger.ts"
import * as Ids from "../src/actors/Ids.ts"
import * as ToolPool from "../src/actors/ToolPool.ts"
import * as TraceWriter from "../src/actors/TraceWriter.ts"
import * as Agent from "../src/effects/Agent.ts"
import * as ScriptedModel from "../src/engine/ScriptedModel.ts"
import { registry } from "../src/tools/builtin/index.ts"
import * as Registry from "../src/tools/Registry.ts"
import { fileSink, floorRun } from "./floor.ts"
import { type Candidate, measure } from "./measure.ts"

const call = '<tool_call>\n{"name": "calculate", "arguments": {"expression": "17.5*240/100"}}\n</tool_call>'

/** A script that never runs out: the same run again and again. */
const endless = (steps: number): ScriptedModel.Script => {
  const run = [...Array.from({ length: steps }, () => call), "17.5% of 240 is 42."]
  const turns = new Proxy(run, { get: (target, key) => target[Number(key) % target.length] })
  return { turns }
}

const dir = mkdtempSync(join(tmpdir(), "writ-bench-"))

let directories = 0

const traces = {
  off: () => TraceWriter.layerNone,
  memory: () => TraceWriter.layerMemory,
  jsonl: () => {
    const own = join(dir, String(directories++))
    return TraceWriter.layerFile((runId) => join(own, `${runId}.jsonl`))
  }
}

const pools = {
  inline: ToolPool.layerInline(),
  pool: ToolPool.layerPiscina({ module: new URL("../src/tools/builtin/index.ts", import.meta.url), threads: 1 })
}

const candidate = (steps: number, pool: keyof typeof pools, trace: keyof typeof traces, content: boolean) => {
  const layer = Layer.mergeAll(
    ScriptedModel.layer(endless(steps)),
    pools[pool],
    traces[trace](),
    ArtifactStore.layerMemory,
    EffectLedger.layerMemory(),
    Ids.layerSequence
  )
  const runtime = ManagedRuntime.make(layer)
  const limits = { modelTurns: 100, toolCalls: 100, loopThreshold: 0 }
  let lastPath: string | undefined
  const program = Effect.gen(function* () {
    const tools = yield* Registry.pick(yield* registry, ["calculate"])
    return (task: string) => Agent.run({ task, tools, limits, trace: { content } })
  })
  const ready = runtime.runPromise(program)
  const run = async () => {
    const agent = await ready
    const outcome = await runtime.runPromise(agent("What is 17.5% of 240?"))
    if (outcome.stop._tag !== "Completed" || outcome.toolCalls !== steps) throw new Error(JSON.stringify(outcome.stop))
    lastPath = outcome.tracePath
  }
  let size = 0
  const after = () => {
    if (lastPath === undefined) return
    size = statSync(lastPath).size
    rmSync(lastPath)
  }
  const bytes = () => size
  const name = `${steps} ${pool} ${trace}${content ? " content" : ""}`
  return { name, run, after, bytes, close: () => runtime.dispose() }
}

const evaluate = (): number => (17.5 * 240) / 100

const floors = (steps: number): ReadonlyArray<Candidate> => [
  { name: `${steps} floor off`, run: () => floorRun(steps, evaluate, undefined) },
  {
    name: `${steps} floor jsonl`,
    run: async () => {
      const sink = fileSink(join(dir, "floor.jsonl"))
      await floorRun(steps, evaluate, sink)
      sink.close()
    },
    after: () => rmSync(join(dir, "floor.jsonl"))
  }
]

export const loopBench = async (): Promise<Record<string, number>> => {
  const results: Record<string, number> = {}
  for (const steps of [1, 3, 50]) {
    const ours = [
      candidate(steps, "inline", "off", false),
      candidate(steps, "inline", "memory", false),
      candidate(steps, "inline", "jsonl", false),
      candidate(steps, "inline", "jsonl", true),
      candidate(steps, "pool", "off", false),
      candidate(steps, "pool", "jsonl", false)
    ]
    const perBlock = steps === 50 ? 10 : 60
    const timed = await measure([...floors(steps), ...ours], { warmup: steps === 50 ? 60 : 1500, blocks: 12, perBlock })
    for (const [name, { median, quiet }] of Object.entries(timed)) {
      results[`${name} us`] = median
      results[`${name} quiet us`] = quiet
    }
    for (const { bytes, name } of ours) if (bytes() > 0) results[`${name} trace bytes`] = bytes()
    for (const { close } of ours) await close()
  }
  rmSync(dir, { recursive: true, force: true })
  return results
}

if (import.meta.main) console.log(await loopBench())
