/**
 * One connection to one MCP server, from its start to its end: Effect's client, with what it leaves out added around it (see
 * docs/mcp.md): older revisions of the protocol, changes of the list, tools that are refused one by one, bounds on everything a
 * server may say. The process it starts is ended with the scope, whatever state it is in.
 */
import * as McpClient from "effect/ai/McpClient"
import type { McpClientError } from "effect/ai/McpClientError"
import * as McpProtocol from "effect/ai/McpProtocol"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { JsonObject } from "../tools/JsonText.ts"
import { type Descriptor, type RefusedTool, read, together } from "../tools/mcp/McpDescriptor.ts"
import { fromClient, McpError } from "./McpError.ts"
import * as McpHttpHearing from "./McpHttpHearing.ts"
import { environmentOf, type HttpServer, type McpLimits, type McpServer, type StdioServer } from "./McpServer.ts"
import { McpStdout } from "./McpStdout.ts"

export interface McpList {
  readonly tools: ReadonlyArray<Descriptor>
  readonly refused: ReadonlyArray<RefusedTool>
}

export interface McpLink {
  readonly protocolVersion: string
  readonly serverInfo: { readonly name: string; readonly version: string } | undefined
  readonly list: Effect.Effect<McpList, McpError>
  readonly call: (name: string, args: JsonObject) => Effect.Effect<McpSchema.CallToolResult, McpError>
  /** How often the server said that its list changed. */
  readonly changes: () => number
  /** It can take no more calls. */
  readonly isOver: () => boolean
  /** The process that was started for it. */
  readonly pid: number | undefined
}

/** What is seen of a server on its way through. */
interface Watch {
  readonly server: McpServer
  readonly limits: McpLimits
  changes: number
  over: boolean
  pid: number | undefined
  /** The revision the server answered with. */
  agreed: string | undefined
  listed: Array<ReturnType<typeof read>>
  stdout: McpStdout | undefined
  /** The end of what it wrote to standard error. */
  stderr: string
}

type Adapter = McpProtocol.ProtocolAdapter<McpClient.ProtocolVersion>

/** Revisions with a handshake, newest first. The client's type names the newest only; the others are the same to it. */
const revisions = [
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05
] as ReadonlyArray<McpProtocol.ProtocolAdapter> as ReadonlyArray<Adapter>
const stateless: Adapter = McpProtocol.v2026_07_28

const stderrKept = 2000

type Spawner = ChildProcessSpawner.ChildProcessSpawner["Service"]
type Handle = ChildProcessSpawner.ChildProcessHandle

/** The server's process, with our ears on its output. */
const heard = (watch: Watch, handle: Handle, closing: Effect.Effect<void>): Handle => {
  const stdout = new McpStdout(watch.limits, () => watch.changes++)
  watch.pid = handle.pid
  watch.stdout = stdout
  const text = new TextDecoder()
  const isOver = () => stdout.fault !== undefined
  // Whoever is not listened to any more has no reason to go on.
  const silenced = Effect.suspend(() =>
    isOver() ? Effect.ignore(handle.kill({ killSignal: "SIGKILL" })) : Effect.void
  )
  return Object.assign(Object.create(Object.getPrototypeOf(handle)), handle, {
    stdout: handle.stdout.pipe(
      Stream.map(stdout.push),
      Stream.takeUntil(isOver),
      Stream.filter((bytes) => bytes.byteLength > 0),
      Stream.ensuring(silenced)
    ),
    stderr: Stream.tap(handle.stderr, (bytes) =>
      Effect.sync(() => {
        watch.stderr = (watch.stderr + text.decode(bytes, { stream: true })).slice(-stderrKept)
      })
    ),
    // The library waits five seconds for a server whose input was closed; we wait as long as we were told.
    exitCode: Effect.raceFirst(handle.exitCode, Effect.as(closing, ChildProcessSpawner.ExitCode(0)))
  })
}

/**
 * Runs `use` with a spawner whose processes are heard. When the scope closes, a server whose input is closed has so long to go
 * by itself, then it is asked to, and then it is ended, with everything it started.
 */
