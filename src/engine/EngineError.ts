/** What an engine can fail with. One class, closed reasons; each names the remedy in `message`. */
import * as Schema from "effect/Schema"

export const EngineReason = Schema.Literals([
  /** The file is not there, or is a directory. */
  "missing_file",
  /** Not a GGUF, cut short, damaged, or of a version this build cannot read. */
  "bad_file",
  "not_enough_memory",
  /** The inference library is not installed or has no binary for this machine. */
  "unavailable",
  /** The prompt or the turn does not fit the context; nothing was evaluated. */
  "context_overflow",
  /** No session is free. */
  "no_session",
  /** The engine thread or process died, or stopped answering, and is not there any more. */
  "lost",
  /**
   * The engine died under the call, or with the turn it is about, and was opened again: the session is at its last boundary,
   * and the same may be asked once more.
   */
  "restarted",
  /** A native call did not come back in time. Who owns the engine ends it. */
  "stalled",
  /** The request itself was wrong (a closed session, a turn already open, an empty script). */
  "bad_request",
  /** The model's file has no template, or one no codec knows. */
  "unknown_template",
  /** The model is not made for what was asked of it, such as vectors. */
  "unsupported",
  "failed"
])
export type EngineReason = typeof EngineReason.Type

export class EngineError extends Schema.TaggedError<EngineError>()("EngineError", {
  reason: EngineReason,
  /** One or two sentences: what happened, where (file name), what to do. */
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}

/** A request that no engine could do. */
export const badRequest = (message: string): EngineError => new EngineError({ reason: "bad_request", message })

/** No more sessions than the model was opened with. */
export const allInUse = (sessions: number): EngineError =>
  new EngineError({
    reason: "no_session",
    message: `All ${sessions} sessions of the engine are in use. Close one, or open the model with more.`
  })
