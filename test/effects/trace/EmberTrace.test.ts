import { assert, describe, it } from "@effect/vitest"
import { fromEmber } from "../../../src/effects/trace/EmberTrace.ts"
import type { TraceRecord } from "../../../src/effects/trace/TraceReader.ts"
import { fateOf, takeApart } from "../../../src/effects/trace/TraceRun.ts"
import { isLeftOut } from "../../../src/effects/trace/TraceValues.ts"
import { emberText, recordsOf } from "../../kit/records.ts"

const event = (event_type: string, step: string, data: Record<string, unknown>, phase: string | null = null) =>
  ({ schema: "ember.agent.trace.v1", run_id: "e", seq: 0, t_ms: 0, event_type, step, phase, data }) as TraceRecord

const validated = (tool: string, n: number) =>
  event("tool_call_validated", "model-0", { tool, arguments: { n } }, "validate")
const started = (tool: string, n: number) =>
  event("tool_execution_started", `tool-${n}`, { tool, call_seq: n + 1 }, "execute")
const finished = (tool: string, n: number) =>
  event("tool_execution_finished", `tool-${n}`, { tool, ok: true, payload: n }, "execute")
const told = (tool: string, n: number) => event("tool_result_committed", `tool-${n}`, { tool, ok: true })
const turn = (n: number) => event("model_call_started", `model-${n}`, { step_index: n })

describe("a trace of the predecessor", () => {
  it("is taken apart like one of Writ's", () => {
    const run = takeApart(recordsOf(emberText))
    assert.strictEqual(run.schema, "ember.agent.trace.v1")
    assert.lengthOf(run.records, 17)
    assert.lengthOf(run.turns, 2)
    assert.deepStrictEqual(
      run.calls.map(({ id, ordinal, tool, turn }) => ({ id, ordinal, tool, turn })),
      [{ id: "call-0-0", ordinal: 0, tool: "calculate", turn: 0 }]
    )
    assert.strictEqual(fateOf(run.calls[0]!, run), "succeeded")
    assert.isTrue(run.content)
    assert.strictEqual(run.provenance?.data["codec"], "qwen2.5-tool-call-v1")
  })

  it("pairs what was executed with what was validated, past a call that was denied and one that a limit stopped", () => {
    const denied = event(
      "tool_call_rejected",
      "model-0",
      { kind: "denied_by_policy", tool: "a", reason: "no" },
      "approve"
    )
    const records = [
      turn(0),
      validated("a", 1),
      denied,
      validated("b", 2),
      validated("b", 3),
      started("b", 0),
      finished("b", 0),
      told("b", 0),
      turn(1)
    ]
    const run = takeApart(records)
    assert.deepStrictEqual(
      run.calls.map((call) => [call.id, fateOf(call, run)]),
      [
        ["call-0-0", "denied"],
        ["call-0-1", "succeeded"],
        ["call-0-2", "unfinished"]
      ]
    )
  })

  it("keeps what stands for content that was left out", () => {
    const sha256 = "a".repeat(64)
    const [message, spoke, end] = fromEmber([
      event("message_committed", "user", { role: "user", content_omitted: true, bytes: 3, sha256 }),
      event("model_call_finished", "model-0", { text_sha256: sha256 }),
      event("run_completed", "finalize", { final_text_sha256: sha256 })
    ])
    for (const value of [message?.data["content"], spoke?.data["text"], end?.data["final_text"]])
      assert.isTrue(isLeftOut(value))
  })

  it("keeps events that nobody knows", () => {
    const [kept] = fromEmber([event("something_new", "run", { a: 1 })])
    assert.deepStrictEqual([kept?.event_type, kept?.data], ["something_new", { a: 1 }])
  })
})
