/**
 * What a command lets the web tools do, put together from what was said: checked before a model is opened, and the key of
 * the search service read only where it is needed. Reaches nothing.
 */
import { resolve } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { variable } from "../actors/McpServer.ts"
import { look } from "../effects/RunDirectory.ts"
import type { Resolved } from "../effects/Settings.ts"
import { keyVariable, parseService, type WebWords } from "../effects/WebFields.ts"
import type { Registry } from "../tools/Registry.ts"
import { isKey, type SearchSettings, type WebSettings } from "../tools/web/WebSettings.ts"
import { type UsageError, usage } from "./Ending.ts"
import { problemAt } from "./Places.ts"

/** Stands for the key where nothing is sent. No header is made of it. */
const noKey = "no-key-since-only-recorded-answers-are-repeated"

const serviceOf = ({ webSearch }: WebWords) =>
  webSearch === undefined ? undefined : Result.getOrThrow(parseService(webSearch))

/** The key, or why it cannot be used; never the key in a sentence. */
const keyOf = Effect.map(variable(keyVariable), (found): Result.Result<string, string> => {
  const key = Option.getOrElse(found, () => "")
  if (key === "") return Result.fail(`--web-search brave: its key is not there; put it into ${keyVariable}`)
  return isKey(key) ? Result.succeed(key) : Result.fail(`${keyVariable}: it holds no key: a header cannot hold it`)
})

const cacheProblem = ({ webCache, webCacheMode }: WebWords): string | undefined => {
  if (webCacheMode === "replay") {
    if (webCache === undefined) return "--web-cache-mode replay: name the recorded answers with --web-cache"
    const problem = problemAt(webCache, "Directory")
    return problem === undefined ? undefined : `--web-cache ${webCache}: ${problem}`
  }
  // One that is not there yet is made with the first answer.
  return webCache === undefined || look(webCache)._tag === "Nothing" || problemAt(webCache, "Directory") === undefined
    ? undefined
    : `--web-cache ${webCache}: ${problemAt(webCache, "Directory")}`
}

const searchOf = Effect.fnUntraced(function* (words: WebWords): Effect.fn.Return<SearchSettings | undefined, string> {
  const service = serviceOf(words)
  if (service?.provider === "searxng") return { ...service, allowAddresses: words.webAddress }
  if (service === undefined) return undefined
  const key = words.webCacheMode === "replay" ? noKey : yield* Effect.fromResult(yield* keyOf)
  return { provider: "brave", key }
})

const settingsOf = (words: WebWords, search: SearchSettings | undefined): WebSettings => ({
  hosts: words.webHost,
  allowAddresses: words.webAddress,
  html: words.webHtml,
  ...(search === undefined ? {} : { search }),
  ...(words.webCache === undefined ? {} : { cache: { directory: resolve(words.webCache), mode: words.webCacheMode } })
})

/** What a tool lacks to be of any use; `undefined` where it is not a web tool or has it. */
const lacks = (tool: string, { webHost, webSearch }: WebWords): string | undefined => {
  if (tool === "web_fetch" && webHost.length === 0) {
    return "no host is granted; name those it may read with --web-host (see docs/web.md)"
  }
  if (tool === "web_search" && webSearch === undefined) {
    return "no search service is named; do so with --web-search searxng:URL, or with --web-search brave"
  }
  return undefined
}

/** Flags that no tool of the run would heed: said, since the model will not be able to do what they are for. */
const stray = ({ origins }: Pick<Resolved, "origins">, tools: ReadonlySet<string>): ReadonlyArray<string> =>
  (
    [
      ["webHost", "--web-host", "web_fetch"],
      ["webSearch", "--web-search", "web_search"]
    ] as const
  ).flatMap(([name, flag, tool]) =>
    origins[name] === "flag" && !tools.has(tool)
      ? [`writ: ${flag} changes nothing: ${tool} is not among the tools of this run (--tools ${tool})`]
      : []
  )

/** What the web tools of a run may reach. `undefined` where it has none, or nothing is granted to them. */
export const open = Effect.fnUntraced(function* (
  resolved: Pick<Resolved, "origins" | "settings">,
  registry: Registry
): Effect.fn.Return<WebSettings | undefined, UsageError> {
  const { settings } = resolved
  const tools = new Set(registry.tools.map(({ name }) => name))
  for (const tool of tools) {
    const missing = lacks(tool, settings)
    if (missing !== undefined) return yield* usage(`--tools ${tool}: ${missing}`)
  }
  const problem = cacheProblem(settings)
  if (problem !== undefined) return yield* usage(problem)
  yield* Effect.forEach(stray(resolved, tools), (line) => Console.error(line), { discard: true })
  // Every tool is handed the settings, so the key is in them only for a run that searches.
  const search = tools.has("web_search") ? yield* Effect.catch(searchOf(settings), usage) : undefined
  return settings.webHost.length === 0 && search === undefined ? undefined : settingsOf(settings, search)
})

/** What is granted, in a line, and what is wrong with it. For `writ doctor`. */
export const described = Effect.fnUntraced(function* (words: WebWords) {
  const { webAddress, webCache, webCacheMode, webHost, webSearch } = words
  const search = yield* Effect.result(searchOf(words))
  const problem = cacheProblem(words) ?? (Result.isFailure(search) ? search.failure : undefined)
  const addresses = webAddress.length === 0 ? "" : ` (also at ${webAddress.join(", ")})`
  const text = [
    webHost.length === 0 ? "web_fetch may read nothing" : `web_fetch may read ${webHost.join(", ")}${addresses}`,
    webSearch === undefined ? "web_search has no service" : `web_search asks ${webSearch}`,
    ...(webCache === undefined ? [] : [`answers: ${webCacheMode} ${webCache}`])
  ].join("; ")
  return { text, problem }
})

/** For calls that are executed once more: recorded answers only, whatever else was said. */
export const replaying = (words: WebWords): Effect.Effect<WebSettings | undefined, UsageError> => {
  const replay: WebWords = { ...words, webCacheMode: "replay" }
  if (words.webCache === undefined) return Effect.succeed(undefined)
  const problem = cacheProblem(replay)
  if (problem !== undefined) return usage(problem)
  return Effect.map(Effect.catch(searchOf(replay), usage), (search) => settingsOf(replay, search))
}

/** Why a call of a web tool cannot be compared by a replay that was told this. */
export const lacksForReplay = (tool: string, words: WebWords): string | undefined => {
  if (tool !== "web_fetch" && tool !== "web_search") return undefined
  if (words.webCache === undefined) {
    return "it read the web, which a replay does not: name the answers that the run kept with --web-cache"
  }
  if (lacks(tool, words) === undefined) return undefined
  return tool === "web_fetch"
    ? "it read hosts that the run was granted: name them with --web-host"
    : "it asked the search service of the run: name it with --web-search"
}
