/** Traces for the report to draw, written by hand so that every time in them is known. The validator would not take them. */
import { hostile } from "./page.ts"

export interface Written {
  readonly seq: number
  readonly event_type: string
  readonly t_ms: number
  readonly step: string
  readonly data: Readonly<Record<string, unknown>>
}

type Row = readonly [type: string, millis: number, step: string, data: object]

const events = (rows: ReadonlyArray<Row>): ReadonlyArray<Written> =>
  rows.map(([event_type, t_ms, step, data], seq) => ({
    seq,
    event_type,
    t_ms,
    step,
    data: data as Written["data"]
  }))

export const textOf = (written: ReadonlyArray<Written>): string =>
  written
    .map((event) => `${JSON.stringify({ schema: "writ.trace.v1", run_id: "run-1", phase: null, ...event })}\n`)
    .join("")

const legal = { schema: "pass", scopes: "pass", pre: "pass", blocked_by: [] }
const begun = {
  task: "Pay Ann and tell her.",
  calls: "sequential",
  render: "verbatim",
  content: true,
  committed_len: 0
}
const limits = { modelTurns: 4, toolCalls: 10, wallMillis: 10_000, toolMillis: 5_000, outputTokens: 512, repairs: 3 }
const spoke = { attempt: 0, stop_reason: "eog", prefill_tokens: 40, output_tokens: 30, prefill_ms: 20, decode_ms: 400 }
const pay = { call: "call-0-0", ordinal: 0, tool: "pay" }
const send = { call: "call-0-1", ordinal: 1, tool: "send" }
const wipe = { call: "call-1-0", ordinal: 0, tool: "wipe" }

/** A run in which about everything happens: an approval, tries, a failure, a refusal, a second attempt, a turn that is gone. */
export const busy = events([
  ["run_started", 0, "run", { ...begun, limits }],
  ["message_committed", 30, "run", { role: "system", content: "You are a careful clerk." }],
  ["session_state_changed", 30, "run", { role: "system", span: [0, 40], committed_len: 40 }],
  ["message_committed", 50, "user", { role: "user", content: "Pay Ann and tell her." }],
  ["session_state_changed", 50, "user", { role: "user", span: [40, 60], committed_len: 60 }],
  ["model_call_started", 100, "model-0", { turn: 0, attempt: 0, seed: 1, max_tokens: 512, committed_len: 60 }],
  ["model_call_finished", 520, "model-0", { turn: 0, ...spoke, text: "<think>She is owed 20.</think>…" }],
  [
    "assistant_action_parsed",
    520,
    "model-0",
    { action: "tool_calls", count: 2, text: "I pay Ann, then I tell her.", reasoning: "She is owed 20." }
  ],
  ["legality_checked", 521, "model-0", { ...pay, ...legal }],
  ["approval_requested", 522, "model-0", { ...pay, risk: "high" }],
  ["approval_decided", 1_522, "model-0", { ...pay, decision: "allow", by: "console" }],
  ["tool_call_validated", 1_523, "model-0", { ...pay, risk: "high", arguments: { to: "ann", amount: 20 } }],
  ["legality_checked", 1_523, "model-0", { ...send, ...legal }],
  ["tool_call_validated", 1_523, "model-0", { ...send, risk: "network", arguments: { to: "ann" } }],
  ["effect_intent", 1_530, "tool-0", { ...pay, mode: "keyed", key: "k1", attempt: 1 }],
  ["tool_execution_started", 1_530, "tool-0", { ...pay, deadline_ms: 5_000 }],
  ["retry_scheduled", 1_930, "tool-0", { ...pay, attempt: 1, of: 3, delay_ms: 300, class: "timeout" }],
  ["effect_intent", 2_230, "tool-0", { ...pay, mode: "keyed", key: "k1", attempt: 2 }],
  ["retry_scheduled", 2_630, "tool-0", { ...pay, attempt: 2, of: 3, delay_ms: 600, class: "timeout" }],
  ["effect_intent", 3_230, "tool-0", { ...pay, mode: "keyed", key: "k1", attempt: 3 }],
  ["tool_execution_finished", 3_330, "tool-0", { ...pay, ok: true, duration_ms: 1_800, payload: { paid: 20 } }],
  ["effect_settled", 3_331, "tool-0", { ...pay, outcome: "succeeded", status: "settled_ok" }],
  ["tool_execution_started", 3_340, "tool-1", { ...send, deadline_ms: 5_000 }],
  [
    "tool_execution_finished",
    4_340,
    "tool-1",
    { ...send, ok: false, duration_ms: 1_000, failure_kind: "unavailable", class: "timeout", stage: "execution" }
  ],
  ["tool_result_committed", 4_341, "tool-1", { ...pay, answer: '{"ok":true,"result":{"paid":20}}' }],
  ["tool_result_committed", 4_341, "tool-1", { ...send, answer: '{"ok":false,"error":"unavailable"}' }],
  ["session_state_changed", 4_400, "tool-1", { role: "tool_result", span: [90, 140], committed_len: 140 }],
  ["model_call_started", 4_400, "model-1", { turn: 1, attempt: 0, seed: 2, max_tokens: 512, committed_len: 140 }],
  ["model_call_finished", 4_900, "model-1", { turn: 1, ...spoke, stop_reason: "length", text: "I will" }],
  ["model_call_started", 4_900, "model-1", { turn: 1, attempt: 1, seed: 2, max_tokens: 512, committed_len: 140 }],
  ["model_call_finished", 5_400, "model-1", { turn: 1, ...spoke, attempt: 1, text: "I will clean up." }],
  ["assistant_action_parsed", 5_400, "model-1", { action: "tool_calls", count: 1, text: "I will clean up." }],
  [
    "legality_checked",
    5_401,
    "model-1",
    {
      ...wipe,
      schema: "fail",
      scopes: "not_evaluated",
      pre: "not_evaluated",
      cause: "unknown_tool",
      blocked_by: ["schema"]
    }
  ],
  [
    "tool_call_rejected",
    5_401,
    "model-1",
    {
      ...wipe,
      kind: "unknown_tool",
      class: "schema",
      stage: "schema",
      errors: [{ path: "", reason: "there is no tool called wipe" }],
      hint: "Use pay or send."
    }
  ],
  ["model_call_started", 6_000, "model-2", { turn: 2, attempt: 0, seed: 3, max_tokens: 512, committed_len: 170 }],
  ["turn_rolled_back", 7_500, "model-2", { turn: 2, reason: "limit", committed_len: 170 }],
  ["run_terminated", 8_000, "finalize", { reason: "limit", limit_hit: "wallMillis" }]
])

/** So many events, in turns of four, with something hostile in each hundredth. */
export const long = (count: number): ReadonlyArray<Written> =>
  events(
    Array.from({ length: count }, (_, seq): Row => {
      const turn = Math.floor(seq / 4)
      const step = `model-${turn}`
      const at = seq * 5
      if (seq === 0) return ["run_started", 0, "run", { ...begun, limits: {} }]
      const evil = seq % 100 === 0 ? { evil: hostile[(seq / 100) % hostile.length]! } : {}
      const part = seq % 4
      if (part === 0) return ["model_call_started", at, step, { turn, attempt: 0, ...evil }]
      if (part === 1) return ["model_call_finished", at, step, { turn, ...spoke, text: `turn ${turn}`, ...evil }]
      return part === 2
        ? ["tool_execution_started", at, `tool-${turn}`, { call: `c${turn}`, tool: "add" }]
        : ["tool_execution_finished", at, `tool-${turn}`, { call: `c${turn}`, tool: "add", ok: turn % 50 !== 0 }]
    })
  )
