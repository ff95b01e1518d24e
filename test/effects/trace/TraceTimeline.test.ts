import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { vocabulary } from "../../../src/actors/TraceEvent.ts"
import { Lines, type TraceRecord } from "../../../src/effects/trace/TraceReader.ts"
import { rowOf, show, Totals } from "../../../src/effects/trace/TraceTimeline.ts"
import { type ContractedName, contracted } from "../../kit/contractTraces.ts"
import { play } from "../../kit/run.ts"
import { call } from "../../kit/script.ts"

const recordsOf = (text: string): ReadonlyArray<TraceRecord> => {
  const lines = new Lines()
  return [...lines.push(Buffer.from(text)), ...lines.end()].flatMap((item) =>
    item._tag === "Event" ? [item.record] : []
  )
}

const record = (event_type: string, data: Record<string, unknown>, schema = "writ.trace.v1"): TraceRecord => ({
  schema,
  run_id: "r",
  seq: 0,
  event_type,
  t_ms: 1500,
  step: "model-0",
  phase: null,
  data
})

const summaryOf = (...records: ReadonlyArray<TraceRecord>) => {
  const totals = new Totals()
  for (const one of records) totals.add(one)
  return totals.summary
}

describe("a timeline", () => {
  it.effect("shows calls, results, refusals and the answer of a run, and counts what the run counted", () =>
    Effect.gen(function* () {
      const turns = [call("add", { a: 2, b: 3 }), call("nope", {}), "<tool_call>\n{", "It is 5."]
      const { outcome, text } = yield* play(turns)
      const rows = recordsOf(text).flatMap((one) => rowOf(one) ?? [])
      const labels = rows.map(({ label }) => label)
      for (const label of ["run start", "call", "ok", "REJECTED", "MALFORMED", "feedback", "final answer"]) {
        assert.include(labels, label)
      }
      assert.include(rows.find(({ label }) => label === "call")?.detail, '{"a":2,"b":3}')
      assert.strictEqual(rows.at(-1)?.detail, "It is 5.")
      const summary = summaryOf(...recordsOf(text))
      assert.deepStrictEqual(
        [summary.status, summary.turns, summary.toolCalls, summary.rejected, summary.outputTokens],
        ["completed", outcome.turns, outcome.toolCalls, outcome.rejected, outcome.usage.outputTokens]
      )
    })
  )

  it.effect("says what was not recorded instead of showing nothing", () =>
    Effect.gen(function* () {
      const { text } = yield* play([call("add", { a: 2, b: 3 }), "It is 5."], { trace: { content: false } })
      const rows = recordsOf(text).flatMap((one) => rowOf(one) ?? [])
      assert.strictEqual(rows.at(-1)?.detail, "(8 bytes, not recorded)")
      assert.isFalse(summaryOf(...recordsOf(text)).content)
    })
  )

  it("tells every way a run can end, and that it has not", () => {
    const ends = [
      [record("run_cancelled", { at: "generation" }), "cancelled", "generation"],
      [record("run_terminated", { reason: "limit", limit_hit: "wall_time" }), "limit", "wall_time"],
      [record("run_terminated", { reason: "loop_detected", detail: "x" }), "loop detected", "x"],
      [record("run_failed", { error: "the disk is full" }), "failed", "the disk is full"],
      [record("run_needs_input", { question: "which?" }), "needs input", "which?"],
      [record("model_call_started", { turn: 0 }), "unfinished", ""]
    ] as const
    for (const [event, status, detail] of ends) {
      const summary = summaryOf(event)
      assert.deepStrictEqual([summary.status, summary.statusDetail], [status, detail])
    }
  })

  it("reads the other schema's names for the same things", () => {
    const ember = (type: string, data: Record<string, unknown>) => record(type, data, "ember.agent.trace.v1")
    const finished = rowOf(
      ember("tool_execution_finished", { tool: "calculate", ok: true, duration_ms: 2.84, payload_excerpt: "21.5" })
    )
    assert.deepStrictEqual([finished?.label, finished?.detail], ["ok", "calculate · 2.8 ms · 21.5"])
    const summary = summaryOf(
      ember("provenance", { protocol_id: "qwen2.5-tool-call-v1", model: { model_path: "m.gguf" } }),
      ember("model_call_finished", { output_tokens_committed: 7, prefill_ms: 1, decode_ms: 2 }),
      ember("run_terminated", { limit_hit: "max_steps" })
    )
    assert.deepStrictEqual(
      [summary.model, summary.codec, summary.outputTokens, summary.modelMillis, summary.status],
      ["m.gguf", "qwen2.5-tool-call-v1", 7, 3, "limit"]
    )
  })

  it.effect("tells choices, tries, looks, settlements with their evidence, and escalations", () =>
    Effect.gen(function* () {
      const rows = function* (name: ContractedName) {
        const text = yield* contracted[name]
        return recordsOf(text).flatMap((one) => rowOf(one) ?? [])
      }
      const detail = (all: ReadonlyArray<{ label: string; detail: string }>, label: string) =>
        all.find((row) => row.label === label)?.detail ?? `no row ${label}`
      const lost = yield* rows("not worth it")
      assert.strictEqual(detail(lost, "NOT CHOSEN"), "do_nothing is best · call-0-0 -3.5, do_nothing 0, observe 0")
      assert.include(detail(lost, "REJECTED"), "[not_chosen] · authorization, by governor")
      const retried = yield* rows("retried by key")
      assert.strictEqual(detail(retried, "retry"), "pay · try 2 of 4 in 1000 ms · timeout")
      assert.strictEqual(detail(retried, "try again"), "pay · external · try 2")
      assert.strictEqual(detail(retried, "settled"), 'pay · settled_ok · by probe: {"balance":1}')
      const unknown = yield* rows("lost and unclear")
      assert.strictEqual(detail(unknown, "looked"), "book · its effect is unclear")
      assert.match(detail(unknown, "ESCALATED"), /^book · nobody here knows its outcome, after /)
      assert.include(detail(yield* rows("no longer ready"), "NOT READY"), "after the approval")
      assert.include(detail(yield* rows("denied twice"), "notice"), "follows the refusal at 11")
    })
  )

  it("has words for every event of the vocabulary, whatever its data", () => {
    for (const type of Object.keys(vocabulary)) {
      for (const schema of ["writ.trace.v1", "ember.agent.trace.v1"]) {
        assert.notStrictEqual(rowOf(record(type, {}, schema))?.label, type)
      }
    }
  })

  it("shows an event it does not know by its type", () => {
    assert.deepStrictEqual(rowOf(record("moon_phase", { score: 1 }))?.label, "moon_phase")
    assert.strictEqual(rowOf(record("constructor", {}))?.label, "constructor")
    assert.strictEqual(show({ bytes: 3 }), '{"bytes":3}')
  })
})
