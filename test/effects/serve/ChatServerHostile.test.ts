/** What may come over a wire that is no request, or one that nobody may make. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { parse } from "../../../src/effects/serve/Tokens.ts"
import { hello, post, raw, serving, until, wire } from "../../kit/serve.ts"

const token = "0123456789abcdef"
const tokens = Result.getOrThrow(parse(`ann:${token}`))

const codeOf = (body: unknown): unknown => (body as { readonly error?: { readonly code?: unknown } }).error?.code

/** An error in the form of the API, and nothing that a client would repeat by itself. */
const assertRefused = (
  response: { readonly status: number; readonly body: unknown; readonly headers: Headers },
  status: number,
  code: string
) => {
  assert.deepStrictEqual([response.status, codeOf(response.body)], [status, code])
  const { error } = response.body as { readonly error: object }
  assert.sameMembers(Object.keys(error), ["message", "type", "param", "code"])
  assert.strictEqual(response.headers.get("x-should-retry"), "false")
}

/** The server still answers. */
const assertAlive = (url: string) => Effect.map(post(url, hello), ({ status }) => assert.strictEqual(status, 200))

describe("a body", () => {
  it.live("is read as strict JSON or not at all", () =>
    Effect.gen(function* () {
      const { url } = yield* serving(["Hello."])
      for (const body of ["", "{", '{"model":"a","model":"b"}', "nul", "{}{}", '{"a":1e999}', "\ufeff{}"]) {
        assertRefused(yield* post(url, body), 400, "invalid_json")
      }
      assertRefused(yield* post(url, "[]"), 400, "invalid_type")
      yield* assertAlive(url)
    })
  )

  it.live("has to be UTF-8", () =>
    Effect.gen(function* () {
      const { url } = yield* serving([])
      const response = yield* Effect.promise(() =>
        fetch(`${url}/v1/chat/completions`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: Buffer.from([0x22, 0xff, 0x22])
        })
      )
      assert.strictEqual(response.status, 400)
      assert.strictEqual(codeOf(yield* Effect.promise(() => response.json())), "invalid_encoding")
    })
  )

  it.live("that says it is too large is not read", () =>
    Effect.gen(function* () {
      const { url } = yield* serving(["Hello."], { serving: { bodyBytes: 1_000 } })
      assertRefused(yield* post(url, { ...hello, user: "x".repeat(2_000) }), 413, "request_too_large")
      yield* assertAlive(url)
    })
  )

  it.live("that does not say so is read up to the limit", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* serving(["Hello."], { serving: { bodyBytes: 1_000 } })
        const { heard, say } = yield* wire(url)
        const head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        say(`${head}transfer-encoding: chunked\r\n\r\n${`400\r\n${" ".repeat(1024)}\r\n`.repeat(3)}`)
        yield* until(() => heard().includes("request_too_large"))
        assert.match(heard(), /^HTTP\/1\.1 413 /)
        yield* assertAlive(url)
      })
    )
  )

  it.live("of another type or encoding is refused: a page could send it unasked", () =>
    Effect.gen(function* () {
      const { url } = yield* serving([])
      for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"]) {
        const response = yield* post(url, hello, { headers: { "content-type": type } })
        assertRefused(response, 415, "unsupported_media_type")
      }
      const response = yield* post(url, hello, { headers: { "content-encoding": "gzip" } })
      assertRefused(response, 415, "unsupported_encoding")
    })
  )

  it.live("that does not come is not waited for", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* serving(["Hello."], { serving: { bodyMillis: 100 } })
        const { heard, say } = yield* wire(url)
        say(raw(JSON.stringify(hello)).slice(0, -10))
        yield* until(() => heard().includes("request_timeout"))
        assert.match(heard(), /^HTTP\/1\.1 408 /)
        yield* assertAlive(url)
      })
    )
  )
})

describe("a connection", () => {
  it.live("on which a head never ends is closed", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* serving(["Hello."], { listen: { headMillis: 200, requestMillis: 400 } })
        const { closed, heard, say } = yield* wire(url)
        say("POST /v1/chat/completions HTTP/1.1\r\nhost: local")
        yield* Effect.promise(() => closed)
        assert.match(heard(), /^HTTP\/1\.1 408 /)
        yield* assertAlive(url)
      })
    )
  )

  it.live("that speaks no HTTP gets an answer and its end", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* serving(["Hello."])
        const { closed, heard, say } = yield* wire(url)
        say("\u0016\u0003\u0001 hello\r\n\r\n")
        yield* Effect.promise(() => closed)
        assert.match(heard(), /^HTTP\/1\.1 400 /)
        yield* assertAlive(url)
      })
    )
  )

  it.live("whose head is too large gets an answer and its end", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* serving(["Hello."])
        const { closed, heard, say } = yield* wire(url)
        say(`GET /health HTTP/1.1\r\nhost: localhost\r\nx: ${"x".repeat(20_000)}\r\n\r\n`)
        yield* Effect.promise(() => closed)
        assert.match(heard(), /^HTTP\/1\.1 431 /)
        yield* assertAlive(url)
      })
    )
  )

  it.live("that is half closed by its client counts as left: the run is cancelled", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { server, trace, url } = yield* serving([{ text: "Hello.", fault: { kind: "hang", before: 1 } }])
        const { half, say } = yield* wire(url)
        say(raw(JSON.stringify(hello)))
        yield* until(() => trace(1).includes("model_call_started"))
        half()
        yield* until(() => trace(1).includes("run_cancelled"))
        yield* until(() =>
          server.metrics.text({ inFlight: 0, waiting: 0, draining: false }).includes('stop="cancelled"')
        )
      })
    )
  )
})

