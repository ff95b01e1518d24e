/** What a run has published is what its own tools can read: through the real pool, in the run's own directory. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, newestTrace, writ } from "../kit/cli.ts"
import { call } from "../kit/script.ts"

const answersIn = (cwd: string) =>
  newestTrace(cwd)
    .filter(({ event_type }) => event_type === "tool_result_committed")
    .map(({ data }) => JSON.parse(String(data["answer"])))

describe("list_artifacts and read_artifact", () => {
  it.live(
    "see what the run has written so far, and nothing of other runs",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const turns = [
          call("list_artifacts", {}),
          call("write_artifact", { name: "a.md", content: "# Été" }),
          call("list_artifacts", {}),
          call("read_artifact", { name: "a.md" }),
          call("read_artifact", { name: "../../../script.json" }),
          "done"
        ]
        writeFileSync(join(cwd, "script.json"), JSON.stringify({ turns }))
        const tools = "write_artifact,list_artifacts,read_artifact"
        const args = ["run", "the task", "--script", "script.json", "--trace-content", "--tools", tools]
        for (let run = 0; run < 2; run++) {
          const { code, err } = yield* writ(args, { cwd })
          assert.strictEqual(code, 0, err)
          const answers = answersIn(cwd)
          assert.deepStrictEqual(answers[0], { ok: true, result: { artifacts: [] } })
          assert.deepStrictEqual(
            answers[2].result.artifacts.map(({ bytes, name }: { bytes: number; name: string }) => [name, bytes]),
            [["a.md", 7]]
          )
          assert.deepStrictEqual(answers[3], { ok: true, result: { name: "a.md", bytes: 7, text: "# Été" } })
          assert.deepInclude(answers[4], { ok: false })
          assert.notInclude(JSON.stringify(answers), cwd)
        }
      }),
    240_000
  )
})
