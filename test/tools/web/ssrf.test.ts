/** Places a model may be talked into asking for. Nothing here opens a connection: the wires are a double that counts. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { WebSettings } from "../../../src/tools/web/WebSettings.ts"
import { fetching, names, said, wires } from "../../kit/web.ts"

/** The widest settings there are without opening addresses: every public host. */
const everyHost: WebSettings = { hosts: ["*"], robots: "ignore" }

const hosts = {
  "public.example": ["93.184.216.34"],
  localhost: ["127.0.0.1"],
  "admin.localhost": ["::1"],
  "localtest.example": ["127.0.0.1"],
  "intranet.example": ["10.1.2.3"],
  "mixed.example": ["93.184.216.34", "192.168.0.1"],
  "mixed6.example": ["2606:4700::1", "fe80::1"],
  "metadata.google.internal": ["169.254.169.254"],
  "zone.example": ["fe80::1%eth0"],
  "mapped.example": ["::ffff:127.0.0.1"],
  "empty.example": [],
  "xn--bcher-kva.example": ["192.168.7.7"]
}

/** URL, and what the refusal has to say. */
const corpus: ReadonlyArray<readonly [url: string, reason: RegExp]> = [
  // Loopback and this machine.
  ["http://127.0.0.1/", /loopback/],
  ["http://127.1/", /127\.0\.0\.1 .*loopback/],
  ["http://127.0.0.1:80/", /loopback/],
  ["https://127.255.255.254/", /loopback/],
  ["http://0.0.0.0/", /this machine/],
  ["http://0/", /0\.0\.0\.0 .*this machine/],
  ["http://localhost/", /localhost \(127\.0\.0\.1\).*loopback/],
  ["http://LOCALHOST./", /loopback/],
  ["http://admin.localhost/", /loopback/],
  ["http://localtest.example/", /loopback/],
  // One number, octal, hexadecimal, mixed, percent-encoded, full-width, circled.
  ["http://2130706433/", /127\.0\.0\.1 .*loopback/],
  ["http://017700000001/", /127\.0\.0\.1 .*loopback/],
  ["http://0x7f000001/", /127\.0\.0\.1 .*loopback/],
  ["http://0177.0.0.01/", /127\.0\.0\.1 .*loopback/],
  ["http://0x7f.0.0x0.1/", /127\.0\.0\.1 .*loopback/],
  ["http://127.0.0.1./", /loopback/],
  ["http://%31%32%37.0.0.1/", /loopback/],
  ["http://１２７.０.０.１/", /loopback/],
  ["http://①②⑦.⓪.⓪.①/", /loopback/],
  ["http://127。0。0。1/", /loopback/],
  ["http://0xa9fea9fe/latest/meta-data/", /169\.254\.169\.254 .*metadata/],
  ["http://2852039166/", /metadata/],
  // Private, link-local, shared, documentation, benchmarks, multicast, reserved.
  ["http://10.0.0.1/", /private/],
  ["http://172.16.0.1/", /private/],
  ["http://172.31.255.255/", /private/],
  ["http://192.168.1.1/", /private/],
  ["http://100.64.0.1/", /CGNAT/],
  ["http://169.254.1.1/", /link-local/],
  ["http://169.254.169.254/latest/meta-data/", /metadata/],
  ["http://169.254.170.2/v2/credentials", /metadata/],
  ["http://100.100.100.200/", /metadata/],
  ["http://168.63.129.16/", /metadata/],
  ["http://metadata.google.internal/computeMetadata/v1/", /metadata/],
  ["http://192.0.0.1/", /protocols/],
  ["http://192.0.2.1/", /documentation/],
  ["http://198.51.100.1/", /documentation/],
  ["http://203.0.113.1/", /documentation/],
  ["http://198.18.0.1/", /benchmarks/],
  ["http://224.0.0.1/", /multicast/],
  ["http://240.0.0.1/", /reserved/],
  ["http://255.255.255.255/", /broadcast/],
  ["http://192.88.99.1/", /6to4/],
  // IPv6, and IPv4 inside it.
  ["http://[::1]/", /loopback/],
  ["http://[0:0:0:0:0:0:0:1]/", /loopback/],
  ["http://[::]/", /unspecified/],
  ["http://[::ffff:127.0.0.1]/", /loopback \w+ \(127\.0\.0\.1 in another form\)/],
  ["http://[::ffff:7f00:1]/", /loopback/],
  ["http://[::ffff:a9fe:a9fe]/", /metadata/],
  ["http://[::127.0.0.1]/", /IPv4-compatible/],
  ["http://[64:ff9b::7f00:1]/", /loopback/],
  ["http://[64:ff9b::a9fe:a9fe]/", /metadata/],
  ["http://[64:ff9b:1::1]/", /translator/],
  ["http://[2002:7f00:1::]/", /6to4/],
  ["http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/", /Teredo/],
  ["http://[fe80::1]/", /link-local/],
  ["http://[fd00::1]/", /unique local/],
  ["http://[fc00::1]/", /unique local/],
  ["http://[fd00:ec2::254]/latest/", /metadata/],
  ["http://[fec0::1]/", /site-local/],
  ["http://[ff02::1]/", /multicast/],
  ["http://[2001:db8::1]/", /documentation/],
  ["http://[3fff::1]/", /documentation/],
  ["http://[100::1]/", /discards/],
  ["http://[5f00::1]/", /segment routing/],
  ["http://[4000::1]/", /not a public address/],
  ["http://[2a00::5efe:7f00:1]/", /loopback/],
  // Names that lead there.
  ["http://intranet.example/", /10\.1\.2\.3.*private/],
  ["http://mixed.example/", /192\.168\.0\.1.*private/],
  ["http://mixed6.example/", /link-local/],
  ["http://zone.example/", /cannot be checked/],
  ["http://mapped.example/", /loopback/],
  ["http://empty.example/", /no address/],
  ["http://bücher.example/", /192\.168\.7\.7.*private/],
  // Credentials, schemes, ports, forms that two readers read in two ways.
  ["http://public.example@127.0.0.1/", /user name/],
  ["http://user:secret@public.example/", /user name/],
  ["http://public.example:pw@[::1]/", /user name/],
  ["file:///etc/passwd", /file: addresses are not read/],
  ["ftp://public.example/", /ftp: addresses are not read/],
  ["gopher://127.0.0.1:70/_x", /gopher: addresses are not read/],
  ["data:text/html,<p>x", /data: addresses are not read/],
  ["javascript:alert(1)", /javascript: addresses are not read/],
  ["ws://public.example/", /ws: addresses are not read/],
  ["http://public.example:22/", /may not read public\.example, port 22/],
  ["http://public.example:6379/", /port 6379/],
  ["http://public.example:443/", /port 443/],
  ["https://public.example:80/", /port 80/],
  ["http://public.example\\@127.0.0.1/", /backslash/],
  ["http://127.0.0.1\t/", /control character/],
  ["http://public.example\n.127.0.0.1/", /control character/],
  ["http://public..example/", /empty part/],
  ["http://public.example../", /empty part/],
  ["http://127.0.0.1%00.public.example/", /not a complete URL/],
  ["http://127.0.0.256/", /not a complete URL/],
  ["http://[::1%25eth0]/", /not a complete URL/],
  ["//127.0.0.1/", /not a complete URL/],
  ["127.0.0.1", /not a complete URL/],
  [`http://public.example/${"a".repeat(5_000)}`, /longer than/]
]

