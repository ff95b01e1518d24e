/** The commands about MCP: names, flags, help. Programs are imported when they run. */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Flags from "./Flags.ts"
import * as SettingLists from "./SettingLists.ts"

const servers = Flags.settings(...SettingLists.servers)

const listServers = Command.make(
  "list",
  { ...servers, json: Flags.json, color: Flags.color },
  ({ color, json, ...raw }) =>
    Effect.flatMap(
      Effect.promise(() => import("./mcpList.ts")),
      ({ list }) => list({ json, color, settings: Flags.rawOf(raw) })
    )
).pipe(
  Command.withDescription(
    "Reach MCP servers and list their tools with the contracts they have here, what their servers hint at, and what is refused. A tool nobody has stated a contract for counts as the worst kind."
  ),
  Command.withShortDescription("List the tools of MCP servers with their contracts"),
  Command.withExamples([
    {
      command: 'writ mcp list --mcp "files=npx -y @modelcontextprotocol/server-filesystem ."',
      description: "The tools of a server that is started"
    },
    { command: "writ mcp list --mcp docs=https://example.org/mcp", description: "Those of one that runs" }
  ])
)

const settings = Flags.settings(
  "tools",
  ...SettingLists.tools,
  ...SettingLists.web,
  "workspace",
  "fixture",
  "toolTimeout",
  "maxResultBytes",
  "approvalExpiry",
  "profile",
  "grant",
  "deny",
  "scope",
  "retryAttempts",
  "retryDelay",
  "retryFactor",
  "dryRun",
  "ledger",
  "traceContent",
  "redact"
)

const serveTools = Command.make(
  "serve",
  {
    approve: Flags.choice(
      "approve",
      ["deny", "all"],
      "Calls that need an approval: deny them (the default), or allow all"
    ),
    ...settings,
    ...servers
  },
  (raw) =>
    Effect.flatMap(
      Effect.promise(() => import("./mcpServe.ts")),
      ({ serve }) => serve({ settings: Flags.rawOf(raw) })
    )
).pipe(
  Command.withDescription(
    "Offer tools as an MCP server on standard input and output. Every call passes the gates a model's call passes and is put on record in .writ/runs."
  ),
  Command.withShortDescription("Offer tools as an MCP server"),
  Command.withExamples([
    {
      command: "writ mcp serve --tools read_text_file,search_text",
      description: "Tools that read the current directory"
    },
    {
      command: 'writ mcp serve --tools "files__*" --mcp "files=npx -y @modelcontextprotocol/server-filesystem ."',
      description: "Another server's tools, behind the gates"
    }
  ])
)

/** `writ mcp …` */
export const mcp = Command.make("mcp").pipe(
  Command.withDescription("Use the tools of MCP servers, and offer tools as one"),
  Command.withSubcommands([listServers, serveTools])
)
