/** How the effect ledger fails. Whatever the operation, a failure means: do not act, and do not take it for success. */
import * as Schema from "effect/Schema"

const LedgerOperation = Schema.Literals(["open", "key", "begin", "retake", "settle", "late", "resolve", "get", "list"])

/**
 * `invalid` an intent or key that is none · `missing` no such key · `settled` it already came to something else ·
 * `running` its owner is at work · `not_owner` another process has it · `busy` the file stayed locked · `full` no room ·
 * `corrupt` damaged, or not a ledger · `version` written by a newer program · `unavailable` any other trouble of the file
 * system or the server · `unreachable` the connection to the server is lost; the message says whether anything may have been
 * recorded · `closed` the ledger was shut down.
 */
const LedgerReason = Schema.Literals([
  "invalid",
  "missing",
  "settled",
  "running",
  "not_owner",
  "busy",
  "full",
  "corrupt",
  "version",
  "unavailable",
  "unreachable",
  "closed"
])

export class LedgerError extends Schema.TaggedError<LedgerError>()("LedgerError", {
  operation: LedgerOperation,
  reason: LedgerReason,
  /** In words for a person: what is wrong, with which file, and what to do about it. */
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}
