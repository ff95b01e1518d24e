/** An OpenTelemetry collector on this machine that keeps what it is sent. */

import { createServer, type IncomingHttpHeaders } from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ExportBody } from "../../src/effects/trace/TraceSpans.ts"

export interface Received {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly body: ExportBody
}

export interface Collector {
  readonly url: string
  readonly received: ReadonlyArray<Received>
}

interface Said {
  readonly status?: number
  readonly body?: unknown
}

/** @param answer what it says to each request, or to which one, from 0; everything was taken, unless given */
export const collector = (
  answer: Said | ((request: number) => Said) = {}
): Effect.Effect<Collector, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const received: Array<Received> = []
        const server = createServer((request, response) => {
          let text = ""
          request.setEncoding("utf8").on("data", (part) => (text += part))
          request.on("end", () => {
            const { headers, method, url: path } = request
            received.push({ method, path, headers, text, body: JSON.parse(text) as ExportBody })
            const { body = {}, status = 200 } = typeof answer === "function" ? answer(received.length - 1) : answer
            response.writeHead(status, { "content-type": "application/json", connection: "close" })
            response.end(JSON.stringify(body))
          })
        })
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        return { server, received }
      }),
      ({ server }) => Effect.promise(() => new Promise((resolve) => server.close(resolve)))
    ),
    ({ received, server }) => ({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received })
  )
