/** The commands about tools: names, flags, help. Programs are imported when they run. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Flags from "./Flags.ts"

const shared = {
  toolkit: Flags.text(
    "toolkit",
    "MODULE",
    "A module that exports a registry of tools (default: the tools that come with Writ)"
  ),
  toolsDir: Flags.text("tools-dir", "DIR", "The tools of a directory too: NAME.tool.json (see docs/tools.md)"),
  json: Flags.json,
  color: Flags.color
}

const listTools = Command.make("list", shared, (flags) =>
  Effect.flatMap(
    Effect.promise(() => import("./toolsList.ts")),
    ({ list }) => list(flags)
  )
).pipe(Command.withDescription("List tools with what their contracts say"))

const showTool = Command.make(
  "show",
  { name: Argument.String("name").pipe(Argument.withDescription("The tool")), ...shared },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./toolsShow.ts")),
      ({ show }) => show(flags)
    )
).pipe(Command.withDescription("Show all of one tool: contract, what is assumed because it says nothing, schema"))

const checkTools = Command.make("check", shared, (flags) =>
  Effect.flatMap(
    Effect.promise(() => import("./toolsCheck.ts")),
    ({ check }) => check(flags)
  )
).pipe(
  Command.withDescription(
    "Look for what is amiss in the contracts of tools, with what to do about it. Ends with 3 where something is."
  )
)

const validateTools = Command.make(
  "validate",
  {
    schema: Flag.String("schema").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("JSON Schema of a tool's arguments")
    ),
    args: Flags.text("args", "FILE", "Arguments as JSON (default: standard input, as with -)"),
    json: Flags.json,
    color: Flags.color
  },
  (flags) =>
    Effect.flatMap(
      Effect.promise(() => import("./toolsValidate.ts")),
      ({ validate }) => validate(flags)
    )
).pipe(Command.withDescription("Check arguments against a schema as a run would. Ends with 3 if they do not fit."))

/** `writ tools …` */
export const tools = Command.make("tools").pipe(
  Command.withDescription("Look at tools"),
  Command.withSubcommands([listTools, showTool, checkTools, validateTools])
)
