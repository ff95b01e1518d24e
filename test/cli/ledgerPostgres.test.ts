/** The command line and a ledger on a server. The server is this file's own. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, invoke, newestTrace, writ } from "../kit/cli.ts"
import { intent, unknown } from "../kit/ledger.ts"
import { open } from "../kit/ledgerAt.ts"
import * as Postgres from "../kit/postgres.ts"
import { call } from "../kit/script.ts"

let server: Awaited<ReturnType<typeof Postgres.startServer>>

beforeAll(async () => {
  server = await Postgres.startServer()
})
afterAll(() => server?.remove())

describe("--ledger postgres://…", () => {
  it.live("keeps the effects of a run, and no document or message holds its password", () =>
    Effect.gen(function* () {
      const cwd = yield* directory
      const url = yield* Postgres.freshUrl(server)
      const turns = [call("write_artifact", { name: "a.md", content: "# A" }), "Done."]
      writeFileSync(join(cwd, "script.yaml"), JSON.stringify({ turns }))
      const options = ["--script", "script.yaml", "--tools", "write_artifact", "--trace-content", "--ledger", url]
      const ran = yield* writ(["run", ...options, "--max-turns", "1", "Write it."], { cwd })
      assert.strictEqual(ran.code, 5, ran.err)
      const listed = yield* writ(["ledger", "list", "--json"], { cwd, env: { WRIT_LEDGER: url } })
      assert.strictEqual(listed.code, 0, listed.err)
      const { effects } = JSON.parse(listed.out)
      assert.lengthOf(effects, 1)
      assert.deepInclude(effects[0], { tool: "write_artifact", standing: "settled", outcome: "succeeded" })
      assert.include(ran.out, "--ledger")
      const everything = [ran.out, ran.err, listed.out, JSON.stringify(newestTrace(cwd))]
      for (const text of everything) assert.notInclude(text, server.password)
    })
  )

  it.live("is listed, shown and settled by hand like a file", () =>
    Effect.gen(function* () {
      const url = yield* Postgres.freshUrl(server)
      const { key } = intent(0)
      yield* open(url, (ledger) => Effect.andThen(ledger.begin(intent(0)), ledger.settle(key, unknown)))
      const said = (...args: ReadonlyArray<string>) => invoke(["ledger", ...args, "--ledger", url], { USER: "ada" })
      assert.include((yield* said("list", "--unknown")).out, key.slice(0, 12))
      const resolved = yield* said("resolve", key.slice(0, 12), "--happened", "--reason", "seen")
      assert.deepStrictEqual([resolved.code, resolved.out], [0, `pay ${key.slice(0, 12)}: happened, says ada`])
      assert.match((yield* said("show", key)).out, /^resolved .* by ada: seen$/m)
      assert.strictEqual((yield* said("resolve", key, "--failed", "--reason", "no")).code, 2)
    })
  )

  it.live("that does not exist is a usage error and is not made; one that cannot be reached is a failure", () =>
    Effect.gen(function* () {
      const url = yield* Postgres.freshUrl(server)
      const listed = yield* invoke(["ledger", "list", "--ledger", url])
      assert.deepStrictEqual([listed.code, listed.err.includes("does not exist")], [2, true], listed.err)
      const way = yield* Postgres.proxy(server)
      way.close()
      const gone = yield* invoke(["ledger", "list", "--ledger", way.url(url)])
      assert.deepStrictEqual([gone.code, gone.err.includes("cannot be reached")], [1, true], gone.err)
      assert.notInclude(gone.err, server.password)
    })
  )
})
