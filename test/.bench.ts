import * as Effect from "effect/Effect"
import * as Agent from "../src/effects/Agent.ts"
import { validateText } from "../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces } from "../src/testing.ts"
import { registry } from "../src/tools/builtin/index.ts"
import * as Registry from "../src/tools/Registry.ts"
import { writeFileSync, existsSync, readFileSync } from "node:fs"
const call = '<tool_call>\n{"name": "calculate", "arguments": {"expression": "17.5*240/100"}}\n</tool_call>'
const path = "/tmp/v-bench.jsonl"
if (!existsSync(path)) writeFileSync(path, await Effect.runPromise(Effect.gen(function* () {
  const tools = yield* Registry.pick(yield* registry, ["calculate"])
  const { runId } = yield* Agent.run({ task: "x", tools, limits: { modelTurns: Infinity, toolCalls: Infinity, loopThreshold: 0 }, trace: { content: false } })
  return (yield* MemoryTraces).text(runId)
}).pipe(Effect.provide(layerScripted({ turns: [...Array.from({ length: 10000 }, () => call), "42"] }))) as any) as string)
const bytes = readFileSync(path)
for (let i = 0; i < 6; i++) { const t = performance.now(); const c = process.cpuUsage(); const v = validateText(bytes); const d = process.cpuUsage(c); console.log(v.ok, Math.round(v.counts.events / (performance.now() - t) * 1000), "cpu", Math.round(v.counts.events / (d.user + d.system) * 1e6)) }
