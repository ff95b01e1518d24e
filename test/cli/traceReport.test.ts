import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke } from "../kit/cli.ts"
import { foreign } from "../kit/page.ts"
import { play } from "../kit/run.ts"
import { call } from "../kit/script.ts"

const recorded = Effect.gen(function* () {
  const root = yield* directory
  const { text } = yield* play([call("save", { name: "a.txt", content: "hi" }), "saved"])
  const trace = join(root, "trace.jsonl")
  writeFileSync(trace, text)
  return { root, trace }
})

describe("writ trace report", () => {
  it.effect("writes one page and says where", () =>
    Effect.gen(function* () {
      const { root, trace } = yield* recorded
      const output = join(root, "out.html")
      const ran = yield* invoke(["trace", "report", trace, "-o", output])
      assert.deepInclude(ran, { code: 0, err: "" })
      assert.match(ran.out, /out\.html: \d+ events, \d+ kB$/)
      const page = readFileSync(output, "utf8")
      assert.deepStrictEqual(foreign(page), [])
      assert.match(page, /^<!doctype html>[\s\S]*<\/html>\n$/)
    })
  )

  it.effect("with --json says it in a document, with what the validator found", () =>
    Effect.gen(function* () {
      const { root, trace } = yield* recorded
      const output = join(root, "out.html")
      const { code, out } = yield* invoke(["trace", "report", trace, "--output", output, "--json"])
      const document = JSON.parse(out) as Record<string, unknown>
      // The artifact's file is not beside this copy of the trace.
      assert.deepInclude(document, { report: output, status: "completed", unreadable: 0, violation_count: 1 })
      assert.strictEqual(document["bytes"], readFileSync(output).length)
      assert.strictEqual(code, 0)
    })
  )

  it.effect("never writes over the trace, and refuses what it cannot read or write", () =>
    Effect.gen(function* () {
      const { root, trace } = yield* recorded
      const before = readFileSync(trace, "utf8")
      const over = yield* invoke(["trace", "report", trace, "-o", join(root, ".", "trace.jsonl")])
      assert.strictEqual(over.code, 2)
      assert.strictEqual(readFileSync(trace, "utf8"), before)
      assert.strictEqual((yield* invoke(["trace", "report", join(root, "none")])).code, 2)
      mkdirSync(join(root, "folder"))
      const folder = yield* invoke(["trace", "report", trace, "-o", join(root, "folder")])
      assert.strictEqual(folder.code, 2)
      assert.include(folder.err, "cannot be written")
      assert.isFalse(existsSync(join(root, "report.html")))
    })
  )
})
