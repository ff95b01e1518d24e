/** `web_search` by the Brave Search API: `GET /res/v1/web/search`, the key in a header of its own and nowhere else. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Query } from "./SearchProvider.ts"
import { ask, hitOf, notUnderstood, Result } from "./SearchService.ts"
import { refused, type WebFault } from "./WebFault.ts"
import { type Hit, isKey, type SearchSettings, type WebSettings } from "./WebSettings.ts"

type Settings = Extract<SearchSettings, { readonly provider: "brave" }>

const service = "https://api.search.brave.com/"

/** Without hits there is no `web`. */
const decode = Schema.decodeUnknownResult(
  Schema.fromJsonString(
    Schema.Struct({ web: Schema.optionalKey(Schema.NullOr(Schema.Struct({ results: Schema.Array(Result) }))) })
  )
)

const badKey = "the search service does not take the key of this run; whoever started it has to look at it"

export const brave = Effect.fnUntraced(function* (
  { count, query }: Query,
  settings: Settings,
  web: WebSettings
): Effect.fn.Return<ReadonlyArray<Hit>, WebFault> {
  // The error of whoever made a header of it would show the key.
  if (!isKey(settings.key)) return yield* refused(badKey)
  const body = yield* ask(
    {
      base: settings.url ?? service,
      path: "res/v1/web/search",
      parameters: { q: query, count: String(count), text_decorations: "false" },
      secrets: { "x-subscription-token": settings.key },
      allowAddresses: settings.allowAddresses ?? [],
      explain: (status) => (status === 401 || status === 403 || status === 422 ? badKey : undefined)
    },
    web
  )
  const read = decode(body)
  return read._tag === "Success" ? (read.success.web?.results ?? []).map(hitOf) : yield* notUnderstood
})
