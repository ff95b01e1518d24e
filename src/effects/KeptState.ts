/**
 * The evaluated context of a run that stopped, in a file beside its record, so that the run that continues it need not
 * evaluate everything again. The record stays the truth: a state that does not fit it exactly is not used, and that is on the
 * new record. Knows nothing of what is in the file; the engine writes it and looks at it before it takes it back.
 */
import * as Effect from "effect/Effect"
import type { EngineError, EngineReason } from "../engine/EngineError.ts"
import type { ModelSession } from "../engine/Model.ts"
import type { Span } from "../engine/Prompt.ts"
import type { Stop } from "./State.ts"

export interface StateOptions {
  /** The file; another one is written beside it. */
  readonly path: string
  /** Write it when the run stops before it has completed. Without, it is only read. */
  readonly keep: boolean
}

/** What became of a kept state. */
export type Brought =
  | { readonly _tag: "None" }
  | { readonly _tag: "Refused" }
  | { readonly _tag: "Loaded"; readonly spans: ReadonlyArray<Span> }

/** Writes it, where the engine can and the run may go on. That it could not be written costs time later, and nothing else. */
export const keepState = (
  { save }: ModelSession,
  state: StateOptions | undefined,
  runId: string,
  stop: Stop
): Effect.Effect<void> => {
  if (state?.keep !== true || save === undefined || stop._tag === "Completed") return Effect.void
  return Effect.ignore(save(state.path, runId), { log: "Warn" })
}

/** Also one over which the engine died, and was opened again: it would die over it at each resumption. */
const refusing: ReadonlySet<EngineReason> = new Set(["bad_file", "context_overflow", "restarted"])

/**
 * Loads it into an empty session. `messages`: how many commits and turns the record of `runId` says are in it.
 */
export const bringState = Effect.fnUntraced(function* (
  { length, load, rewind }: ModelSession,
  state: StateOptions | undefined,
  runId: string,
  messages: number
): Effect.fn.Return<Brought, EngineError> {
  if (state === undefined || load === undefined || (yield* length) > 0) return { _tag: "None" }
  const found = yield* Effect.result(load(state.path))
  if (found._tag === "Failure") {
    const { reason } = found.failure
    if (reason === "missing_file") return { _tag: "None" }
    if (refusing.has(reason)) return { _tag: "Refused" }
    return yield* found.failure
  }
  const { boundaries, label } = found.success
  if (label === runId && boundaries.length === messages + 1) {
    return { _tag: "Loaded", spans: boundaries.slice(1).map((end, at) => ({ start: boundaries[at]!, end })) }
  }
  yield* rewind(0)
  return { _tag: "Refused" }
})