const listening = Effect.fnUntraced(function* <A, E>(
  watch: Watch,
  use: Effect.Effect<A, E, Scope.Scope | ChildProcessSpawner.ChildProcessSpawner>
) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const { exitMillis } = watch.limits
  const closing = yield* Deferred.make<void>()
  const patience = Effect.andThen(Deferred.await(closing), Effect.sleep(exitMillis))
  const spawn: Spawner["spawn"] = Effect.fnUntraced(function* (command) {
    const handle = yield* spawner.spawn(command)
    yield* Effect.addFinalizer(() => Effect.ignore(handle.kill({ killSignal: "SIGTERM", forceKillAfter: exitMillis })))
    return heard(watch, handle, patience)
  })
  const used = yield* Effect.provideService(use, ChildProcessSpawner.ChildProcessSpawner, { ...spawner, spawn })
  yield* Effect.addFinalizer(() => Deferred.succeed(closing, undefined))
  return used
})

const stdioTransport = Effect.fnUntraced(function* (watch: Watch, adapter: Adapter, transport: StdioServer) {
  const command = ChildProcess.make(transport.command, [...transport.args], {
    ...(transport.cwd === undefined ? {} : { cwd: transport.cwd }),
    env: yield* environmentOf(transport.env),
    extendEnv: false,
    forceKillAfter: watch.limits.exitMillis
  })
  return yield* listening(
    watch,
    McpClient.stdio({ command, protocol: adapter, maxMessageBytes: watch.limits.messageBytes })
  )
})

/** Redirects are errors: headers with credentials are for the address that was named. */
const httpTransport = (watch: Watch, adapter: Adapter, server: HttpServer) =>
  Effect.gen(function* () {
    const hearing = yield* McpHttpHearing.make({
      server,
      version: adapter.protocolVersion,
      limits: watch.limits,
      onChanged: () => watch.changes++
    })
    const { headers, url } = server
    const transport = yield* McpClient.http({
      url,
      protocol: adapter,
      maxMessageBytes: watch.limits.messageBytes,
      ...(headers === undefined ? {} : { headers })
    }).pipe(Effect.provideService(HttpClient.HttpClient, hearing.client))
    // The newest revision knows no stream of the server's own.
    return { transport, listen: adapter === stateless ? Effect.void : hearing.listen }
  }).pipe(
    Effect.provide(FetchHttpClient.layer),
    Effect.provideService(FetchHttpClient.RequestInit, { redirect: "error" })
  )

const expecting = <A, E>(watch: Watch, id: string | number, answer: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    watch.stdout?.expect(id)
    return answer
  })

/** Takes the tools out of a list before the client judges it as a whole: one that cannot be read must not cost the others. */
const sieved = (watch: Watch, transport: McpClient.Transport): McpClient.Transport => ({
  ...transport,
  request: (message, tool) =>
    Effect.map(expecting(watch, message.id, transport.request(message, tool)), (response) => {
      const result = (response as { readonly result?: unknown }).result
      if (typeof result !== "object" || result === null) return response
      if (message.method === "initialize") {
        const { protocolVersion } = result as { readonly protocolVersion?: unknown }
        watch.agreed = typeof protocolVersion === "string" ? protocolVersion : undefined
      }
      if (message.method !== "tools/list") return response
      const { tools } = result as { readonly tools?: unknown }
      const most = watch.limits.tools
      if (!Array.isArray(tools)) return response
      // Read at once: what is refused for its size is not kept until the list ends, which may be never.
      for (const tool of tools.slice(0, most + 1 - watch.listed.length))
        watch.listed.push(read(tool, watch.listed.length))
      // There is enough to refuse it: the next page is not asked for.
      const { nextCursor, ...last } = result as Readonly<Record<string, unknown>>
      const kept = watch.listed.length > most || nextCursor === undefined ? last : { ...last, nextCursor }
      return { ...response, result: { ...kept, tools: [] } } as typeof response
    })
})

