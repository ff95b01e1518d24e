/** A server on loopback that gives model files, well or badly, and remembers what it was asked. */
import { hash } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { makeGguf } from "./gguf.ts"

/** The library asks for pieces of this size. */
export const piece = 5 * 1024 * 1024

/** A model of two and a half pieces: what lies behind the tensors differs at every place, so that nothing can be misplaced unseen. */
export const largeModel = (): Buffer => {
  const model = makeGguf()
  const more = Buffer.alloc(Math.floor(2.5 * piece) - model.length)
  for (let at = 0; at + 4 <= more.length; at += 4) more.writeUInt32LE(Math.imul(at + 1, 2654435761) >>> 0, at)
  return Buffer.concat([model, more])
}

export interface Serving {
  body: Buffer
  /** Gives pieces. Default true. */
  ranges?: boolean
  etag?: string
  /** Headers of every answer. */
  headers?: Readonly<Record<string, string>>
  status?: number
  /** What HEAD says of the length, if that is not true. */
  headLength?: number
  /** What becomes of the nth request for content (from 1): cut after so many bytes, or held open after them. */
  fault?: { readonly request: number; readonly after: number; readonly how: "cut" | "hold"; readonly always?: boolean }
}

export interface Asked {
  readonly method: string
  readonly path: string
  readonly range?: string
  readonly from: number
}

export interface ModelServer {
  readonly url: string
  /** By path. A file can be exchanged while the server runs. */
  readonly files: Map<string, Serving>
  /** Redirects, and texts of other kinds, by path. */
  readonly others: Map<string, (request: IncomingMessage, response: ServerResponse) => void>
  readonly asked: Array<Asked>
  /** Bytes of content that were sent since `asked` was emptied, requests for a first look not counted. */
  readonly sent: () => number
}

export const sha256 = (bytes: Buffer): string => hash("sha256", bytes)

const give = (
  serving: Serving,
  request: IncomingMessage,
  response: ServerResponse,
  nth: number,
  sent: (bytes: number) => void
): void => {
  const { body, etag, fault, headers, ranges = true, status = 200 } = serving
  const found = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "")
  const ranged = ranges && found !== null && status === 200
  const from = ranged ? Number(found[1]) : 0
  const to = ranged ? Math.min(Number(found[2]), body.length - 1) : body.length - 1
  const length = request.method === "HEAD" ? (serving.headLength ?? body.length) : to - from + 1
  response.writeHead(ranged ? 206 : status, {
    "content-length": length,
    ...(ranges ? { "accept-ranges": "bytes" } : {}),
    ...(ranged ? { "content-range": `bytes ${from}-${to}/${body.length}` } : {}),
    ...(etag === undefined ? {} : { etag }),
    ...headers
  })
  if (request.method === "HEAD") {
    response.end()
    return
  }
  const part = body.subarray(from, to + 1)
  if (fault !== undefined && (fault.always === true ? nth >= fault.request : nth === fault.request)) {
    const some = part.subarray(0, fault.after)
    sent(some.length)
    // Cut only when it has left: what is in a buffer would be lost with the connection.
    response.write(some, () => {
      if (fault.how === "cut") setTimeout(() => response.destroy(), 300)
    })
    return
  }
  sent(part.length)
  response.end(part)
}

export const modelServer: Effect.Effect<ModelServer, never, Scope.Scope> = Effect.gen(function* () {
  const files: ModelServer["files"] = new Map()
  const others: ModelServer["others"] = new Map()
  const asked: Array<Asked> = []
  let bytes = 0
  const nths = new Map<string, number>()
  const server = createServer((request, response) => {
    const path = (request.url ?? "/").replace(/\?.*$/, "")
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0)
    const { range } = request.headers
    asked.push({ method: request.method ?? "", path, from, ...(range === undefined ? {} : { range }) })
    const other = others.get(path)
    if (other !== undefined) {
      other(request, response)
      return
    }
    const serving = files.get(path)
    if (serving === undefined) {
      response.writeHead(404).end("nothing here")
      return
    }
    const nth = (nths.get(path) ?? 0) + (request.method === "HEAD" ? 0 : 1)
    nths.set(path, nth)
    give(serving, request, response, nth, (some) => {
      if (request.headers.range !== undefined) bytes += some
    })
  })
  yield* Effect.acquireRelease(
    Effect.promise(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))),
    () =>
      Effect.promise(() => {
        server.closeAllConnections()
        return new Promise<void>((resolve) => server.close(() => resolve()))
      })
  )
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    files,
    others,
    asked,
    sent: () => bytes
  }
})
