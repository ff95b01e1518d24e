import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { replay } from "../../../src/effects/trace/Replay.ts"
import { readLine, type TraceRecord } from "../../../src/effects/trace/TraceReader.ts"
import { playRandom, samples } from "../../kit/randomRuns.ts"
const records = (text: string): ReadonlyArray<TraceRecord> =>
  text.split("\n").filter((line) => line !== "").map((line) => readLine(Buffer.from(line)) as TraceRecord)
it.effect("random", () => Effect.gen(function* () {
  const ends: Record<string, number> = {}
  let bad = 0
  const before = performance.now()
  for (const spec of samples(Number(process.env.N ?? 300), Number(process.env.S ?? 1))) {
    const { text, registry } = yield* playRandom(spec)
    const all = records(text)
    const last = all.at(-1)!
    const end = last.event_type + ":" + String(last.data["at"] ?? last.data["limit_hit"] ?? last.data["reason"] ?? last.data["class"] ?? "")
    ends[end] = (ends[end] ?? 0) + 1
    const verdict = yield* replay(all, { tools: registry })
    if (!verdict.same || verdict.compared !== all.length) {
      if (bad++ < 4) console.log(JSON.stringify(spec), JSON.stringify(verdict, (k, v) => v === undefined ? "undefined" : v), all.slice(Math.max(0, verdict.compared - 2), verdict.compared + 4).map((r) => r.event_type + JSON.stringify(r.data)).join("\n"), end)
    }
  }
  console.log(bad, ends, performance.now() - before)
  assert.strictEqual(bad, 0)
}), 600_000)
