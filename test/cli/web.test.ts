/** The web tools on the command line: what has to be said before they do anything, and what is never said. */
import { hash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { unrecorded } from "../../src/cli/SettingLists.ts"
import { flagOf, type SettingName } from "../../src/effects/SettingFields.ts"
import { type RawSettings, resolve } from "../../src/effects/Settings.ts"
import { fileName } from "../../src/tools/web/Recording.ts"
import { directory, invoke } from "../kit/cli.ts"
import { call, lines } from "../kit/script.ts"
import { serving } from "../kit/web.ts"

const patience = 240_000
const key = "canary-brave-key-41"
const withKey = { WRIT_BRAVE_KEY: key }

const page = "<main><h1>Prices</h1><p>12,50 EUR</p><p hidden>SECRET</p></main>"

/** A page on loopback, how often anything was asked for, and the flags that grant it. */
const site = Effect.gen(function* () {
  let asked = 0
  const port = yield* serving((request, response) => {
    asked += 1
    if (request.url !== "/prices") response.writeHead(404).end()
    else response.setHeader("content-type", "text/html").end(page)
  })
  const host = `127.0.0.1:${port}`
  return {
    asked: () => asked,
    host,
    url: `http://${host}/prices`,
    granted: ["--web-host", host, "--web-address", "127.0.0.1"]
  }
})

interface Made {
  readonly turns: ReadonlyArray<string>
  readonly tools: string
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
}

/** One scripted run in a directory of its own under `cwd`; what the model was answered, and the document. */
const ran = Effect.fnUntraced(function* (cwd: string, name: string, { args, env = {}, tools, turns }: Made) {
  writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns }))
  const run = join(cwd, name)
  const files = ["--script", join(cwd, "script.json"), "--ledger", join(cwd, "ledger.sqlite"), "--run-dir", run]
  const left = yield* invoke(["run", "t", "--json", "--trace-content", ...files, "--tools", tools, ...args], env)
  return { ...left, run, answers: left.code === 2 ? [] : answersIn(run) }
})

const answersIn = (run: string) =>
  lines(readFileSync(join(run, "trace.jsonl"), "utf8"))
    .filter(({ event_type }) => event_type === "tool_result_committed")
    .map(({ data }) => JSON.parse(String(data["answer"])))

/** Every byte below a directory. */
const everythingIn = (path: string): string =>
  readdirSync(path, { recursive: true, encoding: "utf8" })
    .map((name) => join(path, name))
    .filter((name) => statSync(name).isFile())
    .map((name) => readFileSync(name, "latin1"))
    .join("\n")

const refused = Effect.fnUntraced(function* (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) {
  const { code, err, out } = yield* invoke(["run", "t", "--model", "nowhere.gguf", ...args], env)
  assert.deepStrictEqual([code, out], [2, ""], args.join(" "))
  return err
})

describe("a web tool", () => {
  it.effect("without a grant is refused before a model is looked for", () =>
    Effect.gen(function* () {
      assert.match(yield* refused(["--tools", "web_fetch"]), /--tools web_fetch: no host is granted.*--web-host/)
      const search = /--tools web_search: no search service is named.*--web-search/
      assert.match(yield* refused(["--tools", "web_search", "--web-host", "*"]), search)
      const served = yield* invoke(["mcp", "serve", "--tools", "web_fetch"])
      assert.deepStrictEqual([served.code, served.out], [2, ""])
      assert.match(served.err, /no host is granted/)
      // With one, the model is what is missing.
      for (const env of [{}, { WRIT_WEB_HOST: '["a.example","b.example"]' }]) {
        const hosts = "WRIT_WEB_HOST" in env ? [] : ["--web-host", "a.example"]
        assert.match(yield* refused(["--tools", "web_fetch", ...hosts], env), /--model nowhere\.gguf/)
      }
    })
  )

  it.effect("that is set up wrongly is refused, with what was wrong and no more of it", () =>
    Effect.gen(function* () {
      const path = yield* directory
      writeFileSync(join(path, "file"), "")
      const fetching = ["--tools", "web_fetch", "--web-host", "a.example"]
      const searching = ["--tools", "web_search", "--web-search"]
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, RegExp, Readonly<Record<string, string>>?]> = [
        [["--web-host", "https://a.example/"], /--web-host: "https:\/\/a\.example\/" is not a host/],
        [["--web-address", "localhost"], /--web-address: "localhost" is not an address or range/],
        [["--web-search", "google"], /--web-search: expected searxng:URL or brave/],
        [["--web-search", "searxng:ftp://a.example"], /--web-search: searxng: ftp: addresses are not read/],
        [["--web-search", `searxng:https://u:${key}@a.example`], /carries a user name or password/],
        [["--web-search", `searxng:https://a.example/?token=${key}`], /ends before any \?/],
        [[...fetching, "--web-cache-mode", "replay"], /name the recorded answers with --web-cache/],
        [[...fetching, "--web-cache-mode", "replay", "--web-cache", join(path, "no")], /there is no such directory/],
        [[...fetching, "--web-cache", join(path, "file")], /--web-cache .*: it is not a directory/],
        [[...searching, "brave"], /its key is not there; put it into WRIT_BRAVE_KEY/],
        [[...searching, "brave"], /its key is not there/, { WRIT_BRAVE_KEY: "" }],
        [[...searching, "brave"], /WRIT_BRAVE_KEY: it holds no key/, { WRIT_BRAVE_KEY: `${key} x` }]
      ]
      for (const [args, expected, env] of cases) {
        const err = yield* refused(args, env)
        assert.match(err, expected)
        assert.notInclude(err, key)
      }
    })
  )

  it("is granted nothing by a settings file, which somebody else may have written", () => {
    const inFile = (file: RawSettings) => {
      const read = resolve({ flags: {}, environment: {}, file })
      return Result.isFailure(read) ? read.failure.problems.join() : ""
    }
    const granting: RawSettings = {
      webHost: ["*"],
      webAddress: "127.0.0.1",
      webSearch: "brave",
      webCache: "answers"
    }
    for (const name of Object.keys(granting) as ReadonlyArray<SettingName>) {
      assert.match(inFile({ [name]: granting[name] }), /has to be said on the command line or in WRIT_WEB_/, name)
    }
    assert.strictEqual(inFile({ webHtml: "verbatim", webCacheMode: "replay" }), "")
  })

  it.effect("that nobody named is missed where something was granted to it", () =>
    Effect.gen(function* () {
      const err = yield* refused(["--web-host", "a.example", "--web-search", "searxng:http://127.0.0.1:8888"])
      assert.include(err, "--web-host changes nothing: web_fetch is not among the tools of this run")
      assert.include(err, "--web-search changes nothing: web_search is not among the tools of this run")
      assert.notInclude(yield* refused([], { WRIT_WEB_HOST: "a.example" }), "changes nothing")
    })
  )
})

