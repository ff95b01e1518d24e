/**
 * What a failed attempt says about the machine: one class from a closed table, and the stage that raised it. Whoever
 * consumes traces or answers switches on these; there is no bucket for the rest.
 */
import type { EffectClaim, FailureKind } from "./ToolCall.ts"

/**
 * `schema`: a wrong expression was formed. `authorization`: outside the caller's role. `precondition`: the state was not
 * ready. `postcondition`: execution did not establish the promise. `timeout`: the state of the world is unknown. The rest
 * are faults of bookkeeping: a key used for something else, a contract that is not the advertised one, a contract whose own
 * terms fail, a stop.
 */
export const attemptClasses = [
  "schema",
  "authorization",
  "precondition",
  "postcondition",
  "timeout",
  "conflict",
  "stale_contract",
  "contract_fault",
  "cancelled"
] as const
export type AttemptClass = (typeof attemptClasses)[number]

/** The gates in their order, and what comes after them. */
export const stages = [
  "parse",
  "schema",
  "scopes",
  "ledger",
  "precondition",
  "governor",
  "approval",
  "execution",
  "postcondition"
] as const
export type Stage = (typeof stages)[number]

const classes: Readonly<Record<FailureKind, AttemptClass>> = {
  malformed_call: "schema",
  unknown_tool: "schema",
  invalid_arguments: "schema",
  unauthorized: "authorization",
  refused: "authorization",
  not_chosen: "authorization",
  precondition_failed: "precondition",
  not_found: "precondition",
  execution_failed: "postcondition",
  bad_result: "postcondition",
  postcondition_failed: "postcondition",
  crashed: "postcondition",
  unavailable: "timeout",
  timed_out: "timeout",
  outcome_unknown: "timeout",
  idempotency_conflict: "conflict",
  stale_contract: "stale_contract",
  contract_fault: "contract_fault",
  dry_run: "cancelled",
  not_executed: "cancelled",
  cancelled: "cancelled"
}

/**
 * The class of a failure. Whatever left the world in an unknown state is `timeout`, however it came about, unless the run
 * itself was stopped or the contract is at fault.
 */
export const classOf = (kind: FailureKind, effect: EffectClaim): AttemptClass => {
  const own = classes[kind]
  return effect === "unknown" && own === "postcondition" ? "timeout" : own
}
