/**
 * Asks the ledger whether this logical attempt was made before: after a restart, or under a key that the contract names.
 * Repeating an attempt is an inquiry: it takes no new decision, and it comes before the precondition.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { outcomeOf } from "../../actors/EffectLedgerEntry.ts"
import type { LedgerError } from "../../actors/EffectLedgerError.ts"
import { argumentsDigest } from "../../actors/EffectLedgerKey.ts"
import type { RegisteredTool, ValidatedArguments } from "../../tools/Registry.ts"
import type { CallRecord, RunContext } from "../RunContext.ts"
import { keyFor, leftNothing } from "./Keys.ts"
import { type Refusal, refusal } from "./Refusal.ts"

export type Asked =
  /** Nobody has tried this; or somebody has, and it left nothing. */
  { readonly _tag: "Fresh" } | { readonly _tag: "Inquiry" } | { readonly _tag: "Refused"; readonly refusal: Refusal }

const fresh: Asked = { _tag: "Fresh" }

const refused = (of: Refusal): Asked => ({ _tag: "Refused", refusal: of })

export const inquire = Effect.fnUntraced(function* (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments
): Effect.fn.Return<Asked, LedgerError> {
  if (tool.contract.risk === "read") return fresh
  const key = keyFor(run, record, tool, args)
  if (Result.isFailure(key)) return refused(key.failure)
  const { transactional } = run.ledger
  if (tool.contract.stages === true && transactional !== true) {
    const what = `${tool.name} takes part in the ledger's transactions, and this run's ledger has none; nothing was executed`
    return refused(refusal("contract_fault", "ledger", what, transactional))
  }
  // A key of this very place exists only where the run went on from an earlier one.
  if (!key.success.business && run.effectRunId === run.runId) return fresh
  const found = yield* run.ledger.get(key.success.key)
  if (found === undefined) return fresh
  const before = outcomeOf(found.entry)
  if (before !== undefined && leftNothing(before)) return fresh
  if (found.entry.argumentsDigest !== argumentsDigest(args.canonical)) {
    return refused(
      refusal(
        "idempotency_conflict",
        "ledger",
        "this call's key was used before with other arguments; nothing was executed",
        "propose it under what makes it another order, invoice or message, or leave it"
      )
    )
  }
  return { _tag: "Inquiry" }
})
