/**
 * Who decides about calls besides the contract, all of it set before a run starts: what the run is permitted, what weighs
 * proposals, what the task is like, how often a lost answer is asked for again, and how long an approval holds.
 */
import * as Context from "effect/Context"
import { type Authority, everything } from "./Authority.ts"
import { type RetryPolicy, standard as standardRetry, validate } from "./Backoff.ts"
import { type Governor, standard as standardGovernor } from "./Governor.ts"
import { cautious, type TaskProfile } from "./Profile.ts"

export interface Gates {
  readonly authority: Authority
  readonly governor: Governor
  readonly profile: TaskProfile
  readonly retry: RetryPolicy
  /** Check, price and show; do nothing. */
  readonly dryRun: boolean
  /** Milliseconds from an approval to its use. */
  readonly approvalMillis: number
  /** How many turns are sampled before one of them is kept. */
  readonly candidates: number
}

/** A sample needs a seed of its own among the sixteen of a turn, and so does its continuation. */
export const maxCandidates = 8

/** Half an hour: long enough to be asked about several calls, short enough that nobody has forgotten what they allowed. */
export const standardApprovalMillis = 30 * 60_000

export const defaults: Gates = {
  authority: everything,
  governor: standardGovernor,
  profile: cautious,
  retry: standardRetry,
  dryRun: false,
  approvalMillis: standardApprovalMillis,
  candidates: 1
}

/** What the run is permitted, for a program that wants to say it once for all its runs. */
export const Permissions = Context.Reference<Authority>("effect-writ/effects/Gates/Permissions", {
  defaultValue: () => everything
})

/** Why gates cannot be used. `undefined` when they can. */
export const problemWith = (gates: Gates): string | undefined => {
  const [retry] = validate(gates.retry)
  if (retry !== undefined) return `retry: ${retry}`
  if (!(gates.approvalMillis >= 0)) return "approvalMillis: must be 0 or more"
  if (!Number.isInteger(gates.candidates) || gates.candidates < 1 || gates.candidates > maxCandidates) {
    return `candidates: must be a whole number from 1 to ${maxCandidates}`
  }
  return undefined
}
