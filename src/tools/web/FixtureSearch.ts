/** `web_search` without a network: answers by query, white space around it and case aside. For tests and demonstrations. */
import type { Query } from "./SearchProvider.ts"
import type { Hit, SearchSettings } from "./WebSettings.ts"

type Settings = Extract<SearchSettings, { readonly provider: "fixture" }>

const plain = (query: string): string => query.trim().toLowerCase()

/** A query that is not there has no hits. */
export const fixtureSearch = ({ query }: Query, { results }: Settings): ReadonlyArray<Hit> =>
  Object.entries(results).find(([name]) => plain(name) === plain(query))?.[1] ?? []
