/**
 * A walk from a URL to an answer, redirects followed one by one: each is read, admitted, looked up and checked as if it had
 * been asked for. Bounded in hops and in time as a whole.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Answer, Head, Wanted } from "./Exchange.ts"
import { recorded } from "./Recording.ts"
import { reach } from "./Route.ts"
import { type Admit, type Admitted, read } from "./Target.ts"
import { failed, refused, unavailable, WebFault } from "./WebFault.ts"
import { limitsOf, type WebSettings } from "./WebSettings.ts"

export interface Visit {
  readonly url: string
  readonly admit: Admit
  readonly accept: string
  readonly web: WebSettings
  /** Asked before each hop, and told when time is up; a fault ends the visit. */
  readonly before: (target: Admitted, until: number) => Effect.Effect<void, WebFault>
  /** Milliseconds since 1970 at which time is up, for a visit within another. */
  readonly until?: number
  /** Sent to the first place only: a visit with secrets follows no redirects. */
  readonly secrets?: Readonly<Record<string, string>>
  readonly wanted: (head: Head) => Wanted
}

/** Where the walk ended, and what was there. */
export interface Visited {
  readonly url: URL
  readonly answer: Answer
}

const redirects = new Set([301, 302, 303, 307, 308])

const isRedirect = ({ location, status }: Head): boolean => redirects.has(status) && location !== undefined

const one = Effect.fnUntraced(function* (
  visit: Visit,
  target: Admitted,
  until: number
): Effect.fn.Return<Answer, WebFault> {
  const { accept, wanted, web } = visit
  const ask = reach({
    target,
    accept,
    limits: limitsOf(web),
    secrets: visit.secrets ?? {},
    authorities: web.authorities ?? [],
    wanted: (head) => (isRedirect(head) ? "nothing" : wanted(head))
  })
  const timed = Effect.timeoutOrElse(ask, {
    duration: Math.max(0, until - (yield* Clock.currentTimeMillis)),
    orElse: () => late(visit)
  })
  return yield* recorded(web.cache, { url: target.url.href, accept }, withoutSecrets(timed, visit.secrets ?? {}))
})

/** A service that says a secret back to us must not have it kept or told. */
const withoutSecrets = <R>(
  ask: Effect.Effect<Answer, WebFault, R>,
  secrets: Readonly<Record<string, string>>
): Effect.Effect<Answer, WebFault, R> => {
  const values = Object.values(secrets).filter((value) => value !== "")
  if (values.length === 0) return ask
  const clean = (text: string): string => values.reduce((rest, value) => rest.replaceAll(value, "(key)"), text)
  return Effect.mapBoth(ask, {
    onFailure: ({ kind, message }) => new WebFault({ kind, message: clean(message) }),
    onSuccess: ({ body, contentType, location, status }) => ({
      status,
      contentType: contentType === undefined ? undefined : clean(contentType),
      location: location === undefined ? undefined : clean(location),
      // Byte by byte, so that whatever encoding it is in stays as it is.
      body: new Uint8Array(Buffer.from(clean(Buffer.from(body).toString("latin1")), "latin1"))
    })
  })
}

const late = ({ web }: Visit): Effect.Effect<never, WebFault> =>
  unavailable(`no complete answer within ${limitsOf(web).millis / 1000} seconds; try again later, or another address`)

/** Visits, in the time there is. */
export const visit = Effect.fnUntraced(function* (visit: Visit): Effect.fn.Return<Visited, WebFault> {
  const until = visit.until ?? (yield* Clock.currentTimeMillis) + limitsOf(visit.web).millis
  const most = visit.secrets === undefined ? limitsOf(visit.web).redirects : 0
  let next = yield* Effect.fromResult(read(visit.url))
  for (let hops = 0; ; hops++) {
    const target = yield* onHop(hops, Effect.fromResult(visit.admit(next)))
    yield* visit.before(target, until)
    const answer = yield* onHop(hops, one(visit, target, until))
    if (!isRedirect(answer)) return { url: target.url, answer }
    if (hops >= most) {
      return yield* failed(
        most === 0
          ? `${target.host} answers with a redirect, and none is followed here`
          : `more than ${most} redirects in a row: the page leads nowhere`
      )
    }
    next = yield* onHop(hops + 1, Effect.fromResult(read(answer.location!, target.url)))
    if (target.url.protocol === "https:" && next.url.protocol === "http:") {
      return yield* refused(`${target.host} redirects from https to http (${next.host}), which is not followed`)
    }
  }
})

/** A model that asked for one place should not wonder why it hears of another. */
const onHop = <A>(hops: number, hop: Effect.Effect<A, WebFault>): Effect.Effect<A, WebFault> =>
  hops === 0
    ? hop
    : Effect.mapError(hop, ({ kind, message }) => {
        const told = `after ${hops} ${hops === 1 ? "redirect" : "redirects"}: ${message}`
        // A bad address in a redirect is no fault of the argument.
        return new WebFault({ kind: kind === "invalid_arguments" ? "execution_failed" : kind, message: told })
      })