describe("web_fetch", () => {
  it("has a corpus of at least forty", () => assert.isAtLeast(corpus.length, 40))

  for (const [url, reason] of corpus) {
    it.effect(`does not connect to ${JSON.stringify(url.slice(0, 60))}`, () =>
      Effect.gen(function* () {
        const { provide } = names(hosts)
        const { provide: wired, reached } = wires(() => ({ text: "must not be seen" }))
        const outcome = yield* fetching(url, everyHost).pipe(provide, wired)
        assert.deepInclude(outcome, { _tag: "Failed", effect: "none" })
        assert.match(said(outcome), reason)
        assert.deepStrictEqual(reached, [])
      })
    )
  }

  /** Everything above that a server can send somebody to, as the end of a chain of each length. */
  for (const hops of [1, 3]) {
    it.effect(`does not follow ${hops} redirects to any of them`, () =>
      Effect.gen(function* () {
        let tried = 0
        for (const [url, reason] of corpus) {
          // A redirect may be relative, and its header cannot hold control characters.
          if (!/^[a-z]+:/.test(url) || /[\u0000-\u001f]/.test(url)) continue
          tried += 1
          const { provide } = names(hosts)
          const { provide: wired, reached } = wires(({ pathname }) => {
            const hop = Number(pathname.slice(1))
            return { location: hop < hops ? `/${hop + 1}` : url }
          })
          const outcome = yield* fetching("http://public.example/1", everyHost).pipe(provide, wired)
          assert.strictEqual(outcome._tag, "Failed", url)
          assert.match(said(outcome), reason)
          assert.match(said(outcome), /after \d redirect/)
          assert.deepStrictEqual(
            reached,
            Array.from({ length: hops }, () => "93.184.216.34"),
            url
          )
        }
        assert.isAtLeast(tried, 40)
      })
    )
  }

  it.effect("does not follow a redirect to a host that is not granted, nor from https to http", () =>
    Effect.gen(function* () {
      const to = (location: string, settings: WebSettings) => {
        const { provide } = names({ ...hosts, "other.example": ["93.184.216.35"] })
        const { provide: wired } = wires(({ host }) => (host === "public.example" ? { location } : { text: "there" }))
        return Effect.map(fetching("https://public.example/", settings).pipe(provide, wired), said)
      }
      const one: WebSettings = { hosts: ["public.example"], robots: "ignore" }
      assert.match(
        yield* to("https://other.example/", one),
        /^refused: after 1 redirect: .*may not read other\.example/
      )
      assert.match(yield* to("//other.example/", one), /may not read other\.example/)
      assert.match(yield* to("https://public.example.other.example/", one), /may not read/)
      assert.match(yield* to("http://public.example/", one), /from https to http/)
      assert.match(yield* to("https://other.example/", everyHost), /^HTTP 200 .*\n\nthere$/)
    })
  )

  it.effect("looks a name up once and connects to what it checked, whatever the name says later", () =>
    Effect.gen(function* () {
      const answers = [["93.184.216.34"], ["127.0.0.1"]]
      const { asked, provide } = names({
        get "rebind.example"() {
          return answers.shift() ?? ["127.0.0.1"]
        }
      })
      const { provide: wired, reached } = wires(() => ({ text: "first" }))
      assert.match(said(yield* fetching("http://rebind.example/", everyHost).pipe(provide, wired)), /first$/)
      assert.deepStrictEqual([asked, reached], [["rebind.example"], ["93.184.216.34"]])
      assert.match(said(yield* fetching("http://rebind.example/", everyHost).pipe(provide, wired)), /loopback/)
      assert.strictEqual(reached.length, 1)
    })
  )

  it.effect("opens addresses only to hosts granted by their full name", () =>
    Effect.gen(function* () {
      const allowAddresses = ["10.1.2.3"]
      const { provide } = names(hosts)
      const { provide: wired, reached } = wires(() => ({ text: "inside" }))
      const get = (granted: ReadonlyArray<string>) =>
        fetching("http://intranet.example/", { ...everyHost, hosts: granted, allowAddresses }).pipe(provide, wired)
      assert.match(said(yield* get(["*"])), /private/)
      assert.match(said(yield* get(["*.example"])), /private/)
      assert.match(said(yield* get(["*", "intranet.example"])), /inside/)
      assert.deepStrictEqual(reached, ["10.1.2.3"])
    })
  )

  it.effect("looks nothing up that is not granted, and names what is", () =>
    Effect.gen(function* () {
      const { asked, provide } = names(hosts)
      const { provide: wired } = wires(() => ({ text: "x" }))
      const ask = (url: string, granted: ReadonlyArray<string>) =>
        Effect.map(fetching(url, { ...everyHost, hosts: granted }).pipe(provide, wired), said)
      assert.strictEqual(
        yield* ask("https://public.example/a?key=1", ["docs.example", "*.wiki.example"]),
        "refused: this run may not read public.example; it may read: docs.example, *.wiki.example"
      )
      assert.match(yield* ask("https://wiki.example/", ["*.wiki.example"]), /^refused/)
      assert.match(yield* ask("https://evilwiki.example/", ["*.wiki.example", "wiki.example"]), /^refused/)
      assert.match(yield* ask("https://docs.example.evil.example/", ["docs.example"]), /^refused/)
      assert.match(yield* ask("https://public.example/", ["http://public.example"]), /set up wrongly.*is not a host/)
      assert.deepStrictEqual(asked, [])
      assert.match(yield* ask("https://PUBLIC.example./", ["Public.Example"]), /^HTTP 200/)
      assert.match(yield* ask("https://public.example:8443/", ["public.example:8443"]), /^HTTP 200/)
    })
  )
})
