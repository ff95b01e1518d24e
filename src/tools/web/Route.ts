/**
 * From an admitted target to one answer: look the host up, check every address it has, connect to one of them. A host
 * with one forbidden address is refused as a whole, since which of them would be taken is the attacker's choice.
 */
import * as Effect from "effect/Effect"
import * as Address from "./Address.ts"
import { type Answer, Exchanger, type Request, type Unreached } from "./Exchange.ts"
import { Resolver } from "./Resolver.ts"
import type { Admitted } from "./Target.ts"
import { failed, refused, unavailable, type WebFault } from "./WebFault.ts"

/** Addresses tried before the host counts as unreachable. */
const maxAddresses = 3

const check = ({ allowed, host }: Admitted, addresses: ReadonlyArray<string>): WebFault | undefined => {
  for (const text of addresses) {
    const address = Address.parse(text)
    const what = address === undefined ? "an address that cannot be checked" : Address.objection(address, allowed)
    if (what === undefined) continue
    const place = text === host ? host : `${host} (${text})`
    return refused(`${place.slice(0, 200)} is not read: it is ${what}, and only public addresses are`)
  }
  return undefined
}

const addressesOf = Effect.fnUntraced(function* (target: Admitted): Effect.fn.Return<ReadonlyArray<string>, WebFault> {
  const literal = Address.parse(target.host) !== undefined
  const addresses = literal ? [target.host] : yield* (yield* Resolver)(target.host)
  if (addresses.length === 0) return yield* failed(`the name ${target.host} has no address`)
  const fault = check(target, addresses)
  return fault === undefined ? addresses.slice(0, maxAddresses) : yield* fault
})

/** Gets one answer from one of the host's addresses. */
export const reach = Effect.fnUntraced(function* (
  request: Omit<Request, "address"> & { readonly target: Admitted }
): Effect.fn.Return<Answer, WebFault> {
  const exchange = yield* Exchanger
  let last: Unreached | undefined
  for (const address of yield* addressesOf(request.target)) {
    const tried = yield* Effect.result(exchange({ ...request, address }))
    if (tried._tag === "Success") return tried.success
    if (tried.failure._tag === "WebFault") return yield* tried.failure
    last = tried.failure
  }
  return yield* unavailable(`${request.target.host} cannot be reached (${last?.code}); try again later`)
})
