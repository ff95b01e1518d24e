/**
 * A request that gets no answer, in the form clients of OpenAI's API know: `{ error: { message, type, param, code } }`.
 * Whoever makes one says which field it is about, and whether asking again can help.
 */
import * as Schema from "effect/Schema"

export class ChatError extends Schema.TaggedError<ChatError>()("ChatError", {
  /** HTTP. */
  status: Schema.Natural,
  type: Schema.String,
  code: Schema.NullOr(Schema.String),
  /** The field of the request. */
  param: Schema.NullOr(Schema.String),
  message: Schema.String,
  /** Seconds after which it may be asked again. */
  retryAfter: Schema.optionalKey(Schema.Natural)
}) {}

const make = (
  status: number,
  type: string,
  code: string | null,
  param: string | null,
  message: string,
  retryAfter?: number
): ChatError =>
  new ChatError({ status, type, code, param, message, ...(retryAfter === undefined ? {} : { retryAfter }) })

/** Something in the request is not what it has to be. */
export const invalid = (param: string | null, message: string, code: string | null = null): ChatError =>
  make(400, "invalid_request_error", code, param, message)

/** A field that exists, asks for something, and cannot be honoured here. */
export const unsupported = (param: string, message: string): ChatError =>
  make(400, "invalid_request_error", "unsupported_parameter", param, message)

/** Refused before the body is looked at. */
export const refused = (status: number, code: string, message: string): ChatError =>
  make(status, status === 401 ? "authentication_error" : "invalid_request_error", code, null, message)

/** One key asks for more than it may. */
export const tooMuch = (code: string, message: string, retryAfter: number): ChatError =>
  make(429, "rate_limit_error", code, null, message, retryAfter)

/** Everybody together asks for more than there is, or the server is about to go. */
export const unavailable = (code: string, message: string, retryAfter: number): ChatError =>
  make(503, "server_error", code, null, message, retryAfter)

/** The run was begun and came to no answer. What it did stays done, so nobody should ask again by themselves. */
export const failed = (status: number, code: string, message: string): ChatError =>
  make(
    status,
    status === 403 ? "permission_error" : status < 500 ? "invalid_request_error" : "server_error",
    code,
    null,
    message
  )

export const bodyOf = ({ code, message, param, type }: ChatError) => ({ error: { message, type, param, code } })

/** Can asking again in a while help? Clients repeat by themselves what looks like it can. */
export const mayRetry = ({ retryAfter }: ChatError): boolean => retryAfter !== undefined
