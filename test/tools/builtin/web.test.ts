/** What is said of the two web tools before they are called: contract, arguments, and that nothing is loaded for them. */
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { layerPiscina, ToolPool } from "../../../src/actors/ToolPool.ts"
import { registry } from "../../../src/tools/builtin/index.ts"
import type { JsonObject } from "../../../src/tools/JsonText.ts"
import { pick } from "../../../src/tools/Registry.ts"
import { parse } from "../../kit/sources.ts"
import { admitted } from "../../kit/toolCalls.ts"
import { fetching, granting, said, serving } from "../../kit/web.ts"

const toolNamed = (name: string) => Effect.map(registry, (all) => all.get(name)!)

describe("the web tools", () => {
  it.effect("read, may be asked again, and say which place they touch", () =>
    Effect.gen(function* () {
      for (const name of ["web_fetch", "web_search"]) {
        assert.deepInclude((yield* toolNamed(name)).contract, { risk: "read", ledger: "none", retry: "safe" })
      }
      const fetch = yield* toolNamed("web_fetch")
      const touches = (url: string) => fetch.terms.touches(Result.getOrThrow(fetch.check({ url })))
      assert.deepStrictEqual(touches("HTTPS://Example.org:443/a/../b?q=1#x"), [
        { verb: "read", resource: "https://example.org/b" }
      ])
      assert.deepStrictEqual(touches("no url"), [{ verb: "read", resource: "no url" }])
      const search = yield* toolNamed("web_search")
      assert.deepStrictEqual(search.terms.touches(Result.getOrThrow(search.check({ query: "x" }))), [
        { verb: "read", resource: "web:search" }
      ])
    })
  )

  it.effect("take a query and a count from 1 to 20, five if nothing is said", () =>
    Effect.gen(function* () {
      const search = yield* toolNamed("web_search")
      assert.deepStrictEqual(Result.getOrThrow(search.check({ query: "x" })).effective, { query: "x", count: 5 })
      for (const args of [
        {},
        { query: 1 },
        { query: "x", count: 0 },
        { query: "x", count: -1 },
        { query: "x", count: 300 }
      ]) {
        assert.isTrue(Result.isFailure(search.check(args as JsonObject)), JSON.stringify(args))
      }
      assert.isTrue(Result.isFailure((yield* toolNamed("web_fetch")).check({})))
    })
  )

  it.effect("refuse unless hosts are granted, in words that say what to do", () =>
    Effect.gen(function* () {
      for (const web of [undefined, { hosts: [] }]) {
        const told = said(yield* fetching("https://example.org/", web))
        assert.strictEqual(
          told,
          "refused: this run may not read the web: no host is granted; use what is known, or say that it is needed"
        )
      }
    })
  )

  it.effect("change nothing for a run that does not name them", () =>
    Effect.gen(function* () {
      const names = ["list_files", "read_text_file", "search_text", "calculate", "lookup", "write_artifact"]
      const picked = yield* Effect.flatMap(registry, (all) => pick(all, names))
      assert.isUndefined(picked.get("web_fetch"))
      assert.strictEqual(picked.tools.length, names.length)
    })
  )

  it("load nothing that reaches a network until one is called", () => {
    const root = dirname(dirname(dirname(import.meta.dirname)))
    const network = /^(?:node:)?(?:https?|http2|net|tls|dns|dgram)(?:\/|$)|^(?:html-to-text|htmlparser2)$/
    const seen = new Set<string>()
    const found: Array<string> = []
    const visit = (file: string): void => {
      if (seen.has(file)) return
      seen.add(file)
      for (const { dynamic, relative, target, typeOnly } of parse(file, readFileSync(join(root, file), "utf8"))
        .imports) {
        if (dynamic || typeOnly) continue
        if (relative) visit(target)
        else if (network.test(target)) found.push(`${file}: ${target}`)
      }
    }
    for (const file of ["src/tools/worker.ts", "src/tools/WorkerAnswer.ts", "src/tools/builtin/index.ts"]) visit(file)
    assert.isAbove(seen.size, 20)
    assert.deepStrictEqual(found, [])
  })

  it.live("work in a tool thread, with settings that cross it", () =>
    Effect.gen(function* () {
      const port = yield* serving((_, response) =>
        response.writeHead(200, { "content-type": "text/html" }).end("<h1>Hi</h1>")
      )
      const pool = yield* ToolPool
      const settings = { fixtures: {}, web: granting(port) }
      const call = admitted(
        yield* registry,
        "web_fetch",
        { url: `http://127.0.0.1:${port}/` },
        { settings, deadlineMillis: 60_000 }
      )
      assert.strictEqual(said(yield* pool.run(call)), "HTTP 200 (text/html)\n\n# Hi")
    }).pipe(Effect.provide(layerPiscina({ module: new URL("../../../src/tools/builtin/index.ts", import.meta.url) })))
  )
})
