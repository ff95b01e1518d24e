/**
 * One GET to one address that was checked before, and nothing else: no second look-up, no redirect, no cookie, no proxy,
 * no connection kept. Bounds hold while reading. The only place that opens a connection.
 */
import * as http from "node:http"
import * as https from "node:https"
import { isIP, type Socket } from "node:net"
import { pipeline } from "node:stream/promises"
import { rootCertificates } from "node:tls"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { same } from "./Address.ts"
import { accepted, codingsOf, decoders } from "./Coding.ts"
import type { Target } from "./Target.ts"
import { failed, unavailable, WebFault } from "./WebFault.ts"
import type { WebLimits } from "./WebSettings.ts"

/** A response without its body. */
export interface Head {
  readonly status: number
  readonly contentType: string | undefined
  readonly location: string | undefined
}

/** How much of the body is wanted, decided by the head: all or a fault, what fits in `some` bytes, or nothing. */
export type Wanted = "all" | "nothing" | { readonly some: number }

export interface Request {
  readonly target: Target
  /** A checked address of the target's host. */
  readonly address: string
  readonly accept: string
  /** Sent and never kept: keys. */
  readonly secrets: Readonly<Record<string, string>>
  readonly limits: WebLimits
  readonly authorities: ReadonlyArray<string>
  readonly wanted: (head: Head) => Wanted
}

export interface Answer extends Head {
  readonly body: Uint8Array
}

/** `unreached`: no connection came about, so another address of the host may be tried. */
export type Exchange = (request: Request) => Effect.Effect<Answer, WebFault | Unreached>

export class Unreached {
  readonly _tag = "Unreached"
  readonly code: string
  constructor(code: string) {
    this.code = code
  }
}

export const agentName = "effect-writ"

const open = (request: Request, signal: AbortSignal): Promise<http.IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { accept, address, authorities, limits, secrets, target } = request
    const { host, port, url } = target
    const options: https.RequestOptions = {
      host: address,
      port,
      path: `${url.pathname}${url.search}`,
      headers: { host: url.host, "user-agent": agentName, accept, "accept-encoding": accepted, ...secrets },
      // A new agent for each: nothing is kept, shared, or sent through a proxy of the environment.
      agent: false,
      maxHeaderSize: limits.headerBytes,
      signal
    }
    const secure = {
      // The certificate has to be the host's, whatever address it was reached at.
      servername: isIP(host) === 0 ? host : "",
      ...(authorities.length === 0 ? {} : { ca: [...rootCertificates, ...authorities] })
    }
    const sent = url.protocol === "https:" ? https.request({ ...options, ...secure }) : http.request(options)
    sent.once("socket", (socket: Socket) =>
      socket.once("connect", () => {
        if (!same(socket.remoteAddress, address)) sent.destroy(new Error("connected to another address"))
      })
    )
    sent.once("response", resolve).once("error", reject)
    sent.once("close", () => reject(Object.assign(new Error("closed"), { code: "ECONNRESET" })))
    sent.end()
  })

/** Header bytes are read as Latin-1; those who send others mean UTF-8. */
const utf8 = (value: string | undefined): string | undefined => {
  if (value === undefined || !/[\u0080-\u00ff]/.test(value)) return value
  return Buffer.from(value, "latin1").toString("utf8")
}

const headOf = ({ headers, statusCode }: http.IncomingMessage): Head => ({
  status: statusCode ?? 0,
  contentType: headers["content-type"],
  location: utf8(headers.location)
})

/** Thrown when enough was read. */
const enough = Symbol("enough")

const tooLarge = (bytes: number) =>
  failed(`the page is larger than ${bytes} bytes, which is the most this run reads; look for a smaller one`)

const bodyOf = async (
  response: http.IncomingMessage,
  { limits }: Request,
  wanted: Exclude<Wanted, "nothing">,
  signal: AbortSignal
): Promise<Uint8Array> => {
  const some = wanted === "all" ? undefined : wanted.some
  if (some === undefined && Number(response.headers["content-length"]) > limits.bytes) throw tooLarge(limits.bytes)
  const codings = codingsOf(response.headers["content-encoding"])
  if (typeof codings === "string") throw failed(`the page cannot be read: ${codings}`)
  const chunks: Array<Buffer> = []
  let [arrived, size] = [0, 0]
  const sink = async (source: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of source) {
      size += chunk.byteLength
      if (some === undefined && size > limits.decodedBytes) throw tooLarge(limits.decodedBytes)
      chunks.push(chunk)
      if (some !== undefined && size >= some) throw enough
    }
  }
  const source = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const first = await source.next()
  if (first.done === true) return new Uint8Array(0)
  const counted = async function* (): AsyncGenerator<Buffer> {
    let next: IteratorResult<Buffer> = first
    while (next.done !== true) {
      arrived += next.value.byteLength
      if (arrived > limits.bytes) throw some === undefined ? tooLarge(limits.bytes) : enough
      yield next.value
      next = await source.next()
    }
  }
  try {
    await pipeline([counted(), ...decoders(codings, first.value[0] ?? 0), sink] as never, { signal })
  } catch (cause) {
    if (cause !== enough) throw cause
  }
  return Buffer.concat(chunks).subarray(0, some ?? size)
}

const run = async (request: Request, signal: AbortSignal): Promise<Answer> => {
  const response = await open(request, signal)
  // What goes wrong after we stopped reading is nobody's business any more.
  response.on("error", () => {})
  try {
    const head = headOf(response)
    const wanted = request.wanted(head)
    return { ...head, body: wanted === "nothing" ? new Uint8Array(0) : await bodyOf(response, request, wanted, signal) }
  } finally {
    response.destroy()
  }
}

const unreached = new Set([
  "ECONNREFUSED",
  "ENETUNREACH",
  "EHOSTUNREACH",
  "EADDRNOTAVAIL",
  "ETIMEDOUT",
  "ENETDOWN",
  "EHOSTDOWN"
])
const certificate = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/

const faultOf = (cause: unknown, { limits, target }: Request): WebFault | Unreached => {
  if (cause instanceof WebFault) return cause
  const code = String((cause as { readonly code?: unknown } | undefined)?.code ?? "")
  if (unreached.has(code)) return new Unreached(code)
  const where = target.host
  if (code === "HPE_HEADER_OVERFLOW") {
    return failed(`${where} answers with headers of more than ${limits.headerBytes} bytes, which are not read`)
  }
  if (code.startsWith("HPE_") || code === "ERR_INVALID_CHAR") return failed(`${where} does not answer in sound HTTP`)
  if (/^(?:Z_|ERR_?_?BROTLI|ERR__ERROR|ERR_ZLIB|ZSTD_)/.test(code)) {
    return failed(`the page is compressed in a broken way (${code})`)
  }
  if (certificate.test(code)) {
    return failed(`${where} cannot prove that it is ${where}: its certificate is not valid (${code})`)
  }
  if (code.startsWith("ERR_SSL") || code === "EPROTO") return failed(`${where} does not speak TLS at that port`)
  if (code === "ECONNRESET" || code === "EPIPE" || code === "ERR_STREAM_PREMATURE_CLOSE") {
    return unavailable(`${where} closed the connection before the answer was complete; try again later`)
  }
  return failed(`${where} could not be read (${code === "" ? "the connection broke" : code})`)
}

const overSockets: Exchange = (request) =>
  Effect.tryPromise({ try: (signal) => run(request, signal), catch: (cause) => faultOf(cause, request) })

/** Over real sockets, unless a test provides another. */
export const Exchanger = Context.Reference<Exchange>("effect-writ/tools/web/Exchanger", {
  defaultValue: () => overSockets
})
