/**
 * What a model asked for and what came back: the vocabulary that codecs, pool, ledger, trace and loop share.
 * Nothing here runs anything.
 */
import type { Json, JsonObject } from "./JsonText.ts"

/** A tool as a model is shown it. `parameters` is a JSON Schema of type object. */
export interface ToolSpec {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
}

/** One call as the codec read it: syntactically sound, not yet checked against any tool. `ordinal` counts from 0 inside its turn. */
export interface ProposedCall {
  readonly ordinal: number
  readonly name: string
  readonly arguments: JsonObject
  /** The model's own id, where its family has one. */
  readonly id?: string
}

/** One thing that is wrong with a value: where, a stable code, and a reason in words for a model. */
export interface Problem {
  /** RFC 6901 pointer, `""` for the whole value. */
  readonly pointer: string
  /** The same place in dotted form (`rows[0].id`), which is what a model is shown. */
  readonly path: string
  readonly code: ProblemCode
  readonly reason: string
}

export type ProblemCode =
  | "missing"
  | "unknown_field"
  | "wrong_type"
  | "not_in_enum"
  | "constraint"
  | "depth_exceeded"
  | "composition"

/** Why a call has no result. Closed: each kind has its own wording, its class (`AttemptClass`) and its effect claim. */
export const failureKinds = [
  "malformed_call",
  "unknown_tool",
  "invalid_arguments",
  /** A permission is missing. */
  "unauthorized",
  /** Whoever was asked said no, or a rule did. */
  "refused",
  /** Doing nothing, or looking first, was worth more. */
  "not_chosen",
  "precondition_failed",
  "postcondition_failed",
  "not_executed",
  /** Everything was checked and nothing done: that is what was asked for. */
  "dry_run",
  "not_found",
  "execution_failed",
  /** The other side could not be reached, or gave no answer. */
  "unavailable",
  "timed_out",
  "crashed",
  "bad_result",
  "cancelled",
  "idempotency_conflict",
  "stale_contract",
  /** A term of the tool's own contract failed. */
  "contract_fault",
  "outcome_unknown"
] as const
export type FailureKind = (typeof failureKinds)[number]

/** What is known about the outside world after a call that did not succeed. */
export type EffectClaim = "none" | "present" | "unknown"

/** Bytes a tool hands over to be published under `name` once its call has succeeded. */
export interface ProducedArtifact {
  readonly name: string
  readonly mediaType: string
  readonly bytes: Uint8Array
}

/** A value that is bound to a staged statement. A `boolean` is 0 or 1 in SQLite, a `bigint` has 64 bits. */
export type StagedValue = null | boolean | number | bigint | string | Uint8Array

/**
 * One SQL statement a tool hands over, to be executed in the transaction that records the call's outcome. Values are bound,
 * as `$1`, `$2` and so on; `rows` is how many rows it has to change, or to find if it looks: otherwise nothing of the call is kept.
 */
export interface StagedStatement {
  readonly sql: string
  readonly parameters: ReadonlyArray<StagedValue>
  readonly rows?: number
}

export interface Succeeded {
  readonly _tag: "Succeeded"
  readonly result: Json
  readonly artifacts: ReadonlyArray<ProducedArtifact>
  /** What is still to be done, with the ledger's entry. Absent where the tool has done its work by itself. */
  readonly staged?: ReadonlyArray<StagedStatement>
  readonly millis: number
}

export interface Failed {
  readonly _tag: "Failed"
  readonly kind: FailureKind
  readonly errors: ReadonlyArray<{ readonly path: string; readonly reason: string }>
  readonly effect: EffectClaim
  readonly millis: number
  /** What the model could do about it. */
  readonly hint?: string
  /** What a tool answered that is not its result: kept as an artifact, not told. */
  readonly raw?: ProducedArtifact
}

/** How one execution ended. A tool that fails is an outcome, never an error of the loop. */
export type ToolOutcome = Succeeded | Failed

/** The one JSON object a model is told about a call (`decisions`: what the model is told). */
export type Answer =
  | { readonly ok: true; readonly result: Json }
  | {
      readonly ok: false
      readonly kind: FailureKind
      readonly errors: ReadonlyArray<{ readonly path: string; readonly reason: string }>
      readonly retry_hint?: string
    }

export const answerOf = (outcome: ToolOutcome): Answer =>
  outcome._tag === "Succeeded"
    ? { ok: true, result: outcome.result }
    : {
        ok: false,
        kind: outcome.kind,
        errors: outcome.errors,
        ...(outcome.hint === undefined ? {} : { retry_hint: outcome.hint })
      }

/** The answer as the text that goes into the family's result envelope. Key order is fixed, spacing is JSON's compact form. */
export const answerText = (answer: Answer): string => JSON.stringify(answer)