describe("a run with a granted host", () => {
  it.live(
    "reads it and nothing else, can be repeated from what it kept, and its calls replayed without a network",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const { asked, granted, host, url } = yield* site
        const cache = join(cwd, "web")
        const turns = [
          call("web_fetch", { url }),
          call("web_fetch", { url: "http://localhost:1/" }),
          call("web_fetch", { url: `http://${host}/none` }),
          "done"
        ]
        const made = { turns, tools: "web_fetch", args: [...granted, "--web-cache", cache] }
        const first = yield* ran(cwd, "first", made)
        assert.strictEqual(first.code, 0, first.err)
        assert.deepStrictEqual(first.answers[0], { ok: true, result: "HTTP 200 (text/html)\n\n# Prices\n\n12,50 EUR" })
        assert.deepInclude(first.answers[1], { ok: false, kind: "refused" })
        assert.deepInclude(first.answers[2], { ok: false, kind: "not_found" })
        const count = asked()
        assert.isAbove(count, 0)
        const again = yield* ran(cwd, "again", { ...made, args: [...made.args, "--web-cache-mode", "replay"] })
        assert.deepStrictEqual(again.answers, first.answers)

        const replay = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
          const left = yield* invoke(["trace", "replay", "--json", first.run, ...args])
          const { calls, matched, mismatched, skipped, verdict } = JSON.parse(left.out)
          return { code: left.code, verdict, counts: [matched, mismatched, skipped], reason: calls[0].reason }
        })
        const kept = ["--web-cache", cache]
        const whole = yield* replay(...kept, "--web-host", host)
        assert.deepInclude(whole, { code: 0, verdict: "match", counts: [3, 0, 0] })
        const bare = yield* replay()
        assert.deepInclude(bare, { code: 3, verdict: "nothing_to_compare", counts: [0, 0, 3] })
        assert.match(bare.reason, /--web-cache/)
        assert.match((yield* replay(...kept)).reason, /--web-host/)
        const empty = join(cwd, "empty")
        mkdirSync(empty)
        // What was refused by name needs no answer.
        const missing = yield* replay("--web-cache", empty, "--web-host", host)
        assert.deepInclude(missing, { code: 0, verdict: "match", counts: [1, 0, 2] })
        assert.match(missing.reason, /was not kept/)
        const other = yield* replay(...kept, "--web-host", host, "--web-html", "verbatim")
        assert.deepInclude(other, { code: 3, verdict: "mismatch", counts: [2, 1, 0] })
        assert.strictEqual(asked(), count, "nothing was asked for again")
      }),
    patience
  )

  it.live(
    "goes on only where what was granted is said again, as the command that it ends with does",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const { granted, host, url } = yield* site
        const turns = [call("web_fetch", { url }), call("web_fetch", { url }), "done"]
        const made = { turns, tools: "web_fetch", args: [...granted, "--web-html", "verbatim", "--max-turns", "1"] }
        const first = yield* ran(cwd, "run", made)
        const { next } = JSON.parse(first.out)
        for (const said of ["--web-host", host, "--web-address 127.0.0.1", "--web-html verbatim"]) {
          assert.include(next, said)
        }
        const script = ["--script", join(cwd, "script.json"), "--ledger", join(cwd, "ledger.sqlite")]
        const resume = ["run", "--resume", first.run, "--max-turns", "8", "--json", ...script]
        const forgotten = yield* invoke(resume)
        assert.strictEqual(forgotten.code, 2)
        assert.match(forgotten.err, /no host is granted/)
        const { code, err } = yield* invoke([...resume, ...granted, "--web-html", "verbatim"])
        assert.strictEqual(code, 0, err)
        const last = lines(readFileSync(join(first.run, "trace-r2.jsonl"), "utf8"))
        const answer = last.findLast(({ event_type }) => event_type === "tool_result_committed")?.data["answer"]
        assert.include(JSON.parse(String(answer)).result, "SECRET")
      }),
    patience
  )
})

