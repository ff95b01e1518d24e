/** The MCP servers of a command: reached, their tools registered under the contracts of the file, what is refused said. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as McpSettings from "../effects/McpSettings.ts"
import type { McpTools } from "../effects/McpTools.ts"
import type { Settings } from "../effects/SettingFields.ts"
import * as Registry from "../tools/Registry.ts"
import { usage } from "./Ending.ts"
import { inline } from "./Printable.ts"

export type McpSettingNames = Pick<Settings, "mcp" | "mcpContracts" | "mcpEnv" | "mcpHeader">

const refusals = ({ servers }: McpTools): ReadonlyArray<string> =>
  servers.flatMap(({ connection, refused }) =>
    refused.map(
      ({ name, reason }) =>
        `writ: the tool ${inline(name)} of the MCP server ${connection.server.name} is not offered: ${inline(reason)}`
    )
  )

/** Reaches the servers, in the caller's scope. `undefined` where none is named. */
export const open = Effect.fnUntraced(function* (
  settings: McpSettingNames,
  options: { readonly quiet?: boolean } = {}
) {
  if (settings.mcp.length === 0) {
    const stray = settings.mcpEnv.length > 0 || settings.mcpHeader.length > 0 || settings.mcpContracts !== undefined
    return stray
      ? yield* usage("--mcp-contracts, --mcp-env and --mcp-header are about servers: name one with --mcp")
      : undefined
  }
  const servers = yield* Effect.catch(McpSettings.serversOf(settings), usage)
  const contracts =
    settings.mcpContracts === undefined
      ? undefined
      : yield* (yield* Effect.promise(() => import("./McpContracts.ts"))).read(settings.mcpContracts)
  const { open } = yield* Effect.promise(() => import("../effects/McpTools.ts"))
  const opened = yield* open(servers, contracts === undefined ? {} : { contracts: contracts.file })
  if (contracts !== undefined && opened.problems.length > 0) return yield* contracts.refuse(opened.problems)
  if (options.quiet !== true) yield* Effect.forEach(refusals(opened), (line) => Console.error(line), { discard: true })
  return opened
})

/** `files__*` among the names stands for all tools of that server. */
const expanded = (names: ReadonlyArray<string>, all: Registry.Registry): ReadonlyArray<string> => [
  ...new Set(
    names.flatMap((name) => {
      if (!name.endsWith("__*")) return [name]
      return all.tools.filter((tool) => tool.name.startsWith(name.slice(0, -1))).map((tool) => tool.name)
    })
  )
]

/**
 * The tools of a run: those that are named, of ours and of the servers; where nobody names any, ours by default and all of
 * the servers.
 */
export const pick = Effect.fnUntraced(function* (
  own: Registry.Registry,
  mcp: McpTools | undefined,
  names: ReadonlyArray<string>,
  named: boolean
) {
  if (mcp === undefined) return yield* Registry.pick(own, names)
  const all = yield* Registry.merge(own, mcp.registry)
  const wanted = named ? expanded(names, all) : [...names, ...mcp.registry.tools.map((tool) => tool.name)]
  return yield* Registry.pick(all, wanted)
})
