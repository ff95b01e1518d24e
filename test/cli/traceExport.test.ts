import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke } from "../kit/cli.ts"
import { collector } from "../kit/collector.ts"
import { corrupt } from "../kit/corrupt.ts"
import { play } from "../kit/run.ts"
import { call } from "../kit/script.ts"
import { type GoodName, good } from "../kit/traces.ts"

const file = (name: GoodName) =>
  Effect.gen(function* () {
    const path = join(yield* directory, "trace.jsonl")
    const text = corrupt(yield* good[name], (lines) => {
      for (const line of lines) line.ts_epoch_ms = 1_760_000_000_000 + line.t_ms
    })
    writeFileSync(path, text)
    return path
  })

describe("writ trace export", () => {
  it.live("sends the spans to a collector, linked, with their attributes and the run's own time", () =>
    Effect.gen(function* () {
      const { received, url } = yield* collector()
      const env = { OTEL_EXPORTER_OTLP_HEADERS: "x-team=a%20b,other=1" }
      const { code, out } = yield* invoke(["trace", "export", yield* file("two calls"), "--otlp", url], env)
      assert.strictEqual(code, 0)
      assert.match(out, /^5 spans sent to http:\/\/127\.0\.0\.1:\d+\/v1\/traces, trace [0-9a-f]{32}$/)
      assert.lengthOf(received, 1)
      const [{ body, headers, method, path }] = received as [(typeof received)[number]]
      assert.deepStrictEqual([method, path], ["POST", "/v1/traces"])
      assert.include(headers["content-type"], "application/json")
      assert.deepStrictEqual([headers["x-team"], headers["other"]], ["a b", "1"])
      assert.match(
        headers["user-agent"] ?? "",
        /^OTel-OTLP-Exporter-JavaScript-Effect-Writ\//,
        "Effect's exporter sends"
      )
      const [{ resource, scopeSpans }] = body.resourceSpans as [(typeof body.resourceSpans)[number]]
      assert.deepInclude(resource.attributes, { key: "service.name", value: { stringValue: "writ" } })
      const spans = scopeSpans[0]!.spans
      const root = spans.find(({ parentSpanId }) => parentSpanId === undefined)
      assert.strictEqual(root?.name, "invoke_agent writ")
      assert.match(root?.startTimeUnixNano ?? "", /^1760000000\d{9}$/)
      assert.lengthOf(
        spans.filter(({ parentSpanId }) => parentSpanId === root?.spanId),
        4
      )
    })
  )

  it.live("sends no content of a run that was recorded without", () =>
    Effect.gen(function* () {
      const { received, url } = yield* collector()
      yield* invoke(["trace", "export", yield* file("artifact, no content"), "--otlp", `${url}/my/path`])
      assert.strictEqual(received[0]?.path, "/my/path", "a path of one's own is kept")
      for (const content of ["the task", "a.txt", "saved", "hmac"]) assert.notInclude(received[0]?.text, content)
      yield* invoke(["trace", "export", yield* file("artifact"), "--otlp", url])
      for (const content of ["the task", "a.txt", "saved"]) assert.include(received[1]?.text, content)
    })
  )

  it.live("sends what the attributes say on the page about traces, of all kinds of spans, and nothing else", () =>
    Effect.gen(function* () {
      const { received, url } = yield* collector()
      const names = [
        "artifact",
        "approved",
        "denied",
        "engine failure",
        "continued answer",
        "artifact, no content"
      ] as const
      for (const name of names) yield* invoke(["trace", "export", yield* file(name), "--otlp", url])
      const named = received.flatMap(({ body }) =>
        body.resourceSpans[0]!.scopeSpans[0]!.spans.flatMap(({ attributes, events }) =>
          [attributes, ...events.map((event) => event.attributes)].flat().map(({ key }) => key)
        )
      )
      const page = readFileSync(join(import.meta.dirname, "../../docs/trace.md"), "utf8")
      const documented = page.slice(page.indexOf("## OpenTelemetry"))
      for (const name of new Set(named)) {
        const [, last] = /^(?:gen_ai\.\w+|writ)(\.\w.*)$/.exec(name) ?? [undefined, name]
        assert.isTrue(documented.includes(`\`${name}\``) || documented.includes(`\`${last}\``), name)
      }
    })
  )

  it.live("is patient with a collector that is busy, and sends a long run in parts", () =>
    Effect.gen(function* () {
      const { received, url } = yield* collector((request) => (request === 0 ? { status: 503 } : {}))
      const path = join(yield* directory, "trace.jsonl")
      const { text } = yield* play([...Array.from({ length: 130 }, (_, n) => call("add", { a: n, b: 1 })), "done"], {
        limits: { modelTurns: 200, toolCalls: 200 }
      })
      writeFileSync(path, text)
      const { code, out } = yield* invoke(["trace", "export", path, "--otlp", url])
      assert.strictEqual(code, 0)
      assert.match(out, /^262 spans sent to /)
      const sizes = received.map(({ body }) => body.resourceSpans[0]!.scopeSpans[0]!.spans.length)
      assert.deepStrictEqual(sizes, [200, 200, 62], "the first part was sent again")
      const ids = received.slice(1).flatMap(({ body }) => body.resourceSpans[0]!.scopeSpans[0]!.spans)
      assert.strictEqual(new Set(ids.map(({ spanId }) => spanId)).size, 262)
    })
  )

  it.live("ends with 1 where nobody answers, or what was sent is not taken", () =>
    Effect.gen(function* () {
      const path = yield* file("final answer")
      const busy = yield* collector({ status: 503 })
      const picky = yield* collector({ body: { partialSuccess: { rejectedSpans: "2", errorMessage: "too old" } } })
      const gone = yield* Effect.scoped(collector())
      const sent = (url: string) => invoke(["trace", "export", path, "--otlp", url.replace("//", "//user:secret@")])
      const [unavailable, partly, unreachable] = yield* Effect.all([sent(busy.url), sent(picky.url), sent(gone.url)])
      assert.deepStrictEqual([unavailable.code, partly.code, unreachable.code], [1, 1, 1])
      assert.include(unavailable.err, "answered 503")
      assert.include(partly.err, "did not take 2 spans (too old)")
      assert.include(unreachable.err, "cannot be reached: ECONNREFUSED")
      assert.strictEqual(busy.received[0]?.headers.authorization, `Basic ${btoa("user:secret")}`)
      for (const { err } of [unavailable, partly, unreachable]) assert.notInclude(err, "secret")
    })
  )

  it.effect("prints the same body with --json", () =>
    Effect.gen(function* () {
      const { code, out } = yield* invoke(["trace", "export", "--json", yield* file("one tool")])
      assert.strictEqual(code, 0)
      assert.lengthOf(JSON.parse(out).resourceSpans[0].scopeSpans[0].spans, 4)
    })
  )

  it.effect("wants to be told where to, by an address", () =>
    Effect.gen(function* () {
      const path = yield* file("final answer")
      assert.strictEqual((yield* invoke(["trace", "export", path])).code, 2)
      for (const url of ["localhost", "ftp://x", "file:///etc/passwd"]) {
        assert.strictEqual((yield* invoke(["trace", "export", path, "--otlp", url])).code, 2, url)
      }
    })
  )
})
