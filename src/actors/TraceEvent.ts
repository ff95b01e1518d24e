/**
 * One line of a trace: envelope, vocabulary and content rules of `writ.trace.v1`. A public format, documented event by
 * event in docs/trace.md; states of the loop do not leak into it. Reading and judging traces is not done here.
 */
import * as Schema from "effect/Schema"
import { callEvents } from "./TraceEventCalls.ts"
import { Content, Count, Digest, EffectKnown, EvidenceSource, RedactedField, TraceSpan } from "./TraceEventFields.ts"

export { Content, Hidden, JsonContent, RedactedField, TraceSpan } from "./TraceEventFields.ts"

export const schemaId = "writ.trace.v1"

/** `prev` of the first line. */
export const genesis = "0".repeat(64)

/** Which part of the context a span belongs to. */
export const Role = Schema.Literals([
  "system",
  "user",
  "assistant_tool_call",
  "assistant_malformed",
  "assistant_final",
  "assistant_partial",
  "tool_result",
  "feedback",
  /** What a resumed run evaluated again. */
  "history"
])
export type Role = typeof Role.Type

/** Where a run was when it was told to stop. */
export const CancelPoint = Schema.Literals([
  "preparing",
  "prefill",
  "generation",
  "between-calls",
  "awaiting-approval",
  "tool",
  "after-tool",
  "commit"
])
export type CancelPoint = typeof CancelPoint.Type

export const LimitKind = Schema.Literals(["model_turns", "tool_calls", "wall_time", "output_tokens", "repairs"])
export type LimitKind = typeof LimitKind.Type

/** What kind of thing a failed run failed of. */
export const FailureClass = Schema.Literals(["engine", "trace", "ledger", "artifacts", "conversation", "defect"])
export type FailureClass = typeof FailureClass.Type

const counts = {
  turns: Count,
  tool_calls: Count,
  rejected_calls: Count,
  skipped_calls: Count,
  artifacts: Count,
  output_tokens: Count,
  model_ms: Schema.Finite,
  tool_ms: Schema.Finite,
  total_ms: Schema.Finite,
  /** Lines before this one. */
  events: Count
}

