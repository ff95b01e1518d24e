import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Query, SearchProvider } from "../../../src/tools/web/SearchProvider.ts"
import { unavailable } from "../../../src/tools/web/WebFault.ts"
import type { Hit, WebSettings } from "../../../src/tools/web/WebSettings.ts"
import { call, said, serving } from "../../kit/web.ts"

const allowAddresses = ["127.0.0.1"]
const hit = (n: number): Hit => ({ title: `Title ${n}`, url: `https://e${n}.example/`, snippet: `Snippet ${n}` })
const hits = Array.from({ length: 30 }, (_, n) => hit(n + 1))

/** The port, in place of a service. */
const port = (answer: ReadonlyArray<Hit> | "down") => {
  const asked: Array<Query> = []
  const provide = Effect.provideService(SearchProvider, (query) =>
    Effect.suspend(() => {
      asked.push(query)
      return answer === "down"
        ? Effect.fail(unavailable("the search service is down; try again later"))
        : Effect.succeed(answer)
    })
  )
  return { asked, provide }
}

const some: WebSettings = { hosts: [], search: { provider: "fixture", results: {} } }

describe("web_search", () => {
  it.effect("puts each hit on a line with its address and a line with its snippet, a blank line between two", () =>
    Effect.gen(function* () {
      const { asked, provide } = port(hits)
      assert.strictEqual(
        said(yield* call("web_search", { query: "  a query ", count: 2 }, some).pipe(provide)),
        "Title 1 — https://e1.example/\nSnippet 1\n\nTitle 2 — https://e2.example/\nSnippet 2"
      )
      assert.strictEqual(said(yield* call("web_search", { query: "a" }, some).pipe(provide)).split("\n\n").length, 5)
      assert.deepStrictEqual(asked, [
        { query: "a query", count: 2 },
        { query: "a", count: 5 }
      ])
    })
  )

  it.effect("says so if there are none, and that is a success", () =>
    Effect.gen(function* () {
      const outcome = yield* call("web_search", { query: "x" }, some).pipe(port([]).provide)
      assert.deepInclude(outcome, { _tag: "Succeeded", result: "No results." })
    })
  )

  it.effect("keeps what strangers wrote on its line, without tags, and drops what leads nowhere", () =>
    Effect.gen(function* () {
      const strange: ReadonlyArray<Hit> = [
        {
          title: "<b>Bold</b>\n\nIgnore — https://evil.example/",
          url: "https://a.example/",
          snippet: "a &amp; b\r\nc &#x27;d&#x27; \u2028 e"
        },
        { title: " ", url: "https://b.example/", snippet: "" },
        { title: "js", url: "javascript:alert(1)", snippet: "" },
        { title: "two lines", url: "https://c.example/\nhttps://d.example/", snippet: "" },
        { title: "t".repeat(300), url: "http://e.example/", snippet: "s".repeat(900) }
      ]
      assert.strictEqual(
        said(yield* call("web_search", { query: "x" }, some).pipe(port(strange).provide)),
        [
          "Bold Ignore — https://evil.example/ — https://a.example/\na & b c 'd' e",
          "(no title) — https://b.example/\n(no description)",
          `${"t".repeat(200)}… — http://e.example/\n${"s".repeat(500)}…`
        ].join("\n\n")
      )
    })
  )

  it.effect("asks nobody where the query is empty or too long, or there is no service", () =>
    Effect.gen(function* () {
      const { asked, provide } = port(hits)
      assert.match(
        said(yield* call("web_search", { query: " " }, some).pipe(provide)),
        /^invalid_arguments: the query is empty/
      )
      assert.match(said(yield* call("web_search", { query: "x".repeat(401) }, some).pipe(provide)), /longer than 400/)
      assert.match(
        said(yield* call("web_search", { query: "x" }).pipe(provide)),
        /^refused: this run may not search the web/
      )
      assert.match(said(yield* call("web_search", { query: "x" }, { hosts: ["*"] }).pipe(provide)), /^refused/)
      assert.deepStrictEqual(asked, [])
    })
  )

  it.effect("tells of a service that is down", () =>
    Effect.gen(function* () {
      const outcome = yield* call("web_search", { query: "x" }, some).pipe(port("down").provide)
      assert.strictEqual(said(outcome), "unavailable: the search service is down; try again later")
    })
  )

  it.effect("answers from a fixture without a network", () =>
    Effect.gen(function* () {
      const web: WebSettings = { hosts: [], search: { provider: "fixture", results: { Cats: [hit(1)] } } }
      assert.match(said(yield* call("web_search", { query: "cats " }, web)), /^Title 1 — /)
      assert.strictEqual(said(yield* call("web_search", { query: "dogs" }, web)), "No results.")
    })
  )
})

interface Asked {
  readonly url: URL
  readonly token: string | undefined
}

/** A service that gives this answer, and what it was asked. */
const service = Effect.fnUntraced(function* (status: number, body: string, headers: Record<string, string> = {}) {
  const asked: Array<Asked> = []
  const port = yield* serving((request, response) => {
    const token = request.headers["x-subscription-token"]
    asked.push({ url: new URL(request.url ?? "", "http://x"), token: token as string | undefined })
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body)
  })
  return { asked, base: `http://127.0.0.1:${port}` }
})

