/**
 * How fast a trace is judged: a long run's trace, chained, without content and with it, from memory (reading, hashing and
 * judging) and from a file.
 */
import { hash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Agent from "../src/effects/Agent.ts"
import { validateFile, validateText } from "../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces } from "../src/testing.ts"
import { registry } from "../src/tools/builtin/index.ts"
import * as Registry from "../src/tools/Registry.ts"

const call = '<tool_call>\n{"name": "calculate", "arguments": {"expression": "17.5*240/100"}}\n</tool_call>'

/** One run of so many calls. */
const record = (calls: number, content: boolean): Promise<string> =>
  Effect.runPromise(
    Effect.gen(function* () {
      const tools = yield* Registry.pick(yield* registry, ["calculate"])
      const limits = { modelTurns: Infinity, toolCalls: Infinity, loopThreshold: 0 }
      const { runId } = yield* Agent.run({ task: "What is 17.5% of 240?", tools, limits, trace: { content } })
      return (yield* MemoryTraces).text(runId)
    }).pipe(Effect.provide(layerScripted({ turns: [...Array.from({ length: calls }, () => call), "42"] })))
  )

const median = (values: ReadonlyArray<number>): number => [...values].sort((a, b) => a - b)[values.length >> 1]!

const rounds = 7

/** Events per second of `judge`, and that it found nothing wrong. */
const rate = async (judge: () => Promise<{ readonly ok: boolean; readonly counts: { readonly events: number } }>) => {
  const rates: Array<number> = []
  for (let round = 0; round < rounds; round++) {
    const before = performance.now()
    const verdict = await judge()
    rates.push((verdict.counts.events / (performance.now() - before)) * 1000)
    if (!verdict.ok) throw new Error("the bench's own trace is not valid")
  }
  return Math.round(median(rates))
}

export const validateBench = async (): Promise<Record<string, number>> => {
  const results: Record<string, number> = {}
  const directory = mkdtempSync(join(tmpdir(), "writ-bench-"))
  for (const content of [false, true]) {
    const name = content ? "content" : "no content"
    const bytes = Buffer.from(await record(10_000, content))
    const path = join(directory, `${name}.jsonl`)
    writeFileSync(path, bytes)
    results[`${name} events/s`] = await rate(async () => validateText(bytes))
    results[`${name} file events/s`] = await rate(() => Effect.runPromise(validateFile(path)))
    results[`${name} bytes/event`] = Math.round(bytes.length / validateText(bytes).counts.events)
  }
  rmSync(directory, { recursive: true })
  const line = Buffer.alloc(450, "x")
  const before = performance.now()
  for (let at = 0; at < 100_000; at++) hash("sha256", line)
  results["floor: hashing alone lines/s"] = Math.round(100_000 / ((performance.now() - before) / 1000))
  return results
}
