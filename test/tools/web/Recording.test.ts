import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { fileName } from "../../../src/tools/web/Recording.ts"
import type { WebSettings } from "../../../src/tools/web/WebSettings.ts"
import { call, fetching, granting, names, said, serving, wires } from "../../kit/web.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => fs.mkdtempSync(join(tmpdir(), "writ-web-"))),
  (path) => Effect.sync(() => fs.rmSync(path, { recursive: true }))
)

/** No name resolves and no wire carries anything; whatever is tried is counted. */
const offline = () => {
  const { asked, provide } = names({})
  const { provide: wired, reached } = wires(() => ({ text: "from the network" }))
  return { cut: <A>(work: Effect.Effect<A>) => work.pipe(provide, wired), tried: () => asked.length + reached.length }
}

describe("recorded answers", () => {
  it.live("are given again without a connection: pages, redirects, robots.txt, errors", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "new", "cache")
      let served = 0
      const port = yield* serving((request, response) => {
        served += 1
        response.setHeader("content-type", "text/plain")
        response.setHeader("set-cookie", "session=canary-cookie")
        if (request.url === "/old") response.writeHead(302, { location: "/new" }).end()
        else if (request.url === "/gone") response.writeHead(404).end("gone")
        else if (request.url === "/robots.txt") response.end("User-agent: *\nDisallow: /closed")
        else if (request.url === "/broken") response.destroy()
        else response.end(`answer ${served}`)
      })
      const settings = (mode: "record" | "replay") =>
        granting(port, { robots: "obey", cache: { directory: path, mode } })
      const base = `http://127.0.0.1:${port}`
      const all = (web: WebSettings) =>
        Effect.forEach(["/old", "/new", "/gone", "/closed", "/broken", "/new#part"], (place) =>
          Effect.map(fetching(`${base}${place}`, web), said)
        )
      const first = yield* all(settings("record"))
      assert.match(first[0]!, /^HTTP 200 .*answer \d/s)
      assert.strictEqual(first[1], first[0])
      assert.match(first[4]!, /^unavailable/)
      const count = served
      const { cut, tried } = offline()
      assert.deepStrictEqual(yield* cut(all(settings("replay"))), first)
      assert.deepStrictEqual(yield* all(settings("record")), first)
      assert.deepStrictEqual([served, tried()], [count, 0])
      const kept = fs.readdirSync(path).map((name) => fs.readFileSync(join(path, name), "utf8"))
      assert.strictEqual(kept.length, 5)
      assert.notInclude(kept.join(""), "canary-cookie")
    })
  )

  it.live("grant nothing: a host that is not granted is refused although it was recorded", () =>
    Effect.gen(function* () {
      const cache = { directory: yield* directory, mode: "record" } as const
      const port = yield* serving((_, response) => response.end("text"))
      const web = granting(port, { cache })
      yield* fetching(`http://127.0.0.1:${port}/`, web)
      const later = { ...web, hosts: ["example.org"], cache: { ...cache, mode: "replay" } } as const
      assert.match(said(yield* fetching(`http://127.0.0.1:${port}/`, later)), /^refused: this run may not read/)
    })
  )

  it.live("repeat a deadline that passed without waiting for it", () =>
    Effect.gen(function* () {
      const port = yield* serving(() => {})
      const cache = { directory: yield* directory, mode: "record" } as const
      const web = granting(port, { cache, limits: { millis: 100 } })
      const url = `http://127.0.0.1:${port}/`
      const late = said(yield* fetching(url, web))
      assert.match(late, /^unavailable: no complete answer within 0\.1 seconds/)
      const { cut, tried } = offline()
      assert.strictEqual(said(yield* cut(fetching(url, { ...web, cache: { ...cache, mode: "replay" } }))), late)
      assert.strictEqual(tried(), 0)
    })
  )

  it.live("are missed in words, and never fetched instead", () =>
    Effect.gen(function* () {
      const { cut, tried } = offline()
      const cache = { directory: yield* directory, mode: "replay" } as const
      const missed = said(yield* cut(fetching("https://public.example/a", { hosts: ["*"], cache })))
      assert.match(
        missed,
        /^refused: this run only repeats recorded answers, and there is none for https:\/\/public\.example\/a/
      )
      assert.strictEqual(tried(), 0)
    })
  )

  it.live("are not used if they were changed, cut or put in another's place", () =>
    Effect.gen(function* () {
      const path = yield* directory
      const port = yield* serving((_, response) =>
        response.writeHead(200, { "content-type": "text/plain" }).end("true")
      )
      const web = granting(port, { cache: { directory: path, mode: "record" } })
      const get = (place: string) => Effect.map(fetching(`http://127.0.0.1:${port}${place}`, web), said)
      yield* get("/a")
      yield* get("/b")
      const [one, other] = fs.readdirSync(path).map((name) => join(path, name))
      const whole = fs.readFileSync(one!, "utf8")
      const url = JSON.parse(whole).request.url
      const place = new URL(url).pathname
      for (const text of [
        whole.slice(0, -20),
        whole.replace(Buffer.from("true").toString("base64"), Buffer.from("fals").toString("base64")),
        fs.readFileSync(other!, "utf8"),
        "{}"
      ]) {
        fs.writeFileSync(one!, text)
        const got = yield* get(place)
        assert.match(got, /^execution_failed: the recorded answer cannot be used/)
        assert.notInclude(got, path)
      }
      fs.writeFileSync(one!, whole)
      assert.match(yield* get(place), /true$/)
    })
  )

  it.live("tell in words, without a path, where they cannot be kept", () =>
    Effect.gen(function* () {
      const root = yield* directory
      fs.writeFileSync(join(root, "file"), "")
      const port = yield* serving((_, response) => response.end("text"))
      const web = granting(port, { cache: { directory: join(root, "file", "sub"), mode: "record" } })
      const got = said(yield* fetching(`http://127.0.0.1:${port}/`, web))
      assert.match(got, /^execution_failed: the recorded answer cannot be (?:read|written) \(ENOTDIR\)/)
      assert.notInclude(got, root)
    })
  )

  it("have names that follow from address and what was asked for", () => {
    const name = fileName({ url: "https://a.example/", accept: "x" })
    assert.match(name, /^[\da-f]{40}\.json$/)
    assert.strictEqual(name, fileName({ url: "https://a.example/", accept: "x" }))
    assert.notStrictEqual(name, fileName({ url: "https://a.example/", accept: "y" }))
  })

  it.live("of a search hold no key", () =>
    Effect.gen(function* () {
      const path = yield* directory
      const port = yield* serving((request, response) => {
        const said = `no results for ${request.headers["x-subscription-token"]}`
        response.setHeader("content-type", said)
        response.end(JSON.stringify({ said, web: { results: [] } }))
      })
      const search = {
        provider: "brave",
        key: "canary-key",
        url: `http://127.0.0.1:${port}`,
        allowAddresses: ["127.0.0.1"]
      } as const
      const web = { hosts: [], search, cache: { directory: path, mode: "record" } } as const
      assert.strictEqual(said(yield* call("web_search", { query: "x" }, web)), "No results.")
      const files = fs.readdirSync(path)
      assert.strictEqual(files.length, 1)
      const kept = fs.readFileSync(join(path, files[0]!), "utf8")
      const body = Buffer.from(JSON.parse(kept).answer.base64, "base64").toString()
      assert.strictEqual(body, '{"said":"no results for (key)","web":{"results":[]}}')
      assert.notInclude(kept, "canary-key")
      const { cut, tried } = offline()
      const replay = { ...web, cache: { directory: path, mode: "replay" } } as const
      assert.strictEqual(said(yield* cut(call("web_search", { query: "x" }, replay))), "No results.")
      assert.strictEqual(tried(), 0)
    })
  )
})
