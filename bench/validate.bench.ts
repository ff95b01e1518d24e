/**
 * How fast a trace is judged: the trace of a long run, with content and without, in memory and in a file. Beside it the least
 * any reader pays for the same lines, JSON.parse and SHA-256, in alternation: on a busy machine only their ratio means much.
 */
import { hash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Agent from "../src/effects/Agent.ts"
import { type Verdict, validateFile, validateText } from "../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces } from "../src/testing.ts"
import { registry } from "../src/tools/builtin/index.ts"
import * as Registry from "../src/tools/Registry.ts"

const call = '<tool_call>\n{"name": "calculate", "arguments": {"expression": "17.5*240/100"}}\n</tool_call>'

/** The trace of one run of so many calls. */
export const record = (calls: number, content: boolean): Promise<string> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const tools = yield* Registry.pick(yield* registry, ["calculate"])
      const limits = { modelTurns: Infinity, toolCalls: Infinity, loopThreshold: 0 }
      const { runId } = yield* Agent.run({ task: "What is 17.5% of 240?", tools, limits, trace: { content } })
      return (yield* MemoryTraces).text(runId)
    }).pipe(Effect.provide(layerScripted({ turns: [...Array.from({ length: calls }, () => call), "42"] })))
  )

/** What nobody can do without: every line parsed and hashed. */
const floor = (bytes: Buffer): number => {
  let lines = 0
  let start = 0
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
    const line = bytes.subarray(start, end)
    JSON.parse(line.toString())
    hash("sha256", line)
    lines += 1
    start = end + 1
  }
  return lines
}

const eventsOf = ({ counts, ok }: Verdict): number => {
  if (!ok) throw new Error("the bench's own trace is not valid")
  return counts.events
}

const rounds = 9

interface Rate {
  /** Events per second of time, and per second of this process's processor time; the best of the rounds. */
  wall: number
  cpu: number
}

const measured = async (jobs: Readonly<Record<string, () => number | Promise<number>>>) => {
  const rates = new Map<string, Rate>(Object.keys(jobs).map((name) => [name, { wall: 0, cpu: 0 }]))
  for (let round = 0; round < rounds; round++) {
    for (const [name, job] of Object.entries(jobs)) {
      const [before, used] = [performance.now(), process.cpuUsage()]
      const events = await job()
      const { system, user } = process.cpuUsage(used)
      const rate = rates.get(name)!
      rate.wall = Math.max(rate.wall, (events * 1e3) / (performance.now() - before))
      rate.cpu = Math.max(rate.cpu, (events * 1e6) / (user + system))
    }
  }
  return rates
}

export const validateBench = async (): Promise<Record<string, number>> => {
  const results: Record<string, number> = {}
  const directory = mkdtempSync(join(tmpdir(), "writ-bench-"))
  for (const content of [false, true]) {
    const name = content ? "content" : "no content"
    const bytes = Buffer.from(await record(10_000, content))
    const path = join(directory, `${name}.jsonl`)
    writeFileSync(path, bytes)
    const rates = await measured({
      floor: () => floor(bytes),
      memory: () => eventsOf(validateText(bytes)),
      file: async () => eventsOf(await Effect.runPromise(validateFile(path)))
    })
    for (const [what, { cpu, wall }] of rates) {
      results[`${name} ${what} events/s`] = Math.round(wall)
      results[`${name} ${what} events/cpu-s`] = Math.round(cpu)
    }
    results[`${name} bytes/event`] = Math.round(bytes.length / eventsOf(validateText(bytes)))
  }
  rmSync(directory, { recursive: true })
  return results
}
