/** The tools of a command's directory, read and registered; everything that is wrong in the files is said at once. */
import * as Effect from "effect/Effect"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { FileTools } from "../effects/FileTools.ts"
import type { McpTools } from "../effects/McpTools.ts"
import type { Resolved } from "../effects/Settings.ts"
import * as Registry from "../tools/Registry.ts"
import { type UsageError, usage } from "./Ending.ts"
import * as McpSource from "./McpSource.ts"
import { Provisions } from "./Provisions.ts"

/** `undefined` where no directory is named. A tool with a problem is a reason not to begin. `env`: what all of them see. */
export const open = Effect.fnUntraced(function* (
  directory: string | undefined,
  env: Readonly<Record<string, string>> = {}
): Effect.fn.Return<FileTools | undefined, UsageError, ChildProcessSpawner> {
  if (directory === undefined) return undefined
  const { open: read, problemsText } = yield* Effect.promise(() => import("../effects/FileTools.ts"))
  const opened = yield* Effect.catch(read(directory, { env }), ({ message, tool }) =>
    usage(`--tools-dir: ${tool}: ${message}`)
  )
  if (opened.problems.length === 1) return yield* usage(`--tools-dir: ${problemsText(opened.problems)}`)
  if (opened.problems.length > 1) {
    return yield* usage(`--tools-dir: ${opened.problems.length} problems\n${problemsText(opened.problems)}`)
  }
  return opened
})

/** Our tools and those of the directory. A name that both have is refused. */
export const withFiles = (
  own: Registry.Registry,
  files: FileTools | undefined
): Effect.Effect<Registry.Registry, Registry.RegistrationError> =>
  files === undefined ? Effect.succeed(own) : Registry.merge(own, files.registry)

/** The tools of a command: those named; where nobody names any, those by default, and all of the directory and of the servers. */
export const registryOf = Effect.fnUntraced(
  function* (
    { origins, settings }: Pick<Resolved, "origins" | "settings">,
    mcp: McpTools | undefined,
    files: FileTools | undefined
  ) {
    const own = yield* withFiles(yield* (yield* Provisions).tools, files)
    const named = origins.tools !== "default"
    const extra = named ? [] : (files?.registry.tools ?? []).map((tool) => tool.name)
    return yield* McpSource.pick(own, mcp, [...settings.tools, ...extra], named)
  },
  Effect.catchTag("RegistrationError", ({ message, tool }) => usage(`--tools ${tool}: ${message}`))
)
