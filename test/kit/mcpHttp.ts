/** MCP servers over HTTP for tests, on loopback: the official implementation, and handlers that do as they like. */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Server as OfficialServer } from "@modelcontextprotocol/sdk/server/index.js"
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js"
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { McpServer } from "../../src/actors/McpServer.ts"

/** Listens on a free port of loopback until the scope closes. */
export const listening = (handler: RequestListener): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ readonly url: string; readonly close: () => Promise<void> }>((resolve) => {
          const server = createServer(handler)
          server.listen(0, "127.0.0.1", () => {
            const { port } = server.address() as AddressInfo
            const close = () =>
              new Promise<void>((done) => {
                server.close(() => done())
                server.closeAllConnections()
              })
            resolve({ url: `http://127.0.0.1:${port}/mcp`, close })
          })
        })
    ),
    ({ close }) => Effect.promise(close)
  ).pipe(Effect.map(({ url }) => url))

export const at = (url: string, headers: Readonly<Record<string, string>> = {}): McpServer => ({
  name: "web",
  transport: { _tag: "Http", url, headers }
})

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of request) text += chunk
  return text
}

/** What the official server was asked, for tests to look at. */
export interface Asked {
  readonly headers: Array<IncomingMessage["headers"]>
  readonly methods: Array<string>
}

const number = { type: "number" }

/** The one tool of the official server. */
export const add = {
  name: "add",
  description: "Adds.",
  inputSchema: { type: "object" as const, properties: { a: number, b: number }, required: ["a", "b"] },
  outputSchema: { type: "object" as const, properties: { sum: number }, required: ["sum"] }
}

/** The official server with sessions, answering as JSON or as an event stream. */
export const official = Effect.fnUntraced(function* (json: boolean) {
  const asked: Asked = { headers: [], methods: [] }
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const servers = new Set<OfficialServer>()
  let tools: ReadonlyArray<typeof add> = [add]
  /** Offers other tools from now on, and says so on the stream of each session. */
  const change = (next: ReadonlyArray<typeof add>) =>
    Effect.promise(async () => {
      tools = next
      for (const server of servers) await server.sendToolListChanged()
    })
  const open = async () => {
    const server = new OfficialServer(
      { name: "official", version: "1.0.0" },
      { capabilities: { tools: { listChanged: true } } }
    )
    servers.add(server)
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...tools] }))
    server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
      const { a, b } = params.arguments as { readonly a: number; readonly b: number }
      return { content: [{ type: "text", text: String(a + b) }], structuredContent: { sum: a + b } }
    })
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      enableJsonResponse: json,
      onsessioninitialized: (id) => void sessions.set(id, transport)
    })
    await server.connect(transport as Parameters<typeof server.connect>[0])
    return transport
  }
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    asked.headers.push(request.headers)
    asked.methods.push(String(request.method))
    const id = request.headers["mcp-session-id"]
    const known = typeof id === "string" ? sessions.get(id) : undefined
    if (id !== undefined && known === undefined) return void response.writeHead(404).end()
    const text = await bodyOf(request)
    await (known ?? (await open())).handleRequest(request, response, text === "" ? undefined : JSON.parse(text))
  }
  const url = yield* listening((request, response) => void handle(request, response))
  return { url, asked, sessions, change }
})

/** A server that answers as `odd` does and whose own stream is what `get` makes of it. `onList`: it was asked for its tools. */
export const streaming = (
  get: RequestListener,
  onList: () => void = () => {},
  onAnswer: (message: unknown) => void = () => {}
): Effect.Effect<string, never, Scope.Scope> =>
  listening(async (request, response) => {
    if (request.method !== "POST") return get(request, response)
    const message = JSON.parse((await bodyOf(request)) || "{}") as Record<string, unknown>
    if (message["method"] === undefined) onAnswer(message)
    if (message["method"] === "tools/list") onList()
    usual(message, response)
  })

export type Handler = (message: Readonly<Record<string, unknown>>, response: ServerResponse) => void

/** Answers as a server would, except where `odd` says something else first. */
export const odd = (method: string, handler: Handler): Effect.Effect<string, never, Scope.Scope> =>
  listening(async (request, response) => {
    const message = JSON.parse((await bodyOf(request)) || "{}") as Record<string, unknown>
    if (message["method"] === method) return handler(message, response)
    usual(message, response)
  })

const usual: Handler = (message, response) => {
  if (message["id"] === undefined || message["method"] === undefined) return void response.writeHead(202).end()
  const tools = [{ name: "t", inputSchema: { type: "object" } }]
  const serverInfo = { name: "odd", version: "1" }
  const results: Readonly<Record<string, unknown>> = {
    initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo },
    "tools/list": { tools },
    "tools/call": { content: [] }
  }
  reply(response, message["id"], results[String(message["method"])])
}

export const reply = (response: ServerResponse, id: unknown, result: unknown): void => {
  response.writeHead(200, { "content-type": "application/json" })
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
}
