/** The addresses of a host, asked once per visit. What is answered is what gets connected to: nothing asks again later. */
import { lookup } from "node:dns/promises"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { failed, unavailable, WebFault } from "./WebFault.ts"

export type Resolve = (host: string) => Effect.Effect<ReadonlyArray<string>, WebFault>

const bySystem: Resolve = (host) =>
  Effect.tryPromise({
    // IPv4 first: where there is no way for IPv6, the wait for it would eat the time there is.
    try: async () => (await lookup(host, { all: true, order: "ipv4first" })).map(({ address }) => address),
    catch: (cause) => faultOf(host, (cause as { readonly code?: unknown }).code)
  })

const faultOf = (host: string, code: unknown): WebFault => {
  if (code === "ENOTFOUND") {
    return new WebFault({ kind: "not_found", message: `there is no host ${host}: check how it is written` })
  }
  return code === "EAI_AGAIN" || code === "ETIMEOUT"
    ? unavailable(`the name ${host} cannot be looked up right now; try again later`)
    : failed(`the name ${host} cannot be looked up (${String(code)})`)
}

/** The system's resolver, unless a test provides another. */
export const Resolver = Context.Reference<Resolve>("effect-writ/tools/web/Resolver", { defaultValue: () => bySystem })
