/**
 * Hits as text for a model: for each a line `title — url` and a line with the snippet, a blank line between two. Titles and
 * snippets are what strangers wrote: one line each, without tags.
 */
import * as Effect from "effect/Effect"
import { brave } from "./Brave.ts"
import { fixtureSearch } from "./FixtureSearch.ts"
import { oneLine } from "./Readable.ts"
import { type Query, type Search, SearchProvider } from "./SearchProvider.ts"
import { searxng } from "./Searxng.ts"
import { refused, WebFault } from "./WebFault.ts"
import type { Hit, WebSettings } from "./WebSettings.ts"

const maxTitleLength = 200
const maxSnippetLength = 500

const bySettings: Search = (query, web) => {
  switch (web.search?.provider) {
    case "searxng":
      return searxng(query, web.search, web)
    case "brave":
      return brave(query, web.search, web)
    case "fixture":
      return Effect.succeed(fixtureSearch(query, web.search))
    default:
      return Effect.fail(refused("this run has no search service; work without a search"))
  }
}

const line = (text: string, most: number, otherwise: string): Effect.Effect<string> =>
  Effect.map(oneLine(text, most), (shown) => (shown === "" ? otherwise : shown))

const shown = Effect.fnUntraced(function* ({ snippet, title, url }: Hit): Effect.fn.Return<string> {
  const named = yield* line(title, maxTitleLength, "(no title)")
  return `${named} — ${url}\n${yield* line(snippet, maxSnippetLength, "(no description)")}`
})

/** A hit that leads nowhere a browser would go is no hit. */
const leadsSomewhere = ({ url }: Hit): boolean => {
  const protocol = /[\s\u0000-\u001f]/.test(url) || url.length > 2_000 ? undefined : URL.parse(url)?.protocol
  return protocol === "https:" || protocol === "http:"
}

/** A service that says our key back to us must not tell it to the model. */
const withoutKey = (text: string, { search }: WebSettings): string =>
  search?.provider === "brave" && search.key !== "" ? text.replaceAll(search.key, "(key)") : text

/** Searches, and puts the hits in words. */
export const searchText = Effect.fnUntraced(function* (
  query: Query,
  web: WebSettings
): Effect.fn.Return<string, WebFault> {
  const provided = yield* SearchProvider
  const found = yield* Effect.mapError(
    (provided ?? bySettings)(query, web),
    ({ kind, message }) => new WebFault({ kind, message: withoutKey(message, web) })
  )
  const hits = yield* Effect.forEach(found.filter(leadsSomewhere).slice(0, query.count), shown)
  return hits.length === 0 ? "No results." : withoutKey(hits.join("\n\n"), web)
})
