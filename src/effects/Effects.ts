/**
 * The ledger's part in performing a call: the right to act once before it, what it came to after it. Reads owe nothing.
 * What an unknown earlier attempt means follows from the tool's ledger mode; where nothing makes a repeat harmless, the run
 * escalates instead of guessing.
 */
import * as Effect from "effect/Effect"
import type { Intent, SettledOutcome } from "../actors/EffectLedgerEntry.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import { argumentsDigest, keyOf } from "../actors/EffectLedgerKey.ts"
import type { TraceInput } from "../actors/TraceEvent.ts"
import type { RegisteredTool, ValidatedArguments } from "../tools/Registry.ts"
import { type Answer, answerOf, answerText, type ToolOutcome } from "../tools/ToolCall.ts"
import type { CallRecord, RunContext } from "./RunContext.ts"

/** What the ledger lets a call do. */
export type Permit =
  /** Act. `key` is absent for reads. */
  | { readonly _tag: "Act"; readonly key: string | undefined }
  /** It happened before; this is what the model was, or would have been, told. */
  | { readonly _tag: "Known"; readonly key: string; readonly outcome: SettledOutcome }
  /** Do not act; the answer says why. `escalate`: a person has to find out. */
  | { readonly _tag: "Refused"; readonly key: string; readonly answer: Answer; readonly escalate: boolean }

type Refusal = Omit<Extract<Permit, { readonly _tag: "Refused" }>, "key">

const refused = (kind: "outcome_unknown" | "idempotency_conflict", reason: string, escalate: boolean): Refusal => ({
  _tag: "Refused",
  answer: { ok: false, kind, errors: [{ path: "", reason }] },
  escalate
})

const unknownOutcome = refused(
  "outcome_unknown",
  "an earlier attempt of this call may have had its effect; nobody knows, so it was not run again",
  true
)

const conflict = refused(
  "idempotency_conflict",
  "this call's key was used before with other arguments; nothing was executed",
  false
)

/** The ledger says that this attempt was stopped before it began: it left nothing, and whoever resumes may try anew. */
const neverBegan = ({ effect, kind }: SettledOutcome): boolean =>
  effect === "none" && (kind === "cancelled" || kind === "not_executed")

/** How often one call may have been stopped before it began. Each resume can add one. */
const attemptLimit = 64

/** Asks for the right to perform `record`. `New` obliges the caller to settle: call it where nothing can interrupt. */
export const begin = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments,
  step: string
): Effect.fn.Return<Permit, LedgerError> {
  if (tool.contract.risk === "read") return { _tag: "Act", key: undefined }
  const digest = argumentsDigest(args.canonical)
  const { ordinal } = record.proposed
  const mode = tool.contract.ledger
  for (let attempt = 0; ; attempt++) {
    const place = attempt === 0 ? step : `${step}/${attempt}`
    const key = keyOf({ runId: run.effectRunId, step: place, ordinal, tool: tool.name, argumentsDigest: digest })
    const about = { key, runId: run.effectRunId, callId: record.callId, tool: tool.name, argumentsDigest: digest, mode }
    const permit = yield* attemptUnder(run, about)
    const again = permit._tag === "Known" && neverBegan(permit.outcome) && attempt < attemptLimit
    if (!again) return permit
  }
})

const attemptUnder = Effect.fnUntraced(function* (
  run: RunContext,
  intent: Intent
): Effect.fn.Return<Permit, LedgerError> {
  const { key, mode } = intent
  const begun = yield* run.ledger.begin(intent)
  switch (begun._tag) {
    case "New":
      return { _tag: "Act", key }
    case "Settled":
      return { _tag: "Known", key, outcome: begun.outcome }
    case "Conflict":
      return { ...conflict, key }
    case "Unknown": {
      // Both or neither, or the other side knows the key: trying again under it cannot double the effect.
      if (mode !== "atomic" && mode !== "external") return { ...unknownOutcome, key }
      const retaken = yield* run.ledger.retake(intent)
      if (retaken._tag === "Settled") return { _tag: "Known", key, outcome: retaken.outcome }
      return retaken._tag === "New" ? { _tag: "Act", key } : { ...unknownOutcome, key }
    }
  }
})

/** A successful effect is settled for good; so is a failure that left nothing. Anything else nobody knows yet. */
export const settledOutcome = (outcome: ToolOutcome): SettledOutcome => {
  const answer = answerText(answerOf(outcome))
  if (outcome._tag === "Succeeded") return { ok: true, answer, effect: "present", state: "succeeded" }
  const { effect, kind } = outcome
  return { ok: false, answer, kind, effect, state: effect === "unknown" ? "unknown" : "failed" }
}

export const intentEvent = (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  step: string,
  key: string
): TraceInput => ({
  type: "effect_intent",
  step,
  data: { call: record.callId, tool: tool.name, key: run.trace.digest(key), mode: tool.contract.ledger }
})

export const settledEvent = (
  run: RunContext,
  record: CallRecord,
  step: string,
  key: string,
  state: SettledOutcome["state"],
  replayed: boolean
): TraceInput => ({
  type: "effect_settled",
  step,
  data: { call: record.callId, tool: record.proposed.name, key: run.trace.digest(key), outcome: state, replayed }
})
