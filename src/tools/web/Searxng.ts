/** `web_search` by an instance of SearXNG: `GET /search?q=…&format=json`, as in its Search API documentation. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Query } from "./SearchProvider.ts"
import { ask, hitOf, notUnderstood, Result } from "./SearchService.ts"
import type { WebFault } from "./WebFault.ts"
import type { Hit, SearchSettings, WebSettings } from "./WebSettings.ts"

type Settings = Extract<SearchSettings, { readonly provider: "searxng" }>

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Struct({ results: Schema.Array(Result) })))

export const searxng = Effect.fnUntraced(function* (
  { query }: Query,
  settings: Settings,
  web: WebSettings
): Effect.fn.Return<ReadonlyArray<Hit>, WebFault> {
  const body = yield* ask(
    {
      base: settings.url,
      path: "search",
      parameters: { q: query, format: "json" },
      secrets: {},
      allowAddresses: settings.allowAddresses ?? [],
      explain: (status) =>
        status === 403
          ? "the search service does not answer in JSON (HTTP 403): whoever runs it has to add json to its search formats"
          : undefined
    },
    web
  )
  const read = decode(body)
  return read._tag === "Success" ? read.success.results.map(hitOf) : yield* notUnderstood
})