describe("an address", () => {
  it.live("takes its own methods, and there are no others", () =>
    Effect.gen(function* () {
      const { url } = yield* serving([])
      for (const method of ["GET", "PUT", "DELETE"]) {
        const { status } = yield* post(url, hello, { method })
        assert.strictEqual(status, 405, method)
      }
      const undecodable = ["/v1/models/%zz", "/v1/models/%c3", "/%"]
      const unknown = ["/", "/v1", "/v1/completions", "/v1/chat/completions/x", "/v1/../etc/passwd"]
      for (const path of [...unknown, ...undecodable]) {
        const response = yield* Effect.promise(() => fetch(`${url}${path}`))
        assert.strictEqual(response.status, 404, path)
        assert.match(response.headers.get("x-request-id") ?? "", /^req-/, path)
        assert.strictEqual(codeOf(yield* Effect.promise(() => response.json())), "not_found", path)
      }
    })
  )

  it.live("of a model holds its name, whatever that is made of", () =>
    Effect.gen(function* () {
      const { url } = yield* serving([], { model: "a b/100%" })
      const at = (path: string) => Effect.promise(() => fetch(`${url}/v1/models${path}`).then((it) => it.json()))
      assert.include(yield* at(`/${encodeURIComponent("a b/100%")}`), { id: "a b/100%" })
      assert.include(yield* at("/a%20b/100%25?x=1"), { id: "a b/100%" })
      assert.strictEqual(codeOf(yield* at("/a%20b")), "model_not_found")
      for (const path of ["", "/", "?x=1"]) assert.include(yield* at(path), { object: "list" }, path)
    })
  )

  it.live("answers no page of another place, and to no other name", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* serving([])
        const headers = { origin: "https://evil.example" }
        assertRefused(yield* post(url, hello, { headers }), 403, "forbidden_origin")
        const options = yield* Effect.promise(() => fetch(`${url}/v1/chat/completions`, { method: "OPTIONS" }))
        assert.isNull(options.headers.get("access-control-allow-origin"))
        const { heard, say } = yield* wire(url)
        say(raw(JSON.stringify(hello)).replace("host: localhost", "host: evil.example"))
        yield* until(() => heard().includes("forbidden_origin"))
        assert.match(heard(), /^HTTP\/1\.1 403 /)
      })
    )
  )
})

describe("a token", () => {
  it.live("is asked for where there are some, and compared whole", () =>
    Effect.gen(function* () {
      const { client, server, url } = yield* serving(["Hello."], { tokens })
      for (const headers of [
        {},
        { authorization: "Bearer x" },
        { authorization: token },
        { authorization: `Basic ${token}` }
      ]) {
        const response = yield* post(url, hello, { headers: headers as Record<string, string> })
        assertRefused(response, 401, "invalid_api_key")
        assert.notInclude(response.text, token)
      }
      assert.strictEqual(
        yield* Effect.promise(() =>
          client.models.list().then(
            () => "",
            (error) => error.constructor.name
          )
        ),
        "AuthenticationError"
      )
      const { status } = yield* post(url, hello, { headers: { authorization: `Bearer ${token}` } })
      assert.strictEqual(status, 200)
      assert.include(
        server.metrics.text({ inFlight: 0, waiting: 0, draining: false }),
        'writ_refused_total{reason="unauthorized"} 5'
      )
    })
  )

  it.live("lets a proxy on this machine pass the name it is called by, and the pages it serves ask", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { url } = yield* serving(["Hello."], { tokens })
        const ask = (...headers: ReadonlyArray<string>) =>
          Effect.gen(function* () {
            const { heard, say } = yield* wire(url)
            say(raw(JSON.stringify(hello), headers).replace("host: localhost", "host: chat.example"))
            yield* until(() => heard().includes("\r\n\r\n"))
            return heard().slice("HTTP/1.1 ".length, "HTTP/1.1 200".length)
          })
        const known = `authorization: Bearer ${token}`
        assert.strictEqual(yield* ask(), "401")
        assert.strictEqual(yield* ask(known, "origin: https://evil.example"), "403")
        assert.strictEqual(yield* ask(known, "origin: https://chat.example"), "200")
      })
    )
  )

  it.live("is not needed to see that the server lives, and is needed for its metrics", () =>
    Effect.gen(function* () {
      const { url } = yield* serving([], { tokens })
      const at = (path: string) => Effect.promise(() => fetch(`${url}${path}`).then(({ status }) => status))
      assert.deepStrictEqual([yield* at("/health"), yield* at("/health/live"), yield* at("/metrics")], [200, 200, 401])
    })
  )

  it.live("is let ask so often a minute, and told when to come again", () =>
    Effect.gen(function* () {
      const { url } = yield* serving(["Hello.", "Hello."], { serving: { keyPerMinute: 2 } })
      yield* post(url, hello)
      yield* post(url, hello)
      const { body, headers, status } = yield* post(url, hello)
      assert.deepStrictEqual([status, codeOf(body)], [429, "rate_limit_exceeded"])
      assert.isAbove(Number(headers.get("retry-after")), 0)
      assert.isNull(headers.get("x-should-retry"))
    })
  )
})
