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

let files = 0

/** A file that was made before the run, outside its time: creating one costs more than the run (see `file create`). */
const prepared = () => {
  const next = () => TraceWriter.fileSink(join(dir, `${files++}.jsonl`))
  let sink = next()
  return {
    layer: TraceWriter.layerSink(() => sink),
    after: () => {
      const { path } = sink
      sink = next()
      const size = statSync(path!).size
      rmSync(path!)
      return size
    }
  }
}

/** A new file in the run's own time, as a program has it. */
const fresh = () => {
  let path = ""
  return {
    layer: TraceWriter.layerSink(() => {
      path = join(dir, `${files++}.jsonl`)
      return TraceWriter.fileSink(path)
    }),
    after: () => {
      const size = statSync(path).size
      rmSync(path)
      return size
    }
  }
}

const traces = {
  off: () => ({ layer: TraceWriter.layerNone, after: () => 0 }),
  memory: () => ({ layer: memory(), after: () => 0 }),
  jsonl: prepared,
  "jsonl new file": fresh
}

/** Kept in memory for as long as the run lasts. */
const memory = () => {
  let lines: Array<string> = []
  return TraceWriter.layerSink(() => {
    lines = []
    return { path: undefined, write: (text) => void lines.push(text), close: () => {} }
  })
}

const pools = {
  inline: ToolPool.layerInline(),
  pool: ToolPool.layerPiscina({ module: new URL("../src/tools/builtin/index.ts", import.meta.url), threads: 1 })
}

const candidate = (steps: number, pool: keyof typeof pools, trace: keyof typeof traces, content: boolean) => {
  const kept = traces[trace]()
  const layer = Layer.mergeAll(
    ScriptedModel.layer(endless(steps)),
    pools[pool],
    kept.layer,
    ArtifactStore.layerMemory,
    EffectLedger.layerMemory(),
    Ids.layerSequence
  )
  const runtime = ManagedRuntime.make(layer)
  const limits = { modelTurns: 100, toolCalls: 100, loopThreshold: 0 }
  const program = Effect.gen(function* () {
    const tools = yield* Registry.pick(yield* registry, ["calculate"])
    return (task: string) => Agent.run({ task, tools, limits, trace: { content } })
  })
  const ready = runtime.runPromise(program)
  const run = async () => {
    const agent = await ready
    const outcome = await runtime.runPromise(agent("What is 17.5% of 240?"))
    if (outcome.stop._tag !== "Completed" || outcome.toolCalls !== steps) throw new Error(JSON.stringify(outcome.stop))
  }
  let size = 0
  const after = () => {
    size = kept.after()
  }
  const bytes = () => size
  const name = `${steps} ${pool} ${trace}${content ? " content" : ""}`
  return { name, run, after, bytes, close: () => runtime.dispose() }
}

const evaluate = (): number => (17.5 * 240) / 100

const floors = (steps: number): ReadonlyArray<Candidate> => {
  const path = () => join(dir, `floor-${files}.jsonl`)
  let sink = fileSink(path())
  return [
    { name: `${steps} floor off`, run: () => floorRun(steps, evaluate, undefined) },
    {
      name: `${steps} floor jsonl`,
      run: () => floorRun(steps, evaluate, sink),
      after: () => {
        sink.close()
        files++
        sink = fileSink(path())
      }
    }
  ]
}

/** What a new file costs by itself. */
const create: Candidate = {
  name: "file create",
  run: async () => fileSink(join(dir, `empty-${files++}`)).close()
}

export const loopBench = async (): Promise<Record<string, number>> => {
  const results: Record<string, number> = {}
  for (const steps of [1, 3, 50]) {
    const ours = [
      candidate(steps, "inline", "off", false),
      candidate(steps, "inline", "memory", false),
      candidate(steps, "inline", "jsonl", false),
      candidate(steps, "inline", "jsonl", true),
      candidate(steps, "inline", "jsonl new file", false),
      candidate(steps, "pool", "off", false),
      candidate(steps, "pool", "jsonl", false)
    ]
    const perBlock = steps === 50 ? 10 : 60
    const timed = await measure([...(steps === 1 ? [create] : []), ...floors(steps), ...ours], {
      warmup: steps === 50 ? 60 : 1500,
      blocks: 12,
      perBlock
    })
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
