/** Lines of the workspace's files that contain a text. The text is taken literally, never as a pattern. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"
import * as Workspace from "../Workspace.ts"

/** Most lines one search returns, and most UTF-16 units of each. */
const maxMatches = 50
const maxLineLength = 300

const declared = Tool.make("search_text", {
  description: "Search all files for a text and return the matching lines.",
  parameters: Schema.Struct({ query: Schema.String.annotate({ description: "Text to search for" }) }),
  success: Schema.Array(Schema.Struct({ path: Schema.String, line: Schema.Int, text: Schema.String })),
  failure: ToolError,
  dependencies: [ToolContext]
})

export const searchText = about(
  declare(declared, {
    risk: "read",
    touches: () => [{ verb: "read", resource: "workspace:**" }]
  }),
  {
    text: `The text is taken literally, never as a pattern; without capitals it matches any case. At most ${maxMatches} lines, cut at ${maxLineLength} characters; files that are no text or too large are passed over.`,
    example: { query: "plan" }
  }
)

/** A query without capitals matches any case; with one it matches exactly. Lines count from 1; unreadable files are skipped. */
export const handleSearchText = Effect.fnUntraced(function* ({ query }: { readonly query: string }) {
  const { workspace } = (yield* ToolContext).settings
  if (query.trim() === "")
    return yield* new ToolError({ kind: "invalid_arguments", message: "the query is empty", path: "query" })
  const { paths } = yield* Workspace.list(workspace)
  const anyCase = query === query.toLowerCase()
  const found: Array<{ readonly path: string; readonly line: number; readonly text: string }> = []
  for (const path of paths) {
    const lines = (Workspace.readTextIfAny(workspace!, path) ?? "").split(/\r?\n/)
    for (let line = 1; line <= lines.length && found.length < maxMatches; line++) {
      const text = lines[line - 1]!
      if ((anyCase ? text.toLowerCase() : text).includes(query)) found.push({ path, line, text: cut(text) })
    }
    if (found.length >= maxMatches) break
    // A large workspace must not hold up everything else in this thread.
    yield* Effect.yieldNow
  }
  return found
})

const cut = (text: string): string =>
  text.length <= maxLineLength
    ? text
    : `${text
        .slice(0, maxLineLength)
        .toWellFormed()
        .replace(/\ufffd$/u, "")}…`
