/** `writ mcp list`: what MCP servers offer, the contract each tool has here, and what is refused. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { OpenServer } from "../effects/McpTools.ts"
import { load, type RawSettings } from "../effects/Settings.ts"
import type { McpTool } from "../tools/mcp/McpTool.ts"
import { inJson, usage } from "./Ending.ts"
import * as McpSource from "./McpSource.ts"
import { cut, inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface McpListFlags {
  readonly json: boolean
  readonly color: boolean | undefined
  readonly settings: RawSettings
}

const head = ["TOOL", "RISK", "LEDGER", "RETRY", "UNDO", "EVIDENCE", "SAID BY", "HINTS"]

const words = { readOnly: "read-only", destructive: "destructive", idempotent: "idempotent", openWorld: "open-world" }

const hintsOf = ({ descriptor }: McpTool): string =>
  (["readOnly", "destructive", "idempotent", "openWorld"] as const)
    .filter((hint) => descriptor.hints[hint] === true)
    .map((hint) => words[hint])
    .join(",") || "-"

const rowOf = (tool: McpTool): ReadonlyArray<string> => {
  const { evidence, ledger, retry, reversible, risk } = tool.registered.contract
  const owed = risk === "read" ? ["-", "-", "-", "-"] : [ledger, retry, reversible ? "yes" : "no", evidence.source]
  return [tool.registered.name, risk, ...owed, tool.source, hintsOf(tool)]
}

const titleOf = ({ connection }: OpenServer): string => {
  const { protocolVersion, server, serverInfo } = connection
  const who = serverInfo === undefined ? "" : ` · ${inline(`${serverInfo.name} ${serverInfo.version}`)}`
  return `${server.name}${who} · MCP ${protocolVersion}`
}

const document = ({ connection, refused, tools }: OpenServer) => ({
  name: connection.server.name,
  protocol_version: connection.protocolVersion,
  ...(connection.serverInfo === undefined
    ? {}
    : { server: { name: connection.serverInfo.name, version: connection.serverInfo.version } }),
  tools: tools.map(({ descriptor, registered, source }) => ({
    name: registered.name,
    server_name: descriptor.name,
    description: descriptor.description,
    said_by: source,
    hints: descriptor.hints,
    contract: registered.contract,
    parameters: registered.spec.parameters
  })),
  refused
})

const table = (server: OpenServer, { columns, line, paint }: Screen.Screen): void => {
  const rows = server.tools.map(rowOf)
  const widths = head.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]!.length)))
  const shown = (row: ReadonlyArray<string>) =>
    cut(row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at]!))).join("  "), columns)
  line(titleOf(server))
  line(paint.dim(shown(head)))
  for (const [at, row] of rows.entries()) {
    line(server.tools[at]!.registered.contract.risk === "external" ? paint.yellow(shown(row)) : shown(row))
  }
  for (const { name, reason } of server.refused) line(paint.dim(`not offered: ${inline(name)}: ${inline(reason)}`))
}

export const list = (flags: McpListFlags) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { settings } = yield* load(flags.settings)
      const mcp = yield* McpSource.open(settings, { quiet: true })
      if (mcp === undefined) return yield* usage("name a server: writ mcp list --mcp [NAME=]COMMAND")
      if (flags.json) {
        return yield* Console.log(jsonText({ servers: mcp.servers.map(document) }))
      }
      const screen = yield* Screen.make(flags.color)
      for (const server of mcp.servers) table(server, screen)
      const silent = mcp.servers.some(({ tools }) => tools.some(({ source }) => source === "nobody"))
      if (silent) {
        screen.line(
          screen.paint.dim(
            "\nSaid by nobody: the worst is assumed. State contracts in a file: --mcp-contracts FILE (docs/mcp.md)"
          )
        )
      }
      return undefined
    })
  ).pipe(inJson(flags.json))
