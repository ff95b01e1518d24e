import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServing from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { connect } from "../../src/actors/McpConnection.ts"
import type { McpLimits, McpServer } from "../../src/actors/McpServer.ts"
import type { Descriptor } from "../../src/tools/mcp/McpDescriptor.ts"
import { patient } from "../kit/mcp.ts"
import { add, at, type Handler, listening, odd, official, reply, streaming } from "../kit/mcpHttp.ts"

const to = (server: McpServer, limits: Partial<McpLimits> = {}) =>
  connect(server, { version: "0.0.0", limits: { ...patient, ...limits } })

const live = (name: string, test: () => Effect.Effect<unknown, unknown, Scope.Scope | ChildProcessSpawner>) =>
  it.live(name, () => Effect.provide(Effect.scoped(test()), NodeServices.layer), 120_000)

const tool = (name: string): Descriptor => ({ name, description: "", inputSchema: {}, hints: {}, hash: "" })

describe("the official server over HTTP", () => {
  for (const json of [true, false]) {
    live(`lists and answers as ${json ? "JSON" : "an event stream"}, in a session that is ended`, () =>
      Effect.gen(function* () {
        const { asked, url } = yield* official(json)
        const scope = yield* Scope.make()
        const connection = yield* Scope.provide(to(at(url, { authorization: "Bearer word" })), scope)
        const { tools } = yield* connection.list
        assert.deepStrictEqual(
          tools.map(({ name }) => name),
          ["add"]
        )
        const result = yield* connection.call(tools[0]!, { a: 2, b: 3 })
        assert.deepStrictEqual(result.structuredContent, { sum: 5 })
        yield* Scope.close(scope, Exit.void)
        assert.isTrue(asked.headers.every((headers) => headers["authorization"] === "Bearer word"))
        assert.strictEqual(asked.methods.at(-1), "DELETE")
      })
    )
  }

  live("is reached again when it forgot the session", () =>
    Effect.gen(function* () {
      const { sessions, url } = yield* official(true)
      const connection = yield* to(at(url))
      const { tools } = yield* connection.list
      sessions.clear()
      const failure = yield* Effect.flip(connection.call(tools[0]!, { a: 1, b: 1 }))
      assert.strictEqual(failure.kind, "unavailable")
      assert.isUndefined(yield* connection.staleness(tools[0]!))
      assert.deepStrictEqual((yield* connection.call(tools[0]!, { a: 1, b: 1 })).structuredContent, { sum: 2 })
    })
  )
})

live("a server of the newest revision, which knows no handshake, is spoken to as it wants", () =>
  Effect.gen(function* () {
    const registration = Layer.effectDiscard(
      Effect.flatMap(McpServing.McpServer, (server) =>
        server.addTool({
          tool: new McpSchema.Tool({ name: "hello", inputSchema: { type: "object" } as McpSchema.Tool["inputSchema"] }),
          annotations: Context.empty(),
          handle: () => Effect.succeed(new McpSchema.CallToolResult({ content: [{ type: "text", text: "hi" }] }))
        })
      )
    )
    const mcp = McpServing.layerHttp({
      name: "newest",
      version: "1",
      path: "/mcp",
      protocols: [McpProtocol.v2026_07_28],
      registrations: registration
    })
    const served = HttpRouter.serve(mcp, { disableListenLog: true, disableLogger: true }).pipe(
      Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" }))
    )
    const context = yield* Layer.build(served)
    const { address } = Context.get(context, HttpServer.HttpServer)
    const port = "port" in address ? address.port : 0
    const connection = yield* to(at(`http://127.0.0.1:${port}/mcp`))
    assert.strictEqual(connection.protocolVersion, "2026-07-28")
    const { tools } = yield* connection.list
    const { content } = yield* connection.call(tools[0]!, {})
    assert.deepStrictEqual(JSON.parse(JSON.stringify(content)), [{ type: "text", text: "hi" }])
  })
)

describe("an address", () => {
  live("where nobody listens is unreachable", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const url = yield* Scope.provide(
        listening(() => {}),
        scope
      )
      yield* Scope.close(scope, Exit.void)
      const { message, reason } = yield* Effect.flip(to(at(url)))
      assert.strictEqual(reason, "unreachable")
      assert.include(message, "ECONNREFUSED")
    })
  )
  live("that sends elsewhere is not followed", () =>
    Effect.gen(function* () {
      let followed = 0
      const other = yield* listening((_, response) => {
        followed++
        response.end()
      })
      const url = yield* listening((_, response) => void response.writeHead(307, { location: other }).end())
      const { reason } = yield* Effect.flip(to(at(url, { authorization: "Bearer word" })))
      assert.strictEqual(reason, "unreachable")
      assert.strictEqual(followed, 0)
    })
  )
  live("that never answers times out", () =>
    Effect.gen(function* () {
      const url = yield* listening(() => {})
      const { reason } = yield* Effect.flip(to(at(url), { startMillis: 300 }))
      assert.strictEqual(reason, "timed_out")
    })
  )
  live("that wants to know who asks is named with its status", () =>
    Effect.gen(function* () {
      const url = yield* listening((_, response) => void response.writeHead(401).end())
      const { message, reason } = yield* Effect.flip(to(at(url)))
      assert.strictEqual(reason, "rejected")
      assert.include(message, "401")
    })
  )
})

