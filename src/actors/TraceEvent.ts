/**
 * One line of a trace: envelope, vocabulary and content rules of `writ.trace.v1`. A public format, documented event by
 * event in docs/trace.md; states of the loop do not leak into it. Reading and judging traces is not done here.
 */
import * as Schema from "effect/Schema"
import { callEvents } from "./TraceEventCalls.ts"
import {
  Content,
  Count,
  Digest,
  EffectKnown,
  EvidenceSource,
  PhaseName,
  phaseFields,
  RedactedField,
  TraceSpan
} from "./TraceEventFields.ts"

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
  /** A question to the user that is no call. */
  "assistant_question",
  "tool_result",
  "feedback",
  /** What was evaluated again, by a resumed run or after a compaction. */
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
    /** The call of another run that this one is performed for; how many runs are around it. */
    parent: Schema.optionalKey(Schema.Struct({ run: Schema.String, call: Schema.String, depth: Count })),
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
        compensation: Schema.optionalKey(Schema.String),
        /** Each of its calls is a run of its own. */
        run: Schema.optionalKey(Schema.Boolean)
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
    /** What happens when the next turn does not fit the context, and how full it may be after a compaction. */
    context: Schema.optionalKey(
      Schema.Struct({ on_full: Schema.Literals(["refuse", "compact"]), keep: Schema.Finite })
    ),
    sampling: Schema.Record(Schema.String, Schema.Finite),
    /** How turns are phased: `thinking` is `null` where the family's default holds. */
    profile: Schema.optionalKey(
      Schema.Struct({
        thinking: Schema.NullOr(Schema.Boolean),
        constrained: Schema.optionalKey(Schema.Boolean),
        /** All turns are in this phase. */
        phase: Schema.optionalKey(PhaseName),
        /** A turn that is a question and nothing else asks the user. */
        clarify: Schema.optionalKey(Schema.Boolean)
      })
    ),
    /** What holds for turns of each phase. */
    phases: Schema.optionalKey(Schema.Record(Schema.String, Schema.Struct(phaseFields))),
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
    /** What the parts before have used of budgets that go on. */
    spent: Schema.optionalKey(Schema.Struct({ tool_calls: Count, repairs: Count, wall_ms: Schema.Finite })),
    /** Calls of the turn that was open, in order; `answered` ones are not performed again. */
    calls: Schema.Array(Schema.Struct({ call: Schema.String, ordinal: Count, answered: Schema.Boolean })),
    /** Of each message that was evaluated again, in order. */
    spans: Schema.optionalKey(Schema.Array(TraceSpan)),
    /** A state that was kept beside the run: loaded, so that nothing was evaluated again, or refused, so that everything was. */
    kept_state: Schema.optionalKey(Schema.Literals(["loaded", "refused"]))
  }),
  /** The oldest exchanges left the context to make room; the span of role `history` that follows is what came back. */
  context_compacted: Schema.Struct({
    for: Schema.Literals(["turn", "message"]),
    /** Tokens there was to be room for, and how many the context held. */
    needed: Count,
    before: Count,
    /** Tokens of system text and tools, which stayed. */
    prefix: Count,
    dropped: TraceSpan,
    /** Messages and exchanges that are gone, and exchanges that are gone from the session so far. */
    entries: Count,
    exchanges: Count,
    removed: Count,
    /** Of each message that came back, the marker first; and how many did not, because the run was stopped. */
    kept: Schema.Array(TraceSpan),
    left: Count,
    /** What the model is told instead. */
    marker: Content
  }),
  /** Does the run talk or work? After the beginning: the talk handed over, and the context is the task's own. */
  routed: Schema.Struct({
    route: Schema.Literals(["chat", "task"]),
    by: Schema.Literals(["model", "caller", "chat"]),
    reason: Schema.Literals([
      "word",
      "said",
      "empty",
      "both",
      "garbage",
      "overrun",
      "no_grammar",
      "engine_error",
      "handed_over"
    ]),
    /** What the model wrote, where it was asked, and what that took. */
    text: Schema.optionalKey(Content),
    output_tokens: Schema.optionalKey(Count),
    duration_ms: Schema.optionalKey(Schema.Finite),
    committed_len: Count
  }),
  /** The turns from here on are written in this phase. */
  phase_started: Schema.Struct({ turn: Count, phase: PhaseName, ...phaseFields }),
  message_committed: Schema.Struct({ role: Role, content: Content, tool: Schema.optionalKey(Content) }),
  session_state_changed: Schema.Struct({ role: Role, span: TraceSpan, committed_len: Count }),
  model_call_started: Schema.Struct({
    turn: Count,
    attempt: Count,
    seed: Count,
    max_tokens: Count,
    committed_len: Count,
    /** Calls of this turn are held to a grammar. */
    constrained: Schema.optionalKey(Schema.Boolean),
    phase: Schema.optionalKey(PhaseName)
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
    reason: Schema.Literals([
      "cancelled",
      "limit",
      "engine_error",
      "trace_error",
      "ledger_error",
      "defect",
      "handed_over"
    ]),
    committed_len: Count
  }),
  /** The engine died and was opened again; the session is at its last boundary. After a rollback: the turn may start again. */
  engine_restarted: Schema.Struct({
    cause: Schema.Literals(["crashed", "stalled", "out_of_memory"]),
    /** How often the engine had been opened again by then, for whichever session. */
    restarts: Count,
    /** Tokens of the context that were evaluated again. */
    tokens: Count
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
    action: Schema.Literals(["final_text", "tool_calls", "malformed", "clarify", "hand_over"]),
    count: Count,
    /** The text beside the calls is a question to the user: none of them runs. */
    asks: Schema.optionalKey(Schema.Boolean),
    text: Schema.optionalKey(Content),
    reasoning: Schema.optionalKey(Content),
    code: Schema.optionalKey(Schema.String),
    reason: Schema.optionalKey(Content),
    excerpt: Schema.optionalKey(Content),
    position: Schema.optionalKey(Count),
    ordinal: Schema.optionalKey(Count)
  }),
  ...callEvents,
  /** A call that is a run of its own: its name, and how many runs are around that. */
  child_run_started: Schema.Struct({ call: Schema.String, tool: Schema.String, run: Schema.String, depth: Count }),
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
