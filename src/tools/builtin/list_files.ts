/** The files of the workspace, by relative path. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"
import * as Workspace from "../Workspace.ts"

const declared = Tool.make("list_files", {
  description: "List the names of the files in the workspace.",
  success: Schema.Array(Schema.String),
  failure: ToolError,
  dependencies: [ToolContext]
})

export const listFiles = about(
  declare(declared, {
    risk: "read",
    touches: () => [{ verb: "read", resource: "workspace:**" }]
  }),
  {
    text: `Sorted relative paths, at most ${Workspace.maxFiles} and ${Workspace.maxDirectoryDepth} directories deep; a last element says so where the list was cut. Left out: links, special files, names that begin with a dot, and files with several names that belong to somebody else than the workspace.`,
    example: {}
  }
)

/** Sorted names; where the list was cut, a last element says so. */
export const handleListFiles = Effect.fnUntraced(function* () {
  const { settings } = yield* ToolContext
  const { complete, paths } = yield* Workspace.list(settings.workspace)
  return complete ? paths : [...paths, `… (there are more files; at most ${Workspace.maxFiles} are listed)`]
})