describe("a call over HTTP", () => {
  const failing = Effect.fnUntraced(function* (handler: Handler, limits: Partial<McpLimits> = {}) {
    const connection = yield* to(at(yield* odd("tools/call", handler)), limits)
    return yield* Effect.flip(connection.call(tool("t"), {}))
  })
  const stream = { "content-type": "text/event-stream" }

  const cases: ReadonlyArray<readonly [string, Handler, "unavailable" | "execution_failed"]> = [
    ["that the server breaks off", (_, response) => void response.destroy(), "unavailable"],
    [
      "that ends before its answer",
      (_, response) => void response.writeHead(200, stream).end(": hello\n\n"),
      "unavailable"
    ],
    ["that fails inside the server", (_, response) => void response.writeHead(500).end("oh"), "execution_failed"],
    [
      "answered with a page",
      (_, response) => void response.writeHead(200, { "content-type": "text/html" }).end("<p>"),
      "execution_failed"
    ],
    [
      "answered with half a message",
      (_, response) => void response.writeHead(200, { "content-type": "application/json" }).end('{"jsonrpc'),
      "execution_failed"
    ],
    ["answered for somebody else", (_, response) => reply(response, 999, { content: [] }), "execution_failed"],
    ["answered with nonsense", ({ id }, response) => reply(response, id, { content: 7 }), "execution_failed"],
    ["that is taken and never answered", (_, response) => void response.writeHead(202).end(), "execution_failed"]
  ]
  for (const [name, handler, kind] of cases) {
    live(`${name} fails and may have been done`, () =>
      Effect.map(failing(handler), (failure) => {
        assert.deepInclude(failure, { kind, sent: true })
        assert.include(failure.message, 'the MCP server "web"')
      })
    )
  }

  live("with too large an answer is cut off", () =>
    Effect.gen(function* () {
      const huge: Handler = ({ id }, response) =>
        reply(response, id, { content: [{ type: "text", text: "x".repeat(3_000_000) }] })
      const failure = yield* failing(huge, { messageBytes: 1_000_000 })
      assert.include(failure.message, "more than is listened to")
    })
  )
  live("that streams without end ends when its caller is interrupted", () =>
    Effect.gen(function* () {
      const endless: Handler = (_, response) => {
        response.writeHead(200, stream)
        const more = (): void => {
          while (response.write(`data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n`)) {}
          response.once("drain", more)
        }
        more()
      }
      const connection = yield* to(at(yield* odd("tools/call", endless)))
      const result = yield* Effect.timeoutOption(connection.call(tool("t"), {}), 300)
      assert.strictEqual(result._tag, "None")
      assert.lengthOf((yield* connection.list).tools, 1)
    })
  )
})

describe("what a server says besides its answers", () => {
  /** Long enough that no list is read again because of its age. */
  const never = { freshMillis: 3_600_000 }
  const eventually = <A, E>(look: Effect.Effect<A, E>, holds: (found: A) => boolean) =>
    Effect.repeat(look, { until: holds, schedule: Schedule.spaced(20) })

  for (const json of [true, false]) {
    live(
      `is heard over HTTP as over stdio: a tool whose list changed is called no more (${json ? "JSON" : "streams"})`,
      () =>
        Effect.gen(function* () {
          const { change, url } = yield* official(json)
          const connection = yield* to(at(url), never)
          const { tools } = yield* connection.list
          assert.isUndefined(yield* connection.staleness(tools[0]!))
          yield* change([{ ...add, description: "Adds otherwise." }])
          const why = yield* eventually(connection.staleness(tools[0]!), (found) => found !== undefined)
          assert.match(why!, /describes this tool differently now/)
        })
    )
  }

  live("costs no list while nothing changed, and no call where there is no such stream", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* official(true)
      const connection = yield* to(at(url), never)
      const { tools } = yield* connection.list
      const before = asked.methods.length
      for (let i = 0; i < 3; i++) assert.isUndefined(yield* connection.staleness(tools[0]!))
      assert.strictEqual(asked.methods.length, before)
      assert.strictEqual(asked.methods.filter((method) => method === "GET").length, 1)
      const refusing = yield* to(at(yield* streaming((_, response) => void response.writeHead(405).end())), never)
      assert.lengthOf((yield* refusing.list).tools, 1)
    })
  )

  live("may have been missed while the stream was closed, so that the list is read again", () =>
    Effect.gen(function* () {
      let lists = 0
      const url = yield* streaming(
        (_, response) => void response.writeHead(200, { "content-type": "text/event-stream" }).end(": bye\n\n"),
        () => lists++
      )
      const connection = yield* to(at(url), never)
      const { tools } = yield* connection.list
      yield* eventually(connection.staleness(tools[0]!), () => lists > 1)
    })
  )

  live("is answered where it is a question, and keeps no call from its answer where it is a flood", () =>
    Effect.gen(function* () {
      const answers: Array<unknown> = []
      let floods = 0
      const url = yield* streaming(
        (_, response) => {
          floods++
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.write(`data: {"jsonrpc":"2.0","id":"p","method":"ping"}\n\n`)
          response.write(`data: {"jsonrpc":"2.0","id":"r","method":"roots/list"}\n\n`)
          const line = `: ${"x".repeat(10_000)}\n\n`
          const more = (): void => {
            while (!response.destroyed && response.write(line)) {}
            if (!response.destroyed) response.once("drain", more)
          }
          more()
        },
        undefined,
        (message) => answers.push(message)
      )
      const connection = yield* to(at(url), { ...never, strayBytes: 200_000 })
      const { tools } = yield* connection.list
      yield* connection.call(tools[0]!, {})
      yield* eventually(
        Effect.sync(() => answers.length),
        (count) => count >= 2
      )
      assert.deepInclude(answers[0] as object, { id: "p", result: {} })
      assert.nestedInclude(answers[1] as object, { id: "r", "error.code": -32601 })
      assert.isAtLeast(floods, 1)
    })
  )
})
