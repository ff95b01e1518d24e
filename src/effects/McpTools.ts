/** The tools of MCP servers in a run: connecting, registering, and running their calls here, where the connections are. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import { runDetachable } from "../actors/Detachment.ts"
import { connect, type McpConnection } from "../actors/McpConnection.ts"
import type { McpError } from "../actors/McpError.ts"
import type { McpLimits, McpServer } from "../actors/McpServer.ts"
import { type AdmittedCall, defaultGraceMillis, type ToolPool } from "../actors/ToolPool.ts"
import { execute, failed } from "../tools/Execution.ts"
import type { ContractFile, FormProblem } from "../tools/mcp/McpContractFile.ts"
import type { RefusedTool } from "../tools/mcp/McpDescriptor.ts"
import { type McpTool, toolsOf } from "../tools/mcp/McpTool.ts"
import * as Registry from "../tools/Registry.ts"
import type { ToolOutcome } from "../tools/ToolCall.ts"
import { takingCalls } from "./OwnCalls.ts"
import { version } from "./Version.ts"

/** One server that answers, with what it offers. */
export interface OpenServer {
  readonly connection: McpConnection
  readonly tools: ReadonlyArray<McpTool>
  readonly refused: ReadonlyArray<RefusedTool>
}

export interface McpTools {
  readonly servers: ReadonlyArray<OpenServer>
  readonly registry: Registry.Registry
  /** What is wrong in the contract file. A tool with a problem is not offered. */
  readonly problems: ReadonlyArray<FormProblem>
  /** The services of a run, with these connections for the calls of their tools and the pool for all others. */
  readonly layer: <A, E, R>(services: Layer.Layer<A | ToolPool, E, R>) => Layer.Layer<A | ToolPool, E, R>
}

export interface McpOptions {
  readonly contracts?: ContractFile
  readonly limits?: Partial<McpLimits>
}

interface Home {
  readonly connection: McpConnection
  readonly tool: McpTool
}

/** A call goes to its server only while the tool is the one that was registered. */
const work = ({ arguments: args, settings, tool }: AdmittedCall, home: Home): Effect.Effect<ToolOutcome> =>
  Effect.matchEffect(home.connection.staleness(home.tool.descriptor), {
    onFailure: ({ message }) => Effect.succeed(failed("unavailable", "none", message, 0)),
    onSuccess: (stale) =>
      stale === undefined
        ? execute(tool, args, { settings })
        : Effect.succeed(failed("stale_contract", "none", stale, 0))
  })

const routed = (homes: ReadonlyMap<string, Home>): Layer.Layer<ToolPool, never, ToolPool> =>
  takingCalls((owner) => (call, late) => {
    const home = homes.get(call.tool.name)
    // By identity: a tool of another origin that has the name is not this server's.
    if (home === undefined || home.tool.registered.hash !== call.tool.hash) return undefined
    const { deadlineMillis, detached, tool } = call
    const bounds = { deadlineMillis, graceMillis: defaultGraceMillis }
    return runDetachable(work(call, home), { contract: tool.contract, ...bounds, owner, late, detached })
  })

/** Connects to all servers, side by side, and registers their tools. The servers end with the scope. */
export const open = Effect.fnUntraced(function* (
  servers: ReadonlyArray<McpServer>,
  { contracts, limits }: McpOptions = {}
): Effect.fn.Return<McpTools, McpError | Registry.RegistrationError, Scope.Scope | ChildProcessSpawner> {
  const opened = yield* Effect.forEach(
    servers,
    Effect.fnUntraced(function* (server) {
      const connection = yield* connect(server, { version, ...(limits === undefined ? {} : { limits }) })
      const forms = contracts?.servers
      const form = forms !== undefined && Object.hasOwn(forms, server.name) ? forms[server.name] : undefined
      const made = yield* toolsOf(server.name, yield* connection.list, form, connection.call)
      return { connection, ...made }
    }),
    { concurrency: "unbounded" }
  )
  const homes = new Map<string, Home>()
  for (const { connection, tools } of opened) {
    for (const tool of tools) homes.set(tool.registered.name, { connection, tool })
  }
  const registry = yield* Registry.make(opened.flatMap(({ tools }) => tools.map(({ registered }) => registered)))
  return {
    servers: opened.map(({ connection, refused, tools }) => ({ connection, tools, refused })),
    registry,
    problems: opened.flatMap(({ problems }) => problems),
    layer: (services) => Layer.provideMerge(routed(homes), services)
  }
})
