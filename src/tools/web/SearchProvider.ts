/**
 * The port of `web_search`: a query in, hits out. Which adapter serves it follows from the settings of the run; a test may
 * put its own in place.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { WebFault } from "./WebFault.ts"
import type { Hit, WebSettings } from "./WebSettings.ts"

export interface Query {
  readonly query: string
  /** Most hits wanted, from 1. */
  readonly count: number
}

/** May give more hits than were asked for; never logs in to anything but its own service. */
export type Search = (query: Query, web: WebSettings) => Effect.Effect<ReadonlyArray<Hit>, WebFault>

/** Stands in for what the settings name. */
export const SearchProvider = Context.Reference<Search | undefined>("effect-writ/tools/web/SearchProvider", {
  defaultValue: () => undefined
})
