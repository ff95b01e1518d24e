/** Servers on loopback that misbehave, each in its own way. Loopback is granted; what is tested is everything after that. */
import type { ServerResponse } from "node:http"
import { setImmediate } from "node:timers/promises"
import * as zlib from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { until } from "../../kit/toolCalls.ts"
import { certificate, fetching, granting, names, said, serving, servingRaw, servingSecurely } from "../../kit/web.ts"

const small = { bytes: 2_000, decodedBytes: 20_000, millis: 20_000 }

/** What a model is told about `/` of a server that answers like this. */
const told = Effect.fnUntraced(function* (
  answer: (response: ServerResponse, path: string) => void,
  limits: Partial<typeof small> = {}
) {
  const port = yield* serving((request, response) => answer(response, request.url ?? ""))
  return said(yield* fetching(`http://127.0.0.1:${port}/`, granting(port, { limits: { ...small, ...limits } })))
})

const raw = Effect.fnUntraced(function* (text: string, ending: "end" | "destroy" = "end") {
  const port = yield* servingRaw((socket) => void socket.write(text, () => socket[ending]()))
  return said(yield* fetching(`http://127.0.0.1:${port}/`, granting(port, { limits: small })))
})

const plain = { "content-type": "text/plain; charset=utf-8" }

describe("web_fetch of a granted host", () => {
  it.live("gives status and type, a blank line, and the body as it came", () =>
    Effect.gen(function* () {
      const body = "  one\n\n\ttwo <b> & é €\r\n"
      const text = yield* told((response) => response.writeHead(200, plain).end(body))
      assert.strictEqual(text, `HTTP 200 (text/plain; charset=utf-8)\n\n${body}`)
      assert.strictEqual(yield* told((response) => response.writeHead(204).end()), "HTTP 204 (unknown)\n\n")
    })
  )

  it.live("sends nothing but the request: no cookie, no credential, no referrer", () =>
    Effect.gen(function* () {
      const seen: Array<unknown> = []
      const port = yield* serving((request, response) => {
        seen.push(request.method, request.url, Object.keys(request.headers).sort().join(" "), request.headers.host)
        response.writeHead(200, { ...plain, "set-cookie": "a=b" }).end("ok")
      })
      yield* fetching(`http://127.0.0.1:${port}/a%20b?q=%C3%A9&x#fragment`, granting(port))
      const headers = "accept accept-encoding connection host user-agent"
      assert.deepStrictEqual(seen, ["GET", "/a%20b?q=%C3%A9&x", headers, `127.0.0.1:${port}`])
    })
  )

  it.live("undoes gzip, deflate with and without its wrapper, br, zstd, and two of them", () =>
    Effect.gen(function* () {
      const text = "compressed ".repeat(500)
      const codings: ReadonlyArray<readonly [string, Buffer]> = [
        ["gzip", zlib.gzipSync(text)],
        ["X-GZIP", zlib.gzipSync(text)],
        ["deflate", zlib.deflateSync(text)],
        ["deflate", zlib.deflateRawSync(text)],
        ["br", zlib.brotliCompressSync(text)],
        ["zstd", zlib.zstdCompressSync(text)],
        ["gzip, br", zlib.brotliCompressSync(zlib.gzipSync(text))],
        ["identity", Buffer.from("as it is")]
      ]
      for (const [coding, body] of codings) {
        const got = yield* told((response) =>
          response.writeHead(200, { ...plain, "content-encoding": coding }).end(body)
        )
        assert.isTrue(got.endsWith(coding === "identity" ? "as it is" : `\n\n${text}`), coding)
      }
    })
  )

  it.live("stops at the bound while a bomb unpacks, in each coding", () =>
    Effect.gen(function* () {
      const zeros = Buffer.alloc(4_000_000)
      const bombs: ReadonlyArray<readonly [string, Buffer]> = [
        ["gzip, gzip", zlib.gzipSync(zlib.gzipSync(zeros))],
        ["br", zlib.brotliCompressSync(zeros)],
        ["zstd", zlib.zstdCompressSync(zeros)],
        ["deflate, deflate", zlib.deflateSync(zlib.deflateSync(zeros))]
      ]
      for (const [coding, body] of bombs) {
        assert.isBelow(body.byteLength, 2_000)
        const got = yield* told((response) =>
          response.writeHead(200, { ...plain, "content-encoding": coding }).end(body)
        )
        assert.match(got, /^execution_failed: the page is larger than 20000 bytes/, coding)
      }
    })
  )

  it.live("refuses codings nobody asked for, too many of them, and broken ones", () =>
    Effect.gen(function* () {
      const coded = (coding: string, body: Buffer) =>
        told((response) => response.writeHead(200, { ...plain, "content-encoding": coding }).end(body))
      assert.match(yield* coded("compress", Buffer.from("x")), /compressed as "compress", which nobody asked for/)
      assert.match(yield* coded("gzip, gzip, gzip, gzip", Buffer.from("x")), /compressed 4 times over/)
      for (const coding of ["gzip", "deflate", "br", "zstd"]) {
        assert.match(yield* coded(coding, Buffer.from("not compressed at all")), /broken way/, coding)
      }
      const whole = zlib.gzipSync("text ".repeat(300))
      assert.match(yield* coded("gzip", whole.subarray(0, whole.byteLength - 12)), /broken way|closed the connection/)
    })
  )

  it.live("does not hold a zstd window larger than the web allows", () =>
    Effect.gen(function* () {
      const params = { [zlib.constants.ZSTD_c_windowLog]: 26, [zlib.constants.ZSTD_c_contentSizeFlag]: 0 }
      const stream = zlib.createZstdCompress({ params })
      const body = yield* Effect.promise(async () => {
        stream.end(Buffer.alloc(1_000))
        return Buffer.concat(await stream.toArray())
      })
      const got = yield* told((response) => response.writeHead(200, { ...plain, "content-encoding": "zstd" }).end(body))
      assert.match(got, /broken way|closed the connection/)
    })
  )

  it.live("stops at the bound whatever length is claimed, none, or a false one", () =>
    Effect.gen(function* () {
      const limit = /^execution_failed: the page is larger than 2000 bytes/
      assert.match(
        yield* told((response) => response.writeHead(200, { ...plain, "content-length": 5_000 }).end()),
        limit
      )
      let written = 0
      const endless = yield* told((response) => {
        response.writeHead(200, plain)
        const more = () => {
          while (!response.destroyed && written < 50_000_000 && response.write(Buffer.alloc(500, 65))) written += 500
        }
        response.on("drain", more)
        more()
      })
      assert.match(endless, limit)
      assert.isBelow(written, 50_000_000)
      assert.match(
        yield* raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\nfour"),
        /^unavailable: .*closed/
      )
      assert.match(
        yield* raw("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n"),
        /closed/
      )
    })
  )

  it.live("stops at the deadline: no answer, a header without end, a body that drips", () =>
    Effect.gen(function* () {
      const late = /^unavailable: no complete answer within 0\.2 seconds/
      assert.match(yield* told(() => {}, { millis: 200 }), late)
      assert.match(yield* told((response) => response.writeHead(200, plain).write("drip"), { millis: 200 }), late)
      const port = yield* servingRaw((socket) => void socket.write("HTTP/1.1 200 OK\r\nX-Slow: "))
      const limits = { ...small, millis: 200 }
      assert.match(said(yield* fetching(`http://127.0.0.1:${port}/`, granting(port, { limits }))), late)
      const early = yield* servingRaw((socket) => {
        const hint = () =>
          socket.write("HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", () => void setImmediate().then(hint))
        hint()
        socket.once("close", () => socket.destroy())
      })
      assert.match(said(yield* fetching(`http://127.0.0.1:${early}/`, granting(early, { limits }))), late)
    })
  )

  it.live("closes the connection when the call is given up", () =>
    Effect.gen(function* () {
      let [open, closed] = [false, false]
      const port = yield* serving((_, response) => {
        open = true
        response.once("close", () => {
          closed = true
        })
      })
      const fiber = yield* Effect.forkChild(fetching(`http://127.0.0.1:${port}/`, granting(port)))
      yield* until(() => open)
      yield* Fiber.interrupt(fiber)
      yield* until(() => closed)
    })
  )

  it.live("refuses large headers, what is no HTTP, an upgrade, and a connection that just ends", () =>
    Effect.gen(function* () {
      const large = yield* told((response) =>
        response.writeHead(200, { ...plain, "x-large": "a".repeat(20_000) }).end("x")
      )
      assert.match(large, /headers of more than 16384 bytes/)
      assert.match(yield* raw("SSH-2.0-OpenSSH_9\r\n"), /does not answer in sound HTTP/)
      assert.match(yield* raw("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), /sound HTTP/)
      assert.match(
        yield* raw("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        /unavailable|execution_failed/
      )
      assert.match(yield* raw("", "destroy"), /^unavailable: 127\.0\.0\.1 closed the connection/)
    })
  )

  it.live("says when nobody listens, and tries the next address of the host", () =>
    Effect.gen(function* () {
      const port = yield* serving((_, response) => response.writeHead(200, plain).end("second address"))
      const web = granting(port, { hosts: [`two.test:${port}`], allowAddresses: ["127.0.0.0/8"] })
      const url = `http://two.test:${port}/`
      const both = names({ "two.test": ["127.9.9.9", "127.0.0.1"] })
      assert.match(said(yield* fetching(url, web).pipe(both.provide)), /second address/)
      const none = names({ "two.test": ["127.9.9.9"] })
      assert.match(
        said(yield* fetching(url, web).pipe(none.provide)),
        /^unavailable: two\.test cannot be reached \(ECONNREFUSED\)/
      )
    })
  )

  it.live("reads over TLS with the certificate of the name, at the address that was checked", () =>
    Effect.gen(function* () {
      const port = yield* servingSecurely((request, response) =>
        response.writeHead(200, plain).end(`secure ${request.headers.host}`)
      )
      const hosts = [`writ.test:${port}`, `other.test:${port}`, `127.0.0.1:${port}`]
      const { provide } = names({ "writ.test": ["127.0.0.1"], "other.test": ["127.0.0.1"] })
      const trusted = granting(port, { hosts, authorities: [certificate] })
      const get = (host: string, web = trusted) =>
        Effect.map(fetching(`https://${host}:${port}/`, web).pipe(provide), said)
      assert.match(yield* get("writ.test"), /^HTTP 200 .*\n\nsecure writ\.test:\d+$/)
      assert.match(yield* get("other.test"), /cannot prove that it is other\.test.*ERR_TLS_CERT_ALTNAME_INVALID/)
      assert.match(yield* get("127.0.0.1"), /cannot prove that it is 127\.0\.0\.1/)
      assert.match(yield* get("writ.test", granting(port, { hosts })), /cannot prove.*SELF_SIGNED/)
      const open = yield* serving((_, response) => response.end("x"))
      const plainly = said(yield* fetching(`https://127.0.0.1:${open}/`, granting(open)))
      assert.match(plainly, /does not speak TLS/)
    })
  )

  it.live("follows redirects to the bound, relative ones too, and says where they stop", () =>
    Effect.gen(function* () {
      const port = yield* serving((request, response) => {
        const hop = Number((request.url ?? "").slice(1))
        if (hop === 0) response.writeHead(200, plain).end("arrived")
        else response.writeHead(302, { location: request.url === "/99" ? "99" : `./${hop - 1}` }).end("ignored")
      })
      const get = (path: string) => Effect.map(fetching(`http://127.0.0.1:${port}${path}`, granting(port)), said)
      assert.match(yield* get("/5"), /arrived/)
      assert.match(yield* get("/6"), /^execution_failed: more than 5 redirects/)
      assert.match(yield* get("/99"), /more than 5 redirects/)
      const nowhere = yield* told((response) => response.writeHead(301, { location: "http://[" }).end())
      assert.match(nowhere, /^execution_failed: after 1 redirect: that is not a complete URL/)
      assert.match(yield* told((response) => response.writeHead(302).end()), /^execution_failed: HTTP 302 \(unknown\)/)
    })
  )

  it.live("does not follow a redirect of a real server into this machine", () =>
    Effect.gen(function* () {
      let inside = 0
      const secret = yield* serving((_, response) => {
        inside += 1
        response.writeHead(200, plain).end("secret")
      })
      const port = yield* serving((request, response) =>
        response.writeHead(307, { location: decodeURIComponent((request.url ?? "").slice(1)) }).end()
      )
      for (const [location, reason] of [
        [`http://127.0.0.1:${secret}/`, /may not read 127\.0\.0\.1, port/],
        [`http://2130706433:${secret}/`, /may not read 127\.0\.0\.1/],
        [`http://[::ffff:127.0.0.1]:${secret}/`, /may not read ::ffff:7f00:1/],
        [`http://localhost:${secret}/`, /may not read localhost/],
        ["file:///etc/passwd", /file: addresses/]
      ] as const) {
        const url = `http://127.0.0.1:${port}/${encodeURIComponent(location)}`
        assert.match(said(yield* fetching(url, granting(port))), reason)
      }
      assert.strictEqual(inside, 0)
    })
  )
})
