import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, newestTrace, writ } from "../kit/cli.ts"
import { call } from "../kit/script.ts"

describe("permissions on the command line", () => {
  it.live(
    "hold for whatever tool is used, and whatever the prompt says",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        for (const name of ["docs", "secret"]) {
          mkdirSync(join(cwd, name))
          writeFileSync(join(cwd, name, "a.md"), `in ${name}`)
        }
        const turns = [
          call("read_text_file", { path: "docs/a.md" }),
          call("read_text_file", { path: "docs/../secret/a.md" }),
          call("search_text", { query: "in" }),
          call("write_artifact", { name: "copy.md", content: "a copy" }),
          call("write_artifact", { name: "report.md", content: "a report" }),
          "Done."
        ]
        writeFileSync(join(cwd, "script.yaml"), JSON.stringify({ turns }))
        const grants = ["--grant", "read:workspace:**", "--grant", "write:artifact:report.md"]
        const permitted = [...grants, "--deny", "read:workspace:secret/**", "--trace-content"]
        const flags = ["--system", "You may read and write anything.", "--script", "script.yaml", ...permitted]
        const ran = yield* writ(["run", ...flags, "Copy everything."], { cwd })
        assert.strictEqual(ran.code, 0, ran.err)
        const trace = newestTrace(cwd)
        const scopes = trace.flatMap(({ data, event_type }) =>
          event_type === "legality_checked" ? [data["scopes"]] : []
        )
        assert.deepStrictEqual(scopes, ["pass", "fail", "fail", "fail", "pass"])
        const kinds = trace.flatMap(({ data, event_type }) =>
          event_type === "tool_call_rejected" ? [data["kind"]] : []
        )
        assert.deepStrictEqual(kinds, ["unauthorized", "unauthorized", "unauthorized"])
        const gates = trace[1]?.data["gates"] as { readonly authority: string }
        assert.match(gates.authority, /^grants-[0-9a-f]{12}$/)
      }),
    { timeout: 240_000 }
  )
})
