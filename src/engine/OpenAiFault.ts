/**
 * What goes wrong between us and a server, as a typed failure: what to tell people, and whether the same request may be
 * sent again. Turns statuses and bodies into sentences; sends nothing.
 */
import { EngineError, type EngineReason } from "./EngineError.ts"

/** Why one attempt at a request failed. */
export class Fault {
  readonly _tag = "Fault"
  readonly error: EngineError
  /** The same request may come out otherwise a little later. */
  readonly again: boolean
  /** Milliseconds the server asked to be left alone. */
  readonly after: number | undefined
  /** Nothing came in time. */
  readonly silent: boolean
  /** The HTTP status, where there was one. */
  readonly status: number | undefined
  constructor(
    reason: EngineReason,
    message: string,
    more: {
      readonly again?: boolean
      readonly after?: number
      readonly silent?: boolean
      readonly status?: number
    } = {}
  ) {
    this.error = new EngineError({ reason, message })
    this.again = more.again === true
    this.silent = more.silent === true
    this.after = more.after
    this.status = more.status
  }
}

/** What was thrown, where that is a fault; anything else is a bug of ours, and stays one. */
export const thrown = (cause: unknown): Fault => {
  if (cause instanceof Fault) return cause
  throw cause
}

/** Characters of what a server says that are repeated. */
const mostSaid = 300

/** What a server says, in one line that holds no character that acts on a terminal, and no key. */
export const said = (text: string, key: string | undefined): string => {
  const without = key === undefined ? text : text.replaceAll(key, "[key]")
  const line = without.replace(/[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").trim()
  return line.length > mostSaid ? `${line.slice(0, mostSaid).replace(/[\ud800-\udbff]$/, "")}…` : line
}

interface Complaint {
  readonly message: string
  /** Words of a program's for it: `type` and `code`. */
  readonly words: string
}

const textOf = (value: unknown): string => (typeof value === "string" || typeof value === "number" ? String(value) : "")

/** The complaint in a JSON body, in any of the forms servers have for it. */
export const complaintOf = (body: unknown): Complaint | undefined => {
  if (typeof body !== "object" || body === null) return undefined
  const { detail, error, message, object } = body as Readonly<Record<string, unknown>>
  if (typeof error === "string") return { message: error, words: "" }
  if (typeof error === "object" && error !== null) {
    const { code, message: inner, type } = error as Readonly<Record<string, unknown>>
    return { message: textOf(inner), words: `${textOf(type)} ${textOf(code)}` }
  }
  if (typeof detail === "string") return { message: detail, words: "" }
  return object === "error" ? { message: textOf(message), words: "" } : undefined
}

const tooLong =
  /exceed_context_size|context_length_exceeded|maximum context length|exceeds? the (?:available )?context/i
/** Worth asking once more: timeouts, conflicts, limits, and the server's own trouble but for what it cannot do at all. */
const passing = (status: number): boolean =>
  status === 408 || status === 409 || status === 425 || status === 429 || (status >= 500 && status !== 501)

const reasonOf = (status: number, { message, words }: Complaint): EngineReason => {
  if (tooLong.test(`${words} ${message}`)) return "context_overflow"
  if (status === 400 || status === 404 || status === 405 || status === 413 || status === 422) return "bad_request"
  return status === 501 ? "unsupported" : "failed"
}

const remedy = (status: number): string => {
  if (status === 401 || status === 403) return " Put the server's key into WRIT_API_KEY, or name its variable."
  if (status >= 300 && status < 400)
    return " It sends one on elsewhere, which is not followed: name the address itself."
  if (status === 404) return " Check the address and the model's name."
  if (status === 429) return " Its limit is reached: try later, or less at a time."
  return ""
}

/** Seconds or a date, as milliseconds from now. */
export const retryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined) return undefined
  const text = header.trim()
  if (/^\d+$/.test(text)) return Number(text) * 1000
  // A date is spelled with letters; what else a date parser reads into a number is not one.
  const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

export interface Refusal {
  readonly status: number
  readonly body: string
  readonly after: number | undefined
}

/** JSON, or nothing. */
export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A response that is no success. */
export const refused = (where: string, { after, body, status }: Refusal, key: string | undefined): Fault => {
  const html = /^\s*</.test(body)
  const complaint = complaintOf(parsed(body)) ?? { message: html ? "a page of HTML" : body, words: "" }
  const text = said(complaint.message, key)
  const more = text === "" ? "" : `: ${text.replace(/[.…]+$/, "")}`
  return new Fault(reasonOf(status, complaint), `${where} answers ${status}${more}.${remedy(status)}`, {
    again: passing(status),
    status,
    ...(after === undefined ? {} : { after })
  })
}

/** A failure that a server reports where a turn's text would be. */
export const reported = (where: string, complaint: Complaint, key: string | undefined): Fault => {
  const text = said(complaint.message, key).replace(/[.…]+$/, "")
  const overflow = tooLong.test(`${complaint.words} ${complaint.message}`)
  return new Fault(
    overflow ? "context_overflow" : "failed",
    `${where} broke the turn off${text === "" ? "" : `: ${text}`}.`,
    { again: !overflow }
  )
}
