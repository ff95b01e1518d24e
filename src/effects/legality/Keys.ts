/** The key of a call's logical attempt: named by the contract, or minted from the call's place in the run. */
import * as Result from "effect/Result"
import type { SettledOutcome } from "../../actors/EffectLedgerEntry.ts"
import { argumentsDigest, businessKeyOf, keyOf } from "../../actors/EffectLedgerKey.ts"
import type { RegisteredTool, ValidatedArguments } from "../../tools/Registry.ts"
import type { CallRecord, RunContext } from "../RunContext.ts"
import { term } from "./ContractTerms.ts"
import { type Refusal, refusal } from "./Refusal.ts"

export interface Key {
  readonly key: string
  /** Named by the contract: the same in every run. */
  readonly business: boolean
}

/** `attempt` counts how often a call of this place was stopped before it began. */
export const keyFor = (
  run: RunContext,
  record: CallRecord,
  tool: RegisteredTool,
  args: ValidatedArguments,
  attempt = 0
): Result.Result<Key, Refusal> => {
  const { key } = tool.terms
  if (key === undefined) {
    const turn = `model-${record.turn}`
    const place = {
      runId: run.effectRunId,
      step: attempt === 0 ? turn : `${turn}/${attempt}`,
      ordinal: record.proposed.ordinal,
      tool: tool.name,
      argumentsDigest: argumentsDigest(args.canonical)
    }
    return Result.succeed({ key: keyOf(place), business: false })
  }
  const name = term("key", () => key(args))
  if (Result.isFailure(name)) return Result.fail(refusal("contract_fault", "ledger", name.failure.fault))
  if (typeof name.success !== "string") {
    return Result.fail(refusal("contract_fault", "ledger", "the contract's key is not a text"))
  }
  const named = businessKeyOf(tool.name, tool.contract.version, name.success)
  return Result.isSuccess(named)
    ? Result.succeed({ key: named.success, business: true })
    : Result.fail(
        refusal("invalid_arguments", "ledger", `these arguments make no usable key: ${named.failure.message}`)
      )
}

/** The ledger says that nothing was done, and why: whoever asks again may try anew. */
export const leftNothing = ({ effect, state }: SettledOutcome): boolean => state === "failed" && effect === "none"
