/** Servers on loopback that behave as their handler says, names that resolve as a test says, and calls of the web tools. */
import { readFileSync } from "node:fs"
import { createServer, type RequestListener } from "node:http"
import { createServer as createSecureServer } from "node:https"
import { type AddressInfo, createServer as createRawServer, type Server, type Socket } from "node:net"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { registry } from "../../src/tools/builtin/index.ts"
import { execute } from "../../src/tools/Execution.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import type { ToolOutcome } from "../../src/tools/ToolCall.ts"
import { type Exchange, Exchanger } from "../../src/tools/web/Exchange.ts"
import { Resolver } from "../../src/tools/web/Resolver.ts"
import { WebFault } from "../../src/tools/web/WebFault.ts"
import type { WebSettings } from "../../src/tools/web/WebSettings.ts"
import { admitted } from "./toolCalls.ts"

const fixture = (name: string): string => readFileSync(join(import.meta.dirname, "../fixtures/web", name), "utf8")

/** Certificate of the name `writ.test`, signed by itself. */
export const certificate = fixture("certificate.pem")

/** A server on loopback for as long as the test runs; its connections end with it. */
const listening = (server: Server): Effect.Effect<number, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly port: number; readonly open: ReadonlySet<Socket> }>((resume) => {
        const open = new Set<Socket>()
        server.on("connection", (socket: Socket) => {
          open.add(socket)
          socket.on("error", () => {}).once("close", () => open.delete(socket))
        })
        server.listen(0, "127.0.0.1", () =>
          resume(Effect.succeed({ port: (server.address() as AddressInfo).port, open }))
        )
      }),
      ({ open }) =>
        Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          for (const socket of open) socket.destroy()
        })
    ),
    ({ port }) => port
  )

export const serving = (handler: RequestListener): Effect.Effect<number, never, Scope.Scope> =>
  Effect.suspend(() => listening(createServer(handler)))

export const servingSecurely = (handler: RequestListener): Effect.Effect<number, never, Scope.Scope> =>
  Effect.suspend(() => listening(createSecureServer({ key: fixture("key.pem"), cert: certificate }, handler)))

/** A server below HTTP: it gets the socket when the first bytes of the request are there. */
export const servingRaw = (answer: (socket: Socket) => void): Effect.Effect<number, never, Scope.Scope> =>
  Effect.suspend(() => listening(createRawServer((socket) => socket.once("data", () => answer(socket)))))

/** Settings that grant one port of loopback, and nothing else. */
export const granting = (port: number, more: Partial<WebSettings> = {}): WebSettings => ({
  hosts: [`127.0.0.1:${port}`],
  allowAddresses: ["127.0.0.1"],
  robots: "ignore",
  ...more
})

export const call = Effect.fnUntraced(function* (
  name: "web_fetch" | "web_search",
  args: JsonObject,
  web?: WebSettings
): Effect.fn.Return<ToolOutcome> {
  const settings = { fixtures: {}, ...(web === undefined ? {} : { web }) }
  const one = admitted(yield* Effect.orDie(registry), name, args, { settings })
  return yield* execute(one.tool, one.arguments, { settings })
})

export const fetching = (url: string, web?: WebSettings): Effect.Effect<ToolOutcome> => call("web_fetch", { url }, web)

/** The result, or `kind: reason`. */
export const said = (outcome: ToolOutcome): string =>
  outcome._tag === "Succeeded" ? String(outcome.result) : `${outcome.kind}: ${outcome.errors[0]?.reason}`

/** Names resolve to what is listed, and to nothing else; how often each was asked for is counted. */
export const names = (known: Readonly<Record<string, ReadonlyArray<string>>>) => {
  const asked: Array<string> = []
  const provide = Effect.provideService(Resolver, (host) =>
    Effect.suspend(() => {
      asked.push(host)
      const addresses = known[host]
      return addresses === undefined
        ? Effect.fail(new WebFault({ kind: "not_found", message: `there is no host ${host}` }))
        : Effect.succeed(addresses)
    })
  )
  return { asked, provide }
}

/** No sockets: answers from a function, and says which addresses it was sent to. */
export const wires = (answer: (url: URL) => { readonly location?: string; readonly text?: string }) => {
  const reached: Array<string> = []
  const exchange: Exchange = ({ address, target }) =>
    Effect.sync(() => {
      reached.push(address)
      const { location, text = "" } = answer(target.url)
      const body = new TextEncoder().encode(text)
      return { status: location === undefined ? 200 : 302, contentType: "text/plain", location, body }
    })
  return { reached, provide: Effect.provideService(Exchanger, exchange) }
}