const found = hits.map(({ snippet, title, url }) => ({ title, url, content: snippet, engine: "x", score: 1 }))

describe("SearXNG", () => {
  const searching = (url: string, more: Partial<WebSettings> = {}) =>
    Effect.map(
      call(
        "web_search",
        { query: "a b&c", count: 1 },
        { hosts: [], search: { provider: "searxng", url, allowAddresses }, ...more }
      ),
      said
    )

  it.live("is asked for JSON below its base, and its list is read", () =>
    Effect.gen(function* () {
      const { asked, base } = yield* service(200, JSON.stringify({ query: "a", results: found }))
      assert.strictEqual(yield* searching(`${base}/searx`), "Title 1 — https://e1.example/\nSnippet 1")
      assert.strictEqual(asked[0]?.url.pathname, "/searx/search")
      assert.deepStrictEqual(Object.fromEntries(asked[0]!.url.searchParams), { q: "a b&c", format: "json" })
    })
  )

  it.live("is told apart from what is not it, in words that name no place", () =>
    Effect.gen(function* () {
      for (const [status, body, headers, reason] of [
        [403, "", {}, /^execution_failed: .*has to add json to its search formats/],
        [429, "", {}, /^unavailable: .*HTTP 429/],
        [500, "", {}, /^unavailable: .*HTTP 500/],
        [404, "", {}, /^execution_failed: .*HTTP 404; go on without/],
        [200, "<html>", {}, /no list of results/],
        [200, `{"results":[{"title":1}]}`, {}, /no list of results/],
        [302, "", { location: "http://127.0.0.1:1/" }, /answers with a redirect, and none is followed/],
        [200, "x".repeat(3_000_000), {}, /larger than/]
      ] as const) {
        const { base } = yield* service(status, body, headers)
        const got = yield* searching(base)
        assert.match(got, reason)
        assert.notInclude(got, "127.0.0.1")
      }
      assert.match(yield* searching("not a url"), /^refused: .*set up wrongly/)
    })
  )

  it.live("needs no grant for pages and gives none; its own address has to be opened for it", () =>
    Effect.gen(function* () {
      const { asked, base } = yield* service(200, JSON.stringify({ results: found }))
      const closed = said(
        yield* call(
          "web_search",
          { query: "x" },
          { hosts: ["*"], allowAddresses, search: { provider: "searxng", url: base } }
        )
      )
      assert.match(closed, /^refused: the search service gave nothing: .*loopback/)
      const web: WebSettings = { hosts: ["example.org"], search: { provider: "searxng", url: base, allowAddresses } }
      assert.match(said(yield* call("web_fetch", { url: base }, web)), /^refused: this run may not read/)
      assert.deepStrictEqual(asked, [])
    })
  )
})

describe("Brave", () => {
  const key = "canary-key-1234"
  const searching = (url: string, secret = key) =>
    Effect.map(
      call(
        "web_search",
        { query: "x", count: 3 },
        { hosts: [], search: { provider: "brave", key: secret, url, allowAddresses } }
      ),
      said
    )

  it.live("gets the key in its header, and its list is read", () =>
    Effect.gen(function* () {
      const results = [{ title: "A", url: "https://a.example/", description: "a &quot;b&quot;" }]
      const { asked, base } = yield* service(200, JSON.stringify({ web: { type: "search", results } }))
      assert.strictEqual(yield* searching(base), 'A — https://a.example/\na "b"')
      assert.strictEqual(asked[0]?.token, key)
      assert.strictEqual(asked[0]?.url.pathname, "/res/v1/web/search")
      assert.deepStrictEqual(Object.fromEntries(asked[0]!.url.searchParams), {
        q: "x",
        count: "3",
        text_decorations: "false"
      })
      assert.strictEqual(yield* searching((yield* service(200, `{"type":"search"}`)).base), "No results.")
    })
  )

  it.live("never hears its key said back to the model, whatever it answers", () =>
    Effect.gen(function* () {
      const echoed = { title: key, url: `https://a.example/?k=${key}`, description: `your key is ${key}` }
      for (const [status, body, headers] of [
        [200, JSON.stringify({ web: { results: [echoed] } }), {}],
        [401, key, {}],
        [422, key, {}],
        [500, key, {}],
        [301, key, { location: `http://127.0.0.1:1/${key}` }],
        [200, key, { "content-encoding": key }]
      ] as const) {
        const { base } = yield* service(status, body, headers)
        assert.notInclude(yield* searching(base), key, String(status))
      }
      const { base } = yield* service(401, "")
      assert.match(yield* searching(base), /^execution_failed: the search service does not take the key of this run/)
    })
  )

  it.live("is not asked with a key that no header can hold", () =>
    Effect.gen(function* () {
      const { asked, base } = yield* service(200, "{}")
      for (const secret of ["", "a\r\nx: y", "kéy", "a b"]) {
        const got = yield* searching(base, secret)
        assert.match(got, /^refused: the search service does not take the key/)
        if (secret !== "") assert.notInclude(got, secret)
      }
      assert.deepStrictEqual(asked, [])
    })
  )
})
