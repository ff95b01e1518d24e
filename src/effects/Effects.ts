/**
 * The ledger's part in performing a call: the right to act once before it, what it came to after it. Reads owe nothing.
 * What an unknown earlier attempt means follows from the tool's ledger mode; where nothing makes a repeat harmless, the run
 * escalates instead of guessing.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Intent, LedgerEntry, SettledOutcome } from "../actors/EffectLedgerEntry.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import { argumentsDigest } from "../actors/EffectLedgerKey.ts"
import type { RegisteredTool, ValidatedArguments } from "../tools/Registry.ts"
import { type Answer, answerOf, answerText, type Failed, type ToolOutcome } from "../tools/ToolCall.ts"
import { keyFor, leftNothing } from "./legality/Keys.ts"
import type { CallRecord, RunContext } from "./RunContext.ts"

/** What the ledger lets a call do. */
export type Permit =
  /** Act. `key` is absent for reads; `attempt` counts from 1. */
  | { readonly _tag: "Act"; readonly key: string | undefined; readonly attempt: number }
  /** It happened before; this is what the model was, or would have been, told. */
  | { readonly _tag: "Known"; readonly key: string; readonly outcome: SettledOutcome }
  /** An earlier attempt may have had its effect. Nothing is held; see `Permitting`. */
  | { readonly _tag: "Unknown"; readonly key: string; readonly entry: LedgerEntry }
  /** Do not act; the answer says why. */
  | { readonly _tag: "Refused"; readonly key: string; readonly answer: Answer }

/** An attempt of which only the intent is left. */
export const lostAttempt: Failed = {
  _tag: "Failed",
  kind: "outcome_unknown",
  errors: [{ path: "", reason: "the process that made this attempt ended before its outcome was recorded" }],
  effect: "unknown",
  millis: 0
}

export const unknownAnswer = (key: string): Answer => ({
  ok: false,
  kind: "outcome_unknown",
  errors: [
    {
      path: "",
      reason: `an earlier attempt of this call (${key.slice(0, 12)}) may have had its effect; nobody knows, so it was not run again`
    }
  ]
})

const conflict: Answer = {
  ok: false,
  kind: "idempotency_conflict",
  errors: [{ path: "", reason: "this call's key was used before with other arguments; nothing was executed" }]
}

/** The ledger says that this attempt was stopped before it began: whoever resumes may try anew. */
const neverBegan = (outcome: SettledOutcome): boolean =>
  leftNothing(outcome) && (outcome.kind === "cancelled" || outcome.kind === "not_executed")

/** How often one call may have been stopped before it began. Each resume can add one. */
const attemptLimit = 64

export const intentOf = (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments,
  key: string
): Intent => ({
  key,
  runId: run.effectRunId,
  callId: record.callId,
  tool: tool.name,
  argumentsDigest: argumentsDigest(args.canonical),
  mode: tool.contract.ledger
})

/** Asks for the right to perform `record`. `New` obliges the caller to settle: call it where nothing can interrupt. */
export const begin = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments
): Effect.fn.Return<Permit, LedgerError> {
  if (tool.contract.risk === "read") return { _tag: "Act", key: undefined, attempt: 1 }
  for (let attempt = 0; ; attempt++) {
    const found = keyFor(run, record, tool, args, attempt)
    // It gave a key when the call was admitted.
    if (Result.isFailure(found)) return yield* Effect.die(new Error(`${record.callId}: ${found.failure.kind}`))
    const { business, key } = found.success
    const permit = yield* attemptUnder(run, intentOf(run, record, tool, args, key), business)
    const again = !business && permit._tag === "Known" && neverBegan(permit.outcome) && attempt < attemptLimit
    if (!again) return permit
  }
})

const attemptUnder = Effect.fnUntraced(function* (
  run: RunContext,
  intent: Intent,
  business: boolean
): Effect.fn.Return<Permit, LedgerError> {
  const { key } = intent
  const begun = yield* run.ledger.begin(intent)
  switch (begun._tag) {
    case "New":
      return { _tag: "Act", key, attempt: 1 }
    case "Settled": {
      if (!business || !leftNothing(begun.outcome)) return { _tag: "Known", key, outcome: begun.outcome }
      return yield* anew(run, intent)
    }
    case "Conflict":
      return yield* business ? anew(run, intent) : Effect.succeed({ _tag: "Refused", key, answer: conflict } as const)
    case "Unknown":
      return { _tag: "Unknown", key, entry: begun.entry }
  }
})

/** The order or message of this name failed before and left nothing, so the name is free again. The ledger has the last word. */
const anew = Effect.fnUntraced(function* (run: RunContext, intent: Intent): Effect.fn.Return<Permit, LedgerError> {
  const { key } = intent
  const begun = yield* run.ledger.retake(intent)
  switch (begun._tag) {
    case "New": {
      const record = yield* run.ledger.get(key)
      return { _tag: "Act", key, attempt: record?.entry.attempts.length ?? 1 }
    }
    case "Settled":
      return { _tag: "Known", key, outcome: begun.outcome }
    case "Unknown":
      return { _tag: "Unknown", key, entry: begun.entry }
    case "Conflict":
      return { _tag: "Refused", key, answer: conflict }
  }
})

/** A successful effect is settled for good; so is a failure whose effect is known. Anything else nobody knows yet. */
export const stateOf = (outcome: ToolOutcome): SettledOutcome["state"] =>
  outcome._tag === "Succeeded" ? "succeeded" : outcome.effect === "unknown" ? "unknown" : "failed"

/** The outcome as the ledger keeps it. */
export const settledOutcome = (outcome: ToolOutcome): SettledOutcome => {
  const answer = answerText(answerOf(outcome))
  const state = stateOf(outcome)
  if (outcome._tag === "Succeeded") return { ok: true, answer, effect: "present", state }
  return { ok: false, answer, kind: outcome.kind, effect: outcome.effect, state }
}
