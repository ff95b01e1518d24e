/**
 * A page as text for a model: the visit, robots.txt, the status, the media type, the charset, the readable form.
 * `HTTP <code> (<content-type>)`, a blank line, the text.
 */
import * as Effect from "effect/Effect"
import * as Charset from "./Charset.ts"
import { type Answer, agentName, type Head, type Wanted } from "./Exchange.ts"
import * as MediaType from "./MediaType.ts"
import { readable } from "./Readable.ts"
import { maxRobotsBytes, permits } from "./Robots.ts"
import { type Admitted, admitting } from "./Target.ts"
import { type Visited, visit } from "./Visit.ts"
import { failed, refused, WebFault } from "./WebFault.ts"
import type { WebSettings } from "./WebSettings.ts"

const acceptPage = "text/html, application/xhtml+xml, text/plain, text/markdown, application/json, */*;q=0.5"
const acceptRobots = "text/plain"

/** How much of an error page is read, and shown. */
const maxErrorBytes = 16 * 1024
const maxErrorLength = 1_000

const isGood = ({ status }: Head): boolean => status >= 200 && status < 300

/** Content of a kind that is not read is not transferred either. */
const wantedOf = (head: Head): Wanted => {
  const { contentType } = head
  if (contentType !== undefined && MediaType.textForm(MediaType.parse(contentType).essence) === undefined)
    return "nothing"
  return isGood(head) ? "all" : { some: maxErrorBytes }
}

/** The header as it came, on one line and not longer than a header ought to be. */
const typeShown = ({ contentType }: Head): string =>
  contentType === undefined
    ? "unknown"
    : contentType
        .replace(/[^\u0020-\u007e\u00a0-\uffff]+/g, " ")
        .trim()
        .slice(0, 120) || "unknown"

const textOf = Effect.fnUntraced(function* (
  { answer, url }: Visited,
  web: WebSettings
): Effect.fn.Return<string, WebFault> {
  const { essence, charset } = MediaType.parse(answer.contentType ?? "")
  const form = answer.contentType === undefined ? "text" : MediaType.textForm(essence)
  if (form === undefined) {
    return yield* failed(
      `it is ${MediaType.describe(essence)} (${typeShown(answer)}), and only text is read; look for a page that says the same`
    )
  }
  const text = Charset.decode(answer.body, form, charset)
  if (Charset.isBinary(text)) {
    const claim = answer.contentType === undefined ? "has no content type" : `calls itself ${typeShown(answer)}`
    return yield* failed(`it ${claim}, but it is binary data, and only text is read`)
  }
  const isPage = form === "html" || (answer.contentType === undefined && MediaType.looksLikeHtml(text))
  return isPage && web.html !== "verbatim" ? yield* readable(text, url.href) : text
})

const remedy = (status: number): string => {
  if (status === 404 || status === 410) return "There is no such page: check the address, or search for it."
  if (status === 401 || status === 403 || status === 407) {
    return "The server does not let us read this page: look for the information elsewhere."
  }
  if (status === 429) return "The server was asked too often: wait before you ask it again."
  if (status >= 500) return "The server has a problem of its own: try again later."
  return "The server did not answer with a page: check the address."
}

const kindOf = (status: number): WebFault["kind"] =>
  status === 404 || status === 410 ? "not_found" : status === 429 || status >= 500 ? "unavailable" : "execution_failed"

/** What a server says instead of the page, for whoever asked. */
const refusalOf = Effect.fnUntraced(function* (visited: Visited, web: WebSettings): Effect.fn.Return<never, WebFault> {
  const { answer } = visited
  const said = yield* Effect.catch(textOf(visited, web), () => Effect.succeed(""))
  const shown = said.trim().slice(0, maxErrorLength).toWellFormed()
  const parts = [`HTTP ${answer.status} (${typeShown(answer)})`, shown, remedy(answer.status)]
  return yield* new WebFault({
    kind: kindOf(answer.status),
    message: parts.filter((part) => part !== "").join("\n\n")
  })
})

/** Whether robots.txt of the target's host lets us; a host without one lets everybody, one that fails nobody. */
const robots =
  (web: WebSettings) =>
  (target: Admitted, until: number): Effect.Effect<void, WebFault> => {
    if (web.robots === "ignore" || target.url.pathname === "/robots.txt") return Effect.void
    const asked = visit({
      url: new URL("/robots.txt", target.url).href,
      admit: admitting(web.hosts, web.allowAddresses),
      accept: acceptRobots,
      web,
      before: () => Effect.void,
      until,
      wanted: (head) => (isGood(head) ? { some: maxRobotsBytes } : "nothing")
    })
    return Effect.matchEffect(asked, {
      // Out of reach, and then so is the page. Whatever else went wrong goes wrong again for the page, with its own reason,
      // or was on the way to somewhere that does not concern this host: then it is as good as absent.
      onFailure: (fault) => (fault.kind === "unavailable" ? Effect.fail(fault) : Effect.void),
      onSuccess: ({ answer }) => verdict(answer, target)
    })
  }

const verdict = (answer: Answer, { host, url }: Admitted): Effect.Effect<void, WebFault> => {
  if (answer.status >= 500) {
    return Effect.fail(
      new WebFault({
        kind: "unavailable",
        message: `${host} has a problem of its own (HTTP ${answer.status} for its robots.txt); try again later`
      })
    )
  }
  const rules = isGood(answer) ? Charset.decode(answer.body, "text", undefined) : ""
  if (permits(rules, agentName, `${url.pathname}${url.search}`)) return Effect.void
  return Effect.fail(refused(`${host} asks programs not to read this page (robots.txt); look for another source`))
}

/** Reads one page. */
export const fetchPage = Effect.fnUntraced(function* (
  url: string,
  web: WebSettings
): Effect.fn.Return<string, WebFault> {
  const visited = yield* visit({
    url,
    admit: admitting(web.hosts, web.allowAddresses),
    accept: acceptPage,
    web,
    before: robots(web),
    wanted: wantedOf
  })
  if (!isGood(visited.answer)) return yield* refusalOf(visited, web)
  const text = yield* textOf(visited, web)
  return `HTTP ${visited.answer.status} (${typeShown(visited.answer)})\n\n${text}`
})
