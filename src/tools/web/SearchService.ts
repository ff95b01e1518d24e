/** What the adapters of real search services share: one visit to one host, no redirects, JSON of a known shape. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Answer } from "./Exchange.ts"
import { admitting, read } from "./Target.ts"
import { visit } from "./Visit.ts"
import { failed, refused, unavailable, type WebFault } from "./WebFault.ts"
import type { Hit, WebSettings } from "./WebSettings.ts"

/** A result of which a part may be absent. */
export const Result = Schema.Struct({
  title: Schema.optionalKey(Schema.NullOr(Schema.String)),
  url: Schema.String,
  content: Schema.optionalKey(Schema.NullOr(Schema.String)),
  description: Schema.optionalKey(Schema.NullOr(Schema.String))
})

export const hitOf = ({ content, description, title, url }: typeof Result.Type): Hit => ({
  title: title ?? "",
  url,
  snippet: content ?? description ?? ""
})

export interface Question {
  /** Base of the service and what comes after it. */
  readonly base: string
  readonly path: string
  readonly parameters: Readonly<Record<string, string>>
  readonly secrets: Readonly<Record<string, string>>
  readonly allowAddresses: ReadonlyArray<string>
  /** What a status means here, in words; nothing for the usual. */
  readonly explain: (status: number) => string | undefined
}

/** The body of a good answer. Naming the service was the grant for its host, and for that host only. */
export const ask = Effect.fnUntraced(function* (
  question: Question,
  web: WebSettings
): Effect.fn.Return<string, WebFault> {
  const { allowAddresses, base, parameters, path, secrets } = question
  const place = read(base.endsWith("/") ? base : `${base}/`)
  if (place._tag === "Failure")
    return yield* refused("the search service of this run is set up wrongly; search cannot be used")
  const { host, port, url } = place.success
  const asked = new URL(path, url)
  for (const [name, value] of Object.entries(parameters)) asked.searchParams.set(name, value)
  const grant = `${host.includes(":") ? `[${host}]` : host}:${port}`
  const { answer } = yield* visit({
    url: asked.href,
    admit: admitting([grant], allowAddresses),
    accept: "application/json",
    web,
    before: () => Effect.void,
    secrets,
    wanted: ({ status }) => (status === 200 ? "all" : "nothing")
  }).pipe(Effect.mapError((fault) => withoutPlace(fault, host)))
  return yield* bodyOf(answer, question)
})

/** Which service it is, and where, is the operator's business. */
const withoutPlace = (fault: WebFault, host: string): WebFault => {
  const message = `the search service gave nothing: ${fault.message.replaceAll(host, "it")}`
  return fault.kind === "unavailable"
    ? unavailable(message)
    : fault.kind === "refused"
      ? refused(message)
      : failed(message)
}

const bodyOf = (answer: Answer, { explain }: Question): Effect.Effect<string, WebFault> => {
  if (answer.status === 200) return Effect.succeed(new TextDecoder().decode(answer.body))
  const reason = explain(answer.status)
  if (reason !== undefined) return Effect.fail(failed(reason))
  return answer.status === 429 || answer.status >= 500
    ? Effect.fail(unavailable(`the search service answers HTTP ${answer.status} just now; try again later`))
    : Effect.fail(failed(`the search service answers HTTP ${answer.status}; go on without a search`))
}

export const notUnderstood = failed("the search service answered with something that is no list of results")
