/**
 * Owns the connection to one MCP server: starts it again when it went away, knows whether a tool is still the one that was
 * registered, and says of every call that failed whether it can have reached the server.
 */
import type * as McpSchema from "effect/ai/McpSchema"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { JsonObject } from "../tools/JsonText.ts"
import type { Descriptor } from "../tools/mcp/McpDescriptor.ts"
import type { CallFailure } from "../tools/mcp/McpTool.ts"
import { McpError } from "./McpError.ts"
import { type McpLink, type McpList, open } from "./McpLink.ts"
import { type McpLimits, type McpServer, standardLimits } from "./McpServer.ts"

export interface McpConnection {
  readonly server: McpServer
  readonly protocolVersion: string
  readonly serverInfo: McpLink["serverInfo"]
  /** What it offers now. */
  readonly list: Effect.Effect<McpList, McpError>
  /** Why a tool that was listed before must not be called any more; nothing if it is still the same. Stale stays stale. */
  readonly staleness: (tool: Descriptor) => Effect.Effect<string | undefined, McpError>
  readonly call: (tool: Descriptor, args: JsonObject) => Effect.Effect<McpSchema.CallToolResult, CallFailure>
  /** The process that runs now. */
  readonly pid: () => number | undefined
}

export interface ConnectOptions {
  /** Ours, told to the server. */
  readonly version: string
  readonly limits?: Partial<McpLimits>
}

const codes: Readonly<Record<number, CallFailure["kind"]>> = {
  [-32601]: "not_found",
  [-32602]: "invalid_arguments"
}

const unanswered: ReadonlySet<McpError["reason"]> = new Set(["unreachable", "timed_out", "closed"])

/** A request that was refused as such did nothing; of any other failure only its never being sent says so. */
const failureOf = ({ code, message, reason }: McpError, sent: boolean): CallFailure => {
  const refused = code === undefined ? undefined : codes[code]
  if (refused !== undefined) return { kind: refused, message, sent: false }
  return { kind: unanswered.has(reason) ? "unavailable" : "execution_failed", message, sent }
}

/** The list as it was read last, and from which link. */
interface Seen {
  readonly link: McpLink
  readonly changes: number
  readonly at: number
  readonly hashes: ReadonlyMap<string, string>
}

/** Keeps a link to the server open: a new one where the last is over, as often as the limits say. */
const keptOpen = Effect.fnUntraced(function* (server: McpServer, limits: McpLimits, version: string) {
  const owner = yield* Effect.scope
  const services = yield* Effect.context<ChildProcessSpawner>()
  const start = Effect.gen(function* () {
    const scope = yield* Scope.fork(owner)
    const link = yield* open(server, limits, version).pipe(
      Effect.provideService(Scope.Scope, scope),
      Effect.provideContext(services),
      Effect.onError(() => Scope.close(scope, Exit.void))
    )
    return { link, scope }
  })
  let current = yield* start
  let startedAt = yield* Clock.currentTimeMillis
  let restarts = 0
  const alive = Effect.gen(function* () {
    if (!current.link.isOver()) return current.link
    const now = yield* Clock.currentTimeMillis
    // One that held for a while is not one that fails again and again.
    if (now - startedAt > limits.freshMillis) restarts = 0
    if (restarts >= limits.restarts) {
      const detail = `went away, and was started again ${restarts} times already`
      return yield* new McpError({ server: server.name, reason: "closed", detail })
    }
    restarts++
    yield* Scope.close(current.scope, Exit.void)
    current = yield* start
    startedAt = yield* Clock.currentTimeMillis
    return current.link
  })
  return { alive, current: () => current.link }
})

/** Connects, in the scope of the caller: the server's process ends with it. */
export const connect = Effect.fnUntraced(function* (
  server: McpServer,
  options: ConnectOptions
): Effect.fn.Return<McpConnection, McpError, Scope.Scope | ChildProcessSpawner> {
  const limits = { ...standardLimits, ...options.limits }
  const { alive, current } = yield* keptOpen(server, limits, options.version)
  // Whoever starts a server again or reads its list does so alone.
  const turn = yield* Semaphore.make(1)
  const stale = new Map<string, string>()
  let seen: Seen | undefined

  const look = Effect.fnUntraced(function* (link: McpLink) {
    const changes = link.changes()
    const list = yield* link.list
    const hashes = new Map(list.tools.map(({ hash, name }) => [name, hash] as const))
    seen = { link, changes, at: yield* Clock.currentTimeMillis, hashes }
    return list
  })

  const isFresh = (link: McpLink, now: number): boolean =>
    seen !== undefined && seen.link === link && seen.changes === link.changes() && now - seen.at < limits.freshMillis

  const staleness = Effect.fnUntraced(function* ({ hash, name }: Descriptor) {
    const known = stale.get(name)
    if (known !== undefined) return known
    const link = yield* alive
    if (!isFresh(link, yield* Clock.currentTimeMillis)) yield* look(link)
    const now = seen?.hashes.get(name)
    if (now === hash) return undefined
    const what = now === undefined ? "does not list this tool any more" : "describes this tool differently now"
    const why = `the MCP server "${server.name}" ${what}; it is not called before the server is opened anew`
    stale.set(name, why)
    return why
  })

  return {
    server,
    protocolVersion: current().protocolVersion,
    serverInfo: current().serverInfo,
    list: turn.withPermit(Effect.flatMap(alive, look)),
    staleness: (tool) => turn.withPermit(staleness(tool)),
    call: ({ name }, args) =>
      Effect.suspend(() => {
        const link = current()
        const sent = !link.isOver()
        return Effect.mapError(link.call(name, args), (error) => failureOf(error, sent))
      }),
    pid: () => current().pid
  }
})
