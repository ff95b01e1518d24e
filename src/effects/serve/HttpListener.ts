/**
 * Listens for HTTP on one address, with limits on how slowly a client may speak and how many may be there. The only file that
 * has to do with Node's HTTP server.
 */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import type { HttpServer } from "effect/http/HttpServer"
import type { ServeError } from "effect/http/HttpServerError"
import type * as Layer from "effect/Layer"

export interface ListenOptions {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  /** Until the head of a request is there. */
  readonly headMillis?: number
  /** Until the whole request is there. */
  readonly requestMillis?: number
  readonly connections?: number
}

export const layer = ({
  connections = 512,
  headMillis = 10_000,
  host,
  port,
  requestMillis = 60_000
}: ListenOptions): Layer.Layer<HttpServer, ServeError> =>
  NodeHttpServer.layerServer(
    () => {
      const server = createServer({
        headersTimeout: headMillis,
        requestTimeout: requestMillis,
        keepAliveTimeout: 5_000,
        connectionsCheckingInterval: Math.min(1_000, headMillis),
        maxHeaderSize: 16_384
      })
      server.maxConnections = connections
      return server
    },
    // Whoever closes the server has drained it before.
    { host, port, gracefulShutdownTimeout: 1_000 }
  )
