/** How a conversation with an MCP server goes wrong, in words that name the server. */
import type { McpClientError } from "effect/ai/McpClientError"
import * as Schema from "effect/Schema"

export const McpReason = Schema.Literals([
  /** It could not be started or reached. */
  "unreachable",
  "timed_out",
  /** It ended, or the connection to it did. */
  "closed",
  /** What it said is not MCP. */
  "protocol",
  /** It said more than is listened to. */
  "limit",
  /** It wants, or offers, something that is not supported here. */
  "unsupported",
  /** It answered a request with an error. */
  "rejected"
])
export type McpReason = typeof McpReason.Type

export class McpError extends Schema.TaggedError<McpError>()("McpError", {
  server: Schema.String,
  reason: McpReason,
  detail: Schema.String,
  /** The code of a JSON-RPC error. */
  code: Schema.optionalKey(Schema.Int)
}) {
  override get message(): string {
    return `the MCP server "${this.server}" ${this.detail}`
  }
}

const maxDetail = 500

const short = (text: string): string => (text.length > maxDetail ? `${text.slice(0, maxDetail).toWellFormed()}…` : text)

/** The innermost message: what the operating system or the network said. */
const rootOf = (cause: unknown): string | undefined => {
  let [root, depth] = [cause as { readonly message?: unknown; readonly cause?: unknown } | undefined, 0]
  while (root?.cause !== undefined && depth++ < 8) root = root.cause as typeof root
  return typeof root?.message === "string" && root.message !== "" ? root.message : undefined
}

const because = (text: string, cause: unknown): string => {
  const root = rootOf(cause)
  return short(root === undefined || root === text ? text : `${text}: ${root}`)
}

/** The library's error as ours. */
export const fromClient = (server: string, { reason }: McpClientError): McpError => {
  const error = (which: McpReason, detail: string, code?: number) =>
    new McpError({ server, reason: which, detail, ...(code === undefined ? {} : { code }) })
  switch (reason._tag) {
    case "TransportError":
      return /spawn|HTTP request failed/.test(reason.message)
        ? error("unreachable", because("cannot be reached", reason.cause))
        : error("closed", because(`went away: ${reason.message}`, reason.cause))
    case "ClosedError":
      return error("closed", short(`is closed: ${reason.message}`))
    case "TimeoutError":
      return error("timed_out", `did not answer in time (${reason.operation})`)
    case "LimitError":
      return error("limit", short(`said more than is listened to: ${reason.message}`))
    case "ProtocolError":
      return reason.code === undefined
        ? error("protocol", because(`said something that is not MCP: ${reason.message}`, reason.cause))
        : error("rejected", short(`refused the request: ${reason.message}`), reason.code)
    case "HttpError":
      return error("rejected", short(`refused the request: ${reason.message}`), reason.code)
    case "ValidationError":
      return error("protocol", because(`said something that is not MCP: ${reason.message}`, reason.cause))
    default:
      return error("unsupported", short(`does not fit: ${reason.message}`))
  }
}
