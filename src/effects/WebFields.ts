/**
 * What a run may read on the web, as it is named on the command line: the settings and how each is read. Looks nothing up.
 * The key of a search service is none of them, so that nothing that lists, prints or repeats settings can show it.
 */
import * as Result from "effect/Result"
import { problemWith, read } from "../tools/web/Target.ts"
import { choice, expected, type Field, text, words } from "./SettingForms.ts"

export interface WebWords {
  /** Hosts that may be read, as `WebSettings.hosts` has them. */
  readonly webHost: ReadonlyArray<string>
  /** Addresses and ranges that are reachable although they are not public. */
  readonly webAddress: ReadonlyArray<string>
  /** `searxng:URL` or `brave`. */
  readonly webSearch: string | undefined
  /** Directory of recorded answers. */
  readonly webCache: string | undefined
  readonly webCacheMode: "record" | "replay"
  readonly webHtml: "readable" | "verbatim"
}

/** The variable that holds the key of `--web-search brave`. */
export const keyVariable = "WRIT_BRAVE_KEY"

/** A search service as it is named: which one, and where if that is not known. */
export type NamedService = { readonly provider: "brave" } | { readonly provider: "searxng"; readonly url: string }

const serviceForm = "searxng:URL|brave"
const searxng = "searxng:"

/** What is wrong is said without the text: somebody may have put a password into it. */
export const parseService = (said: string): Result.Result<NamedService, string> => {
  if (said === "brave") return Result.succeed({ provider: "brave" })
  if (!said.startsWith(searxng)) return expected("searxng:URL or brave")
  const place = read(said.slice(searxng.length))
  if (Result.isFailure(place)) return Result.fail(`searxng: ${place.failure.message}`)
  const { href, search } = place.success.url
  return search === ""
    ? Result.succeed({ provider: "searxng", url: href })
    : Result.fail("searxng: the address of a search service ends before any ?")
}

const fits = (said: string, problem: string | undefined): Result.Result<string, string> =>
  problem === undefined ? Result.succeed(said) : Result.fail(problem)

/** Whoever may name hosts, addresses and recorded answers decides what a model reads, and who hears of it. */
const notFromFile = (said: string | undefined): boolean => said !== undefined

const webSearch: Field<string | undefined> = {
  ...text(`Where web_search asks; the key for brave is in ${keyVariable}`, serviceForm),
  notFromFile,
  read: (raw) => (typeof raw === "string" ? Result.map(parseService(raw), () => raw) : expected("searxng:URL or brave"))
}

export const web: { readonly [K in keyof WebWords]: Field<WebWords[K]> } = {
  webHost: words("A host that web_fetch may read, as in *.example.org (see docs/web.md); repeatable", "HOST", (said) =>
    fits(said, problemWith([said], []))
  ),
  webAddress: words(
    "An address or range that may be read although it is not public; repeatable",
    "ADDRESS[/BITS]",
    (said) => fits(said, problemWith([], [said]))
  ),
  webSearch,
  webCache: { ...text("Keep what the web answers, and give it again", "DIR"), notFromFile },
  webCacheMode: choice(
    "What is not kept yet: fetch it and keep it, or refuse it (default record)",
    ["record", "replay"],
    "record"
  ),
  webHtml: choice("HTML as readable text, or as it came (default readable)", ["readable", "verbatim"], "readable")
}
