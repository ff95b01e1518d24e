/** One page of the web as text, from hosts the run was granted. Everything that touches a network is loaded by the call. */

import * as Tool from "effect/ai/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { about } from "../About.ts"
import { declare } from "../Contract.ts"
import { ToolContext } from "../ToolContext.ts"
import { ToolError } from "../ToolError.ts"

const declared = Tool.make("web_fetch", {
  description: "Read one web page as text.",
  parameters: Schema.Struct({
    url: Schema.String.annotate({ description: "Full address, for example https://example.org/page" })
  }),
  success: Schema.String,
  failure: ToolError,
  dependencies: [ToolContext]
})

/** Scheme, host and path; what cannot be read is named as it is, and then refused by whoever has to check it. */
const resourceOf = (text: string): string => {
  const url = URL.parse(text)
  return url === null ? text : `${url.protocol}//${url.host}${url.pathname}`
}

/**
 * `read`, although it reaches outside: it can only GET, without body, cookies or credentials, and only from hosts the
 * operator granted one by one, which is the approval. Any other host is refused by the tool before it is looked up.
 */
export const webFetch = about(
  declare(declared, {
    risk: "read",
    retry: "safe",
    touches: ({ url }) => [{ verb: "read", resource: resourceOf(url) }],
    evidence: { source: "self", describes: "the answer of the server" }
  }),
  {
    text: "Inert unless the operator granted the host: [web.md](web.md) has the rules for addresses and redirects, the bounds and the recording.",
    example: { url: "https://example.org/page" }
  }
)

export const handleWebFetch = Effect.fnUntraced(function* ({ url }: { readonly url: string }) {
  const { web } = (yield* ToolContext).settings
  if (web === undefined || web.hosts.length === 0) {
    const message = "this run may not read the web: no host is granted; use what is known, or say that it is needed"
    return yield* new ToolError({ kind: "refused", message })
  }
  const { fetchPage } = yield* Effect.promise(() => import("../web/Fetching.ts"))
  return yield* fetchPage(url, web).pipe(
    Effect.mapError(({ kind, message }) => new ToolError({ kind, message, path: "url" }))
  )
})
