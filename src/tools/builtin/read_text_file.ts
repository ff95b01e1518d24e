/** The text of one file of the workspace. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"
import { nearest } from "../Nearest.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"
import * as Workspace from "../Workspace.ts"

const declared = Tool.make("read_text_file", {
  description: "Read one text file from the workspace.",
  parameters: Schema.Struct({ path: Schema.String.annotate({ description: "File name, for example notes.md" }) }),
  success: Schema.String,
  failure: ToolError,
  dependencies: [ToolContext]
})

export const readTextFile = about(
  declare(declared, {
    risk: "read",
    touches: ({ path }) => [{ verb: "read", resource: `workspace:${path}` }]
  }),
  {
    text: `A relative path, \`/\` between names, at most ${Workspace.maxFileBytes} bytes of UTF-8. No link is followed and no special file opened ([the workspace](#the-workspace)). Where there is no such file, the nearest name is suggested; a binary file is refused with the byte at which it stops being text.`,
    example: { path: "notes.md" }
  }
)

export const handleReadTextFile = Effect.fnUntraced(function* ({ path }: { readonly path: string }) {
  const { workspace } = (yield* ToolContext).settings
  return yield* Workspace.readText(workspace, path).pipe(
    Effect.catch((error) =>
      Effect.flatMap(error.kind === "not_found" ? suggestion(workspace, path) : Effect.succeed(""), (hint) =>
        Effect.fail(
          hint === ""
            ? error
            : new ToolError({ kind: error.kind, message: `${error.message}; ${hint}`, path: error.path })
        )
      )
    )
  )
})

const shownFiles = 20

/** The nearest name, or the names there are: a model that guessed wrong should not have to guess again. */
const suggestion = (workspace: string | undefined, path: string): Effect.Effect<string, ToolError> =>
  Effect.map(Workspace.list(workspace), ({ paths }) => {
    const near = nearest(path, paths)
    if (near !== undefined) return `did you mean ${near}?`
    return paths.length === 0
      ? "the workspace has no files"
      : `files: ${paths.slice(0, shownFiles).join(", ")}${paths.length > shownFiles ? ", …" : ""}`
  })
