/**
 * The events of one call, from legality to settlement: part of the vocabulary in `TraceEvent`, documented in docs/trace.md,
 * explained in docs/contracts.md.
 */
import * as Schema from "effect/Schema"
import {
  AtStage,
  Check,
  Class,
  Content,
  Count,
  Digest,
  EffectKnown,
  EvidenceSource,
  JsonContent,
  Price,
  Problems
} from "./TraceEventFields.ts"

export const callEvents = {
  /** One per attempt, whatever became of it. `legal` is that all three hold; a ledger hit stands for the precondition. */
  legality_checked: Schema.Struct({
    call: Schema.String,
    ordinal: Count,
    tool: Content,
    schema: Check,
    scopes: Check,
    pre: Check,
    /** Why something was not evaluated. */
    cause: Schema.optionalKey(Schema.String),
    /** The tests that stopped it. */
    blocked_by: Schema.optionalKey(Schema.Array(Schema.Literals(["schema", "scopes", "pre"]))),
    /** `seq` of the refusal of another attempt at the same resource. */
    follows_refusal_of: Schema.optionalKey(Count),
    /** `seq` of an earlier proposal of the same tool with the same arguments, which had another key. */
    resembles: Schema.optionalKey(Count),
    /** For text that never became a call; other failures say it where they are refused or finished. */
    class: Schema.optionalKey(Class),
    stage: Schema.optionalKey(AtStage)
  }),
  /** The precondition looked at again, next to the effect, after the world had time to move. */
  precondition_checked: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    pre: Check,
    after: Schema.Literals(["approval", "calls", "queue", "backoff"])
  }),
  /** All candidates of one choice, losers included. */
  proposal_scored: Schema.Struct({
    call: Schema.optionalKey(Schema.String),
    governor: Schema.String,
    weights: Schema.Struct({ cost: Schema.Finite, risk: Schema.Finite }),
    candidates: Schema.Array(
      Schema.Struct({
        id: Schema.String,
        kind: Schema.Literals(["proposal", "answer", "do_nothing", "observe"]),
        legal: Schema.Boolean,
        value: Schema.Finite,
        cost: Price,
        risk: Price,
        /** `null`: forbidden. */
        score: Price
      })
    ),
    chosen: Schema.NullOr(Schema.String)
  }),
  tool_call_validated: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    risk: Schema.String,
    arguments: JsonContent,
    effective: Schema.optionalKey(JsonContent)
  }),
  tool_call_rejected: Schema.Struct({
    call: Schema.String,
    ordinal: Count,
    tool: Content,
    kind: Schema.String,
    class: Schema.optionalKey(Class),
    stage: Schema.optionalKey(AtStage),
    effect: Schema.optionalKey(Schema.Literal("none")),
    errors: Problems,
    hint: Schema.optionalKey(Content)
  }),
  approval_requested: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    digest: Digest,
    cost: Schema.optionalKey(Price),
    hazard: Schema.optionalKey(Price),
    reversible: Schema.optionalKey(Schema.Boolean),
    /** By what success will be judged, said before anything is done. */
    evidence: Schema.optionalKey(Schema.Struct({ source: EvidenceSource, describes: Schema.String }))
  }),
  approval_decided: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    digest: Digest,
    decision: Schema.Literals(["allow", "deny", "suspend"]),
    by: Schema.String
  }),
  effect_intent: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    key: Digest,
    mode: Schema.String,
    /** Counts the tries under this key from 1. */
    attempt: Schema.optionalKey(Count),
    /** The call whose effect this one is declared to undo. */
    compensates: Schema.optionalKey(Schema.String)
  }),
  effect_settled: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    key: Digest,
    outcome: Schema.Literals(["succeeded", "failed", "unknown"]),
    replayed: Schema.Boolean,
    /** What the postcondition came to. A run that is asked the same again is given what it came to before. */
    status: Schema.optionalKey(Schema.Literals(["settled_ok", "settled_failed", "ambiguous"])),
    evidence: Schema.optionalKey(Schema.Struct({ source: EvidenceSource, seen: Schema.optionalKey(JsonContent) }))
  }),
  /** The other side took the request; whether the promise is kept is not decided yet. */
  effect_accepted: Schema.Struct({ call: Schema.String, tool: Schema.String, settle_within_ms: Schema.Finite }),
  /** A look at the world after an answer was lost. */
  effect_probed: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    key: Digest,
    found: Schema.Literals(["present", "absent", "unclear"])
  }),
  retry_scheduled: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    /** Attempts made so far, of how many, and the wait before the next one. */
    attempt: Count,
    of: Count,
    delay_ms: Schema.Finite,
    class: Class
  }),
  /** Nobody here can find out what this effect came to. All attempts, in order. */
  effect_escalated: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    key: Digest,
    attempts: Schema.Array(
      Schema.Struct({
        at_ms: Schema.Finite,
        kind: Schema.NullOr(Schema.String),
        effect: EffectKnown
      })
    )
  }),
  tool_execution_started: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    call_seq: Count,
    deadline_ms: Schema.Finite
  }),
  tool_execution_finished: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    call_seq: Count,
    ok: Schema.Boolean,
    duration_ms: Schema.Finite,
    failure_kind: Schema.NullOr(Schema.String),
    class: Schema.optionalKey(Class),
    stage: Schema.optionalKey(AtStage),
    effect: Schema.NullOr(EffectKnown),
    payload: JsonContent,
    payload_bytes: Count,
    artifact_ids: Schema.Array(Content),
    replayed: Schema.optionalKey(Schema.Boolean)
  }),
  artifact_written: Schema.Struct({
    call: Schema.String,
    artifact_id: Content,
    name: Content,
    /** In the clear even without content: it is how the file beside the trace is checked. */
    sha256: Digest,
    size_bytes: Count,
    media_type: Content,
    producer_tool: Schema.String
  }),
  late_outcome: Schema.Struct({
    call: Schema.String,
    tool: Schema.String,
    ok: Schema.Boolean,
    failure_kind: Schema.NullOr(Schema.String)
  })
} as const
