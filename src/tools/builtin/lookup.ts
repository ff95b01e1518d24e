/** Facts the run was given (`--fixture key=value`), by key. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"

const shownKeys = 20

const declared = Tool.make("lookup", {
  description: "Look up a fact by its key.",
  parameters: Schema.Struct({ key: Schema.String.annotate({ description: "For example temperature in riyadh" }) }),
  success: Schema.String,
  failure: ToolError,
  dependencies: [ToolContext]
})

export const lookup = about(
  declare(declared, {
    risk: "read",
    touches: ({ key }) => [{ verb: "read", resource: `fact:${key.trim()}` }]
  }),
  {
    text: `Facts are given with \`--fixture key=value\`. Keys are compared exactly, after white space around them is taken off; where there is none, at most ${shownKeys} keys are named.`,
    example: { key: "capital of france" }
  }
)

/** The key is compared exactly, after white space around it is taken off. */
export const handleLookup = Effect.fnUntraced(function* ({ key }: { readonly key: string }) {
  const { fixtures } = (yield* ToolContext).settings
  const wanted = key.trim()
  for (const [name, value] of Object.entries(fixtures)) if (name.trim() === wanted) return value
  const names = Object.keys(fixtures)
  const more = names.length > shownKeys ? `, … (${names.length} in all)` : ""
  const known =
    names.length === 0 ? "there are no facts in this run" : `known keys: ${names.slice(0, shownKeys).join(", ")}${more}`
  return yield* new ToolError({
    kind: "not_found",
    message: `no fact ${JSON.stringify(wanted.slice(0, 80))}; ${known}`,
    path: "key"
  })
})
