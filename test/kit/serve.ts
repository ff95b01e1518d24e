/** A chat server over a script and the test tools, on a free port of loopback, and clients of it. */
import { connect } from "node:net"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import OpenAI from "openai"
import { Approval, type Approver, denyAll } from "../../src/effects/Policy.ts"
import * as ChatServer from "../../src/effects/serve/ChatServer.ts"
import * as HttpListener from "../../src/effects/serve/HttpListener.ts"
import type { Tokens } from "../../src/effects/serve/Tokens.ts"
import { Model } from "../../src/engine/Model.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import type { Registry } from "../../src/tools/Registry.ts"
import * as TestTools from "./tools.ts"

export interface Serving {
  readonly url: string
  readonly client: OpenAI
  readonly server: ChatServer.ChatServer
  /** What tools did. */
  readonly performed: ReadonlyArray<string>
  /** The record of a run, by its number from 1. */
  readonly trace: (run: number) => string
  /** What each session that was ever opened holds. */
  readonly contexts: () => ReadonlyArray<string>
}

export interface ServingOptions extends Partial<Omit<ChatServer.ServeOptions, "tools" | "host">> {
  readonly script?: Omit<Script, "turns">
  readonly approver?: Approver
  readonly withTools?: boolean
  /** What is made of the scripted engine. */
  readonly engine?: (own: Model["Service"]) => Model["Service"]
  /** Instead of the test tools. */
  readonly tools?: Registry
  readonly tokens?: Tokens
  readonly listen?: Partial<HttpListener.ListenOptions>
}

export const portOf = ({ address }: HttpServer["Service"]): number => ("port" in address ? Number(address.port) : 0)

/** Listens until the scope closes. */
export const serving = Effect.fnUntraced(function* (turns: Script["turns"], options: ServingOptions = {}) {
  const { approver = denyAll, engine = (own) => own, listen, script, withTools = true, ...rest } = options
  const scope = yield* Effect.scope
  const scripted = yield* Layer.buildWithScope(layerScripted({ ...script, turns }), scope)
  const services = Context.add(scripted, Model, engine(Context.get(scripted, Model)))
  const { performed, registry } = yield* TestTools.make()
  const tools = withTools ? registry : { ...registry, tools: [], specs: [], get: () => undefined }
  const server = yield* ChatServer.make({
    tools,
    model: "test-model",
    host: "127.0.0.1",
    sessions: 2,
    trace: { content: true },
    ...rest
  }).pipe(
    Effect.provideContext(Context.merge(yield* Effect.context<Scope.Scope>(), services)),
    Effect.provideService(Approval, approver)
  )
  const listener = yield* Layer.buildWithScope(HttpListener.layer({ host: "127.0.0.1", port: 0, ...listen }), scope)
  yield* Layer.buildWithScope(
    HttpRouter.serve(server.routes, { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provide(Layer.succeedContext(listener))
    ),
    scope
  ).pipe(Effect.provideService(Approval, approver))
  const port = portOf(Context.get(listener, HttpServer))
  const url = `http://127.0.0.1:${port}`
  const traces = Context.get(services, MemoryTraces)
  const logs = Context.get(services, ScriptedSessions)
  const made: Serving = {
    url,
    server,
    performed,
    client: new OpenAI({ apiKey: "sk-none", baseURL: `${url}/v1`, maxRetries: 0 }),
    trace: (run) => traces.text(`run-${run}`),
    contexts: () => logs.map((log) => log.committed()).filter((text) => text !== "")
  }
  return made
})

/** A plain request. */
export const post = (
  url: string,
  body: unknown,
  init: { readonly headers?: Readonly<Record<string, string>>; readonly method?: string } = {}
): Effect.Effect<{
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
  readonly text: string
}> =>
  Effect.promise(async () => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: init.method ?? "POST",
      headers: { "content-type": "application/json", ...init.headers },
      ...(init.method === "GET" ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
    })
    const text = await response.text()
    let parsed: unknown
    try {
      parsed = JSON.parse(text)
    } catch {
      parsed = undefined
    }
    return { status: response.status, headers: response.headers, body: parsed, text }
  })

export const hello = { model: "test-model", messages: [{ role: "user" as const, content: "hello" }] }

/** A connection of one's own: what was heard on it so far, and its end. */
export interface Wire {
  readonly say: (text: string) => void
  /** Says no more, and goes on listening. */
  readonly half: () => void
  readonly close: () => void
  readonly heard: () => string
  readonly closed: Promise<void>
}

/** `deaf`: takes nothing of what is said. */
export const wire = (url: string, deaf = false): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<Wire>((resolve) => {
          let heard = ""
          const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true })
          socket.setEncoding("utf8").on("data", (text) => (heard += text))
          socket.on("error", () => {})
          if (deaf) socket.pause()
          const closed = new Promise<void>((done) => socket.on("close", () => done()))
          // The other side has said all: so have we.
          socket.on("end", () => socket.end())
          socket.on("connect", () =>
            resolve({
              say: (text) => void socket.write(text),
              half: () => void socket.end(),
              close: () => void socket.destroy(),
              heard: () => heard,
              closed
            })
          )
        })
    ),
    ({ close }) => Effect.sync(close)
  )

/** Waits until something holds. */
export const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2))
  })

/** A request as it stands on a wire. */
export const raw = (body: string, headers: ReadonlyArray<string> = []): string =>
  [
    "POST /v1/chat/completions HTTP/1.1",
    "host: localhost",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    ...headers,
    "",
    body
  ].join("\r\n")
