/**
 * The states of a run and how it can stop.
 *
 * | state        | does                                                               | next                                            |
 * | ------------ | ------------------------------------------------------------------ | ----------------------------------------------- |
 * | `Preparing`  | evaluates what is queued (system, user, answers); checks limits    | `Generating`, `Done`                            |
 * | `Generating` | one speculative turn through the codec; kept or rolled back        | `Admitting`, `Committing` (feedback), `Done`    |
 * | `Admitting`  | per call: schema, scopes, precondition, approval; logs all results | `Acting`, `Committing`                          |
 * | `Acting`     | intent, execution under a deadline, settlement                     | `Committing`                                    |
 * | `Committing` | one answer per call, queued in call order; uninterruptible         | `Preparing`, `Done`                             |
 * | `Done`       | nothing                                                            | —                                               |
 *
 * Each state runs in a fiber of its own. Cancelling ends that fiber and leads to `Done(Cancelled)`, by way of `Committing`
 * when a turn with calls is open. A defect ends the run as a defect, after the record was closed.
 */
import type { CancelPoint, FailureClass, LimitKind } from "../actors/TraceEvent.ts"

export type Stop =
  | { readonly _tag: "Completed"; readonly text: string }
  | { readonly _tag: "NeedsInput"; readonly question: string }
  | { readonly _tag: "AwaitingApproval"; readonly callId: string }
  | { readonly _tag: "Limit"; readonly kind: LimitKind; readonly partialText?: string }
  | { readonly _tag: "ContextExhausted"; readonly detail: string }
  | { readonly _tag: "LoopDetected"; readonly detail: string }
  /** `key`: of the effect in the ledger, where somebody can look it up and settle it. */
  | { readonly _tag: "Escalated"; readonly detail: string; readonly key?: string }
  | { readonly _tag: "Cancelled"; readonly at: CancelPoint }
  | { readonly _tag: "Failed"; readonly class: FailureClass; readonly message: string }

export type State =
  | { readonly _tag: "Preparing"; readonly turn: number }
  | { readonly _tag: "Generating"; readonly turn: number }
  | { readonly _tag: "Admitting"; readonly turn: number }
  | { readonly _tag: "Acting"; readonly turn: number }
  | { readonly _tag: "Committing"; readonly turn: number; readonly stop?: Stop }
  | { readonly _tag: "Done"; readonly stop: Stop }

export type Active = Exclude<State, { readonly _tag: "Done" }>

export const preparing = (turn: number): State => ({ _tag: "Preparing", turn })
export const generating = (turn: number): State => ({ _tag: "Generating", turn })
export const admitting = (turn: number): State => ({ _tag: "Admitting", turn })
export const acting = (turn: number): State => ({ _tag: "Acting", turn })
export const committing = (turn: number, stop?: Stop): State =>
  stop === undefined ? { _tag: "Committing", turn } : { _tag: "Committing", turn, stop }
export const done = (stop: Stop): State => ({ _tag: "Done", stop })
