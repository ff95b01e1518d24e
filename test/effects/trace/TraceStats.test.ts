import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import type { TraceRecord } from "../../../src/effects/trace/TraceReader.ts"
import { percentile, percentilesOf, RunCounter, statsOf } from "../../../src/effects/trace/TraceStats.ts"
import { corrupt } from "../../kit/corrupt.ts"
import { emberText, recordsOf } from "../../kit/records.ts"
import { type GoodName, good } from "../../kit/traces.ts"

const counted = (text: string) => {
  const counter = new RunCounter()
  for (const record of recordsOf(text)) counter.see(record)
  return counter.end("a.jsonl")
}

describe("statistics of runs", () => {
  it.effect("count outcomes, failures and rejections by kind", () =>
    Effect.gen(function* () {
      const names = [
        "one tool",
        "failing tool",
        "crashing tool",
        "unknown tool",
        "malformed",
        "engine failure",
        "model turns",
        "loop"
      ] as const
      const runs = yield* Effect.forEach(names, (name: GoodName) => Effect.map(good[name], counted))
      const stats = statsOf(runs)
      assert.deepEqual({ ...stats.outcomes }, { completed: 5, failed: 1, limit: 1, "loop detected": 1 })
      assert.deepEqual({ ...stats.failures }, { execution_failed: 1, crashed: 1 })
      assert.strictEqual(stats.rejections["unknown_tool"], 1)
      assert.strictEqual(stats.classes["postcondition"], 2)
      assert.isAtLeast(stats.classes["schema"] ?? 0, 2)
      assert.strictEqual(
        Object.values(stats.rejections).reduce((a, b) => a + b),
        2
      )
      assert.deepEqual({ ...stats.failedOf }, { engine: 1 })
      assert.strictEqual(
        stats.calls,
        runs.reduce((sum, run) => sum + run.calls, 0)
      )
    })
  )

  it.effect("add up what the calls that ran cost, each once, and say nothing where no price is on record", () =>
    Effect.gen(function* () {
      const text = yield* good["one tool"]
      const bare = counted(text)
      const event = (event_type: string, data: object): TraceRecord => ({
        ...recordsOf(text)[0]!,
        event_type,
        data: data as TraceRecord["data"]
      })
      const weighed = (call: string, cost: number | null) =>
        event("proposal_scored", {
          call,
          candidates: [
            { id: "do_nothing", cost: 0 },
            { id: call, cost }
          ]
        })
      const counter = new RunCounter()
      const ran = (call: string) => event("tool_execution_started", { call })
      for (const record of [
        weighed("a", 2),
        event("approval_requested", { call: "a", cost: 2 }),
        ran("a"),
        ran("a"),
        event("approval_requested", { call: "b", cost: 0.5 }),
        ran("b"),
        weighed("never ran", 100),
        weighed("infinite", null),
        ran("infinite"),
        ran("unpriced")
      ]) {
        counter.see(record)
      }
      const priced = counter.end("b.jsonl")
      assert.deepStrictEqual([bare.cost, priced.cost], [undefined, 2.5])
      assert.deepStrictEqual([statsOf([bare]).cost, statsOf([bare, priced, priced]).cost], [undefined, 5])
    })
  )

  it.effect("hold times of turns, tools and runs apart, and leave out runs without an end", () =>
    Effect.gen(function* () {
      const text = corrupt(yield* good["two calls"], (lines) => {
        let n = 0
        for (const line of lines) {
          if (line.event_type === "tool_execution_finished") line.data["duration_ms"] = 10 * ++n
          if (line.event_type === "model_call_finished") Object.assign(line.data, { prefill_ms: 5, decode_ms: 100 })
          if (line.event_type === "run_completed") line.data["total_ms"] = 300
        }
      })
      const run = counted(text)
      const unfinished = counted(text.split("\n").slice(0, -2).join("\n"))
      assert.strictEqual(unfinished.status, "unfinished")
      const { model, outputTokens, tokensPerSecond, tools, total } = statsOf([run, unfinished])
      assert.deepStrictEqual(tools, { count: 4, min: 10, p50: 10, p90: 20, p99: 20, max: 20 })
      assert.deepStrictEqual([model?.p50, model?.count], [105, 4])
      assert.deepStrictEqual([total?.count, total?.max], [1, 300])
      assert.strictEqual(tokensPerSecond, (outputTokens * 1000) / 400)
    })
  )

  it("give percentiles that were measured: at least so many values are no larger, and fewer are smaller", () => {
    assert.deepStrictEqual(
      [1, 50, 90, 99, 100].map((p) =>
        percentile(
          Array.from({ length: 100 }, (_, at) => at + 1),
          p
        )
      ),
      [1, 50, 90, 99, 100]
    )
    assert.isUndefined(percentilesOf([]))
    fc.assert(
      fc.property(fc.array(fc.integer(), { minLength: 1 }), fc.integer({ min: 1, max: 100 }), (values, percent) => {
        const found = percentile(
          [...values].sort((a, b) => a - b),
          percent
        )
        const share = (percent / 100) * values.length
        assert.include(values, found)
        assert.isAtLeast(values.filter((value) => value <= found).length, share)
        assert.isBelow(values.filter((value) => value < found).length, share)
      })
    )
  })

  it("read Ember's runs too", () => {
    const run = counted(emberText)
    assert.deepInclude(run, { status: "completed", turns: 2, calls: 1, outputTokens: 39, prefillTokens: 6 })
    assert.deepStrictEqual(run.modelMillis, [322.75, 129])
  })
})