/** Data of every event type. A field that may hold content is a `Content` or a `JsonContent`. */
export const vocabulary = {
  run_started: Schema.Struct({
    task: Content,
    limits: Schema.Record(Schema.String, Schema.NullOr(Schema.Finite)),
    calls: Schema.Literals(["single", "sequential", "parallel"]),
    render: Schema.Literals(["verbatim", "template"]),
    content: Schema.Boolean,
    committed_len: Count,
    /** Names of the redaction rules in force. */
    redact: Schema.optionalKey(Schema.Array(Schema.String))
  }),
  provenance: Schema.Struct({
    product: Schema.Record(Schema.String, Schema.String),
    model: Schema.Record(Schema.String, Schema.Unknown),
    codec: Schema.String,
    /** What decided on the codec: the model's template, or the caller. */
    codec_reason: Schema.optionalKey(Schema.String),
    tools: Schema.Array(
      Schema.Struct({
        name: Schema.String,
        hash: Digest,
        risk: Schema.String,
        ledger: Schema.String,
        retry: Schema.optionalKey(Schema.String),
        reversible: Schema.optionalKey(Schema.Boolean),
        evidence: Schema.optionalKey(EvidenceSource),
        compensation: Schema.optionalKey(Schema.String)
      })
    ),
    tools_hash: Digest,
    system: Content,
    policy: Schema.String,
    /** The task profile in force, who holds the permissions, what weighs proposals, and how failures are tried again. */
    gates: Schema.optionalKey(
      Schema.Struct({
        profile: Schema.Record(Schema.String, Schema.String),
        authority: Schema.String,
        governor: Schema.String,
        weights: Schema.Struct({ cost: Schema.Finite, risk: Schema.Finite }),
        retry: Schema.Struct({ attempts: Count, delay_ms: Schema.Finite, factor: Schema.Finite }),
        dry_run: Schema.Boolean,
        candidates: Count
      })
    ),
    sampling: Schema.Record(Schema.String, Schema.Finite),
    /** How turns are phased: `thinking` is `null` where the family's default holds. */
    profile: Schema.optionalKey(
      Schema.Struct({ thinking: Schema.NullOr(Schema.Boolean), constrained: Schema.optionalKey(Schema.Boolean) })
    ),
    /** Keywords of the tools' schemas that the grammar of calls does not enforce; validation does. */
    not_carried: Schema.optionalKey(
      Schema.Array(Schema.Struct({ tool: Schema.String, pointer: Schema.String, keyword: Schema.String }))
    )
  }),
  run_resumed: Schema.Struct({
    /** The run that is continued, and the first of the chain, under which its effects are keyed. */
    from_run: Schema.String,
    root_run: Schema.String,
    from_seq: Count,
    next_turn: Count,
    /** Calls of the turn that was open, in order; `answered` ones are not performed again. */
    calls: Schema.Array(Schema.Struct({ call: Schema.String, ordinal: Count, answered: Schema.Boolean }))
  }),
  message_committed: Schema.Struct({ role: Role, content: Content, tool: Schema.optionalKey(Content) }),
  session_state_changed: Schema.Struct({ role: Role, span: TraceSpan, committed_len: Count }),
  model_call_started: Schema.Struct({
    turn: Count,
    attempt: Count,
    seed: Count,
    max_tokens: Count,
    committed_len: Count,
    /** Calls of this turn are held to a grammar. */
    constrained: Schema.optionalKey(Schema.Boolean)
  }),
  /** Without content only how many there were: length and digest of each token would spell the text. */
  generation_token: Schema.Struct({
    count: Count,
    ids: Schema.optionalKey(Schema.Array(Count)),
    text: Schema.optionalKey(Content)
  }),
  model_call_finished: Schema.Struct({
    turn: Count,
    attempt: Count,
    stop_reason: Schema.Literals(["eog", "stop", "length"]),
    prefill_tokens: Count,
    output_tokens: Count,
    prefill_ms: Schema.Finite,
    decode_ms: Schema.Finite,
    /** The reasoning was closed after so many tokens, because its budget was used up. */
    think_closed: Schema.optionalKey(Count),
    text: Content
  }),
  turn_rolled_back: Schema.Struct({
    turn: Count,
    reason: Schema.Literals(["cancelled", "limit", "engine_error", "trace_error", "ledger_error", "defect"]),
    committed_len: Count
  }),
  /** One of several turns sampled at the same boundary, before one of them is generated in earnest. */
  candidate_sampled: Schema.Struct({
    turn: Count,
    id: Schema.String,
    seed: Count,
    stop_reason: Schema.Literals(["eog", "stop", "length"]),
    output_tokens: Count,
    action: Schema.Literals(["final_text", "tool_calls", "malformed"]),
    text: Content
  }),
  assistant_action_parsed: Schema.Struct({
    action: Schema.Literals(["final_text", "tool_calls", "malformed"]),
    count: Count,
    text: Schema.optionalKey(Content),
    reasoning: Schema.optionalKey(Content),
    code: Schema.optionalKey(Schema.String),
    reason: Schema.optionalKey(Content),
    excerpt: Schema.optionalKey(Content),
    position: Schema.optionalKey(Count),
    ordinal: Schema.optionalKey(Count)
  }),
  ...callEvents,
  tool_result_committed: Schema.Struct({
    call: Schema.String,
    ordinal: Count,
    tool: Content,
    ok: Schema.Boolean,
    truncated: Schema.Boolean,
    answer: Content
  }),
  tool_result_uncommitted: Schema.Struct({
    call: Schema.String,
    ordinal: Count,
    tool: Content,
    reason: Schema.String,
    effect: EffectKnown,
    answer: Content
  }),
  call_skipped: Schema.Struct({ call: Schema.String, ordinal: Count, tool: Content, reason: Schema.String }),
  feedback_committed: Schema.Struct({ code: Schema.String, content: Content }),
  feedback_uncommitted: Schema.Struct({ code: Schema.String, reason: Schema.String }),
  run_completed: Schema.Struct({ ...counts, final_text: Content }),
  run_needs_input: Schema.Struct({ ...counts, question: Content }),
  run_awaiting_approval: Schema.Struct({ ...counts, call: Schema.String }),
  run_cancelled: Schema.Struct({ ...counts, at: CancelPoint }),
  run_terminated: Schema.Struct({
    ...counts,
    reason: Schema.Literals(["limit", "context_exhausted", "loop_detected", "escalated"]),
    limit_hit: Schema.optionalKey(LimitKind),
    partial_text: Schema.optionalKey(Content),
    detail: Schema.optionalKey(Content)
  }),
  run_failed: Schema.Struct({ ...counts, class: FailureClass, error: Content })
} as const

export type EventType = keyof typeof vocabulary
export type EventData<T extends EventType> = (typeof vocabulary)[T]["Type"]

export type Phase = "parse" | "validate" | "approve" | "execute" | "decode" | "prefill"

/** What the loop hands over: the writer adds identity, order, time and chain. */
export type TraceInput = {
  readonly [T in EventType]: {
    readonly type: T
    readonly step: string
    readonly phase?: Phase
    readonly data: EventData<T>
  }
}[EventType]

/** Event types after which a run's trace holds nothing. */
export const terminalTypes: ReadonlySet<string> = new Set<EventType>([
  "run_completed",
  "run_needs_input",
  "run_awaiting_approval",
  "run_cancelled",
  "run_terminated",
  "run_failed"
])

/** A whole line as it is read back. `data` is checked against the vocabulary by the validator, not here. */
export const TraceLine = Schema.Struct({
  schema: Schema.Literal(schemaId),
  run_id: Schema.NonEmptyString,
  seq: Count,
  event_type: Schema.String,
  /** Milliseconds since the run began, three decimals. */
  t_ms: Schema.Finite,
  ts_epoch_ms: Schema.Finite,
  step: Schema.String,
  phase: Schema.NullOr(Schema.String),
  data: Schema.Record(Schema.String, Schema.Unknown),
  /** Fields of `data` in which redaction rules replaced something. */
  redacted: Schema.optionalKey(Schema.Array(RedactedField)),
  /** SHA-256 of the previous line's bytes without its newline. */
  prev: Digest
})
export type TraceLine = typeof TraceLine.Type