/** A cache in which an answer of Brave lies that says the key back. */
const braveCache = (cwd: string): string => {
  const url = "https://api.search.brave.com/res/v1/web/search?q=prices&count=5&text_decorations=false"
  const accept = "application/json"
  const results = [{ title: `your key is ${key}`, url: "https://a.example/", description: "prices" }]
  const body = Buffer.from(JSON.stringify({ web: { results } }))
  const cache = join(cwd, "web")
  mkdirSync(cache)
  writeFileSync(
    join(cache, fileName({ url, accept })),
    JSON.stringify({
      format: "effect-writ.web.v1",
      request: { method: "GET", url, accept },
      recordedAt: 0,
      answer: { status: 200, sha256: hash("sha256", body), base64: body.toString("base64") }
    })
  )
  return cache
}

describe("the key of a search service", () => {
  it.live(
    "is in nothing that a run prints, records or tells the model, nor in the command that goes on",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const cache = braveCache(cwd)
        const turns = [call("web_search", { query: "prices" }), call("web_search", { query: "prices" }), "done"]
        const args = ["--web-search", "brave", "--web-cache", cache, "--max-turns", "1", "--token-events"]
        const made = { turns, tools: "web_search", args, env: withKey }
        const { answers, err, out, run } = yield* ran(cwd, "run", made)
        assert.deepStrictEqual(answers[0], {
          ok: true,
          result: "your key is (key) — https://a.example/\nprices"
        })
        const { next } = JSON.parse(out)
        assert.match(next, /--web-search brave/)
        rmSync(cache, { recursive: true })
        for (const text of [out, err, everythingIn(run), everythingIn(cwd)]) assert.notInclude(text, key)
        const trace = yield* invoke(["trace", "replay", "--json", run, "--web-search", "brave"])
        assert.match(JSON.parse(trace.out).calls[0].reason, /--web-cache/)
      }),
    patience
  )

  it.live(
    "is not needed where only recorded answers are repeated",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const args = ["--web-search", "brave", "--web-cache", braveCache(cwd), "--web-cache-mode", "replay"]
        const made = { turns: [call("web_search", { query: "prices" }), "done"], tools: "web_search", args }
        const { answers, code, err } = yield* ran(cwd, "run", made)
        assert.strictEqual(code, 0, err)
        assert.match(answers[0].result, /https:\/\/a\.example\//)
      }),
    patience
  )

  it.live(
    "is not shown by doctor, which says what is granted and what is missing",
    () =>
      Effect.gen(function* () {
        const env = { WRIT_WEB_HOST: "*.example.org", WRIT_WEB_SEARCH: "brave", WRIT_GPU: "off" }
        const whole = yield* invoke(["doctor", "--json"], { ...env, ...withKey })
        const webOf = ({ out }: { readonly out: string }) =>
          JSON.parse(out).checks.find(({ name }: { readonly name: string }) => name === "web")
        assert.deepStrictEqual(webOf(whole), {
          name: "web",
          state: "ok",
          text: "web_fetch may read *.example.org; web_search asks brave"
        })
        assert.notInclude(whole.out, key)
        const rows = JSON.parse(whole.out).settings
        const row = rows.find(({ name }: { readonly name: string }) => name === "webHost")
        assert.deepStrictEqual(row, { name: "webHost", value: ["*.example.org"], origin: "environment" })
        const without = yield* invoke(["doctor", "--json"], env)
        assert.strictEqual(without.code, 3)
        assert.deepInclude(webOf(without), { state: "no" })
        assert.match(webOf(without).text, /WRIT_BRAVE_KEY/)
      }),
    patience
  )
})

describe("the command a stopped run ends with", () => {
  it.effect("has no flag that writ approve does not know", () =>
    Effect.gen(function* () {
      for (const name of unrecorded) {
        const { err } = yield* invoke(["approve", "nowhere", `--${flagOf(name)}`, "x"])
        assert.notInclude(err, "Unrecognized flag", name)
      }
      assert.include((yield* invoke(["approve", "nowhere", "--no-such", "x"])).err, "Unrecognized flag")
    })
  )
})
