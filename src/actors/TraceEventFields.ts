/** What fields of a trace are made of. Only schemas; see `TraceEvent` for the vocabulary. */
import * as Schema from "effect/Schema"
import { attemptClasses, stages } from "../tools/AttemptClass.ts"

export const Count = Schema.Natural
export const Digest = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

/** Content that was left out: its length in bytes and its HMAC-SHA-256 under the run's key, which is in no trace. */
export const Hidden = Schema.Struct({ bytes: Count, hmac: Digest })
export type Hidden = typeof Hidden.Type

/** Text that came from a person, a file, a tool or a model. */
export const Content = Schema.Union([Schema.String, Hidden])
export type Content = typeof Content.Type

/** The same for a JSON value; with content on it is the value itself. */
export const JsonContent = Schema.Unknown

/** A field in which redaction rules replaced something: its place (JSON Pointer in `data`), how often, and what it was. */
export const RedactedField = Schema.Struct({ at: Schema.String, count: Count, bytes: Count, hmac: Digest })
export type RedactedField = typeof RedactedField.Type

export const TraceSpan = Schema.Tuple([Count, Count])

export const Problems = Schema.Array(Schema.Struct({ path: Content, reason: Content }))
export const Check = Schema.Literals(["pass", "fail", "not_evaluated"])
export const EffectKnown = Schema.Literals(["none", "present", "unknown"])

/** Class and stage of a failed attempt; see `AttemptClass`. */
export const Class = Schema.Literals(attemptClasses)
export const AtStage = Schema.Literals(stages)

/** What a call would cost and harm, in units of value; `null` is infinite. */
export const Price = Schema.NullOr(Schema.Finite)

export const EvidenceSource = Schema.Literals(["self", "probe", "sensor", "person"])

/** What a turn is for. */
export const PhaseName = Schema.Literals(["classify", "chat", "plan", "tool", "report"])

/** What holds for turns of a phase: `null` is the family's own way of reasoning, or no limit to it. */
export const phaseFields = {
  thinking: Schema.NullOr(Schema.Boolean),
  max_tokens: Count,
  max_think_tokens: Schema.NullOr(Count),
  temperature: Schema.Finite,
  top_k: Count,
  top_p: Schema.Finite,
  /** Text is shown piece by piece; otherwise whole, once it is known to be an answer. */
  stream: Schema.Boolean
}
