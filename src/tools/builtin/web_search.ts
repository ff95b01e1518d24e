/** A search of the web by the service the run was given. Everything that touches a network is loaded by the call. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"

/** Most hits one search gives, as the services have it. */
const maxHits = 20

const declared = Tool.make("web_search", {
  description: "Search the web and return titles, addresses and short descriptions.",
  parameters: Schema.Struct({
    query: Schema.String.annotate({ description: "What to search for" }),
    count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxHits }))
      .annotate({ description: `How many results, 1 to ${maxHits}` })
      .pipe(Schema.withDecodingDefaultKey(Effect.succeed(5)))
  }),
  success: Schema.String,
  failure: ToolError,
  dependencies: [ToolContext]
})

/** `read`: the query goes to the one service the operator named, and nothing else is sent or changed. */
export const webSearch = about(
  declare(declared, {
    risk: "read",
    retry: "safe",
    touches: () => [{ verb: "read", resource: "web:search" }],
    evidence: { source: "self", describes: "the answer of the search service" }
  }),
  {
    text: "Inert unless the operator named a search service for the run: [web.md](web.md) has the services, the bounds and the recording.",
    example: { query: "height of mount everest" }
  }
)

export const handleWebSearch = Effect.fnUntraced(function* (asked: { readonly query: string; readonly count: number }) {
  const { web } = (yield* ToolContext).settings
  const query = asked.query.trim()
  if (query === "" || query.length > 400) {
    const message = query === "" ? "the query is empty" : "the query is longer than 400 characters; shorten it"
    return yield* new ToolError({ kind: "invalid_arguments", message, path: "query" })
  }
  if (web?.search === undefined) {
    const message =
      "this run may not search the web: it has no search service; use what is known, or say that it is needed"
    return yield* new ToolError({ kind: "refused", message })
  }
  const { searchText } = yield* Effect.promise(() => import("../web/Searching.ts"))
  return yield* searchText({ query, count: asked.count }, web).pipe(
    Effect.mapError(({ kind, message }) => new ToolError({ kind, message }))
  )
})