/** The library's error, or what we heard ourselves, with the server's own last words where it never began. */
const errorOf = (watch: Watch, error: McpClientError): McpError => {
  const fault = watch.stdout?.fault
  const server = watch.server.name
  if (fault !== undefined) return new McpError({ server, ...fault })
  const ours = fromClient(server, error)
  const words = watch.stderr.trim().split("\n").slice(-3).join(" · ")
  const garbled = watch.stdout?.dropped ?? 0
  const more = [
    ...(garbled > 0 && ours.reason !== "rejected" ? [`; ${garbled} lines of its output are no messages`] : []),
    ...(words === "" || ours.reason === "rejected" ? [] : [`; it said: ${words}`])
  ]
  if (more.length === 0) return ours
  const { code, detail, reason } = ours
  return new McpError({ server, reason, detail: `${detail}${more.join("")}`, ...(code === undefined ? {} : { code }) })
}

const attempt = Effect.fnUntraced(function* (watch: Watch, adapter: Adapter, version: string) {
  const { limits, server } = watch
  const { listen, transport } =
    server.transport._tag === "Stdio"
      ? { transport: yield* stdioTransport(watch, adapter, server.transport), listen: Effect.void }
      : yield* httpTransport(watch, adapter, server.transport)
  const client = yield* McpClient.make({ name: "writ", version, timeout: limits.startMillis }).pipe(
    Effect.provideService(McpClient.Transport, sieved(watch, transport))
  )
  yield* listen
  return client
})

const newWatch = (server: McpServer, limits: McpLimits): Watch => ({
  server,
  limits,
  changes: 0,
  over: false,
  pid: undefined,
  agreed: undefined,
  listed: [],
  stdout: undefined,
  stderr: ""
})

/** What to try after a first try: the revision the server names, or the one without a handshake if it refuses that. */
const nextRevision = (tried: Adapter, watch: Watch, { reason }: McpClientError): Adapter | undefined => {
  if (watch.agreed !== undefined && watch.agreed !== tried.protocolVersion) {
    return revisions.find((one) => (one.protocolVersion as string) === watch.agreed)
  }
  const refused = (reason._tag === "ProtocolError" && reason.code !== undefined) || reason._tag === "HttpError"
  return refused && tried === revisions[0] ? stateless : undefined
}

const linkOf = (watch: Watch, client: McpClient.McpClient): McpLink => {
  const failing = <A>(effect: Effect.Effect<A, McpClientError>): Effect.Effect<A, McpError> =>
    Effect.mapError(effect, (error) => {
      const ours = errorOf(watch, error)
      // A response over HTTP that breaks off says nothing about the next one.
      const gone =
        watch.server.transport._tag === "Stdio" ? ours.reason === "closed" : error.reason._tag === "ClosedError"
      if (gone || watch.stdout?.fault !== undefined) watch.over = true
      return ours
    })
  const { limits, server } = watch
  const list = Effect.suspend(() => {
    watch.listed = []
    return failing(client.listTools({ timeout: limits.listMillis }))
  }).pipe(
    Effect.flatMap(() => {
      const listed = watch.listed
      watch.listed = []
      return listed.length > limits.tools
        ? new McpError({ server: server.name, reason: "limit", detail: `lists more than ${limits.tools} tools` })
        : Effect.succeed(together(listed))
    })
  )
  return {
    protocolVersion: client.protocolVersion,
    serverInfo: client.serverInfo,
    list,
    call: (name, args) =>
      failing(client.callTool({ tool: { name, inputSchema: {} } as unknown as McpSchema.Tool, arguments: args })),
    changes: () => watch.changes,
    isOver: () => watch.over || watch.stdout?.fault !== undefined,
    pid: watch.pid
  }
}

/** Reaches a server and agrees with it on a revision of the protocol. `version` is ours, for its log. */
export const open = Effect.fnUntraced(function* (
  server: McpServer,
  limits: McpLimits,
  version: string
): Effect.fn.Return<McpLink, McpError, Scope.Scope | ChildProcessSpawner.ChildProcessSpawner> {
  const outer = yield* Effect.scope
  let adapter: Adapter | undefined = revisions[0]!
  let failure: McpError | undefined
  while (adapter !== undefined) {
    const watch = newWatch(server, limits)
    const scope = yield* Scope.fork(outer)
    const client = yield* Effect.result(Scope.provide(attempt(watch, adapter, version), scope))
    if (client._tag === "Success") return linkOf(watch, client.success)
    failure = errorOf(watch, client.failure)
    yield* Scope.close(scope, Exit.void)
    adapter = nextRevision(adapter, watch, client.failure)
  }
  return yield* failure!
})
