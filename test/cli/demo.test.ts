import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, runsIn, start, traceOf, until, writ } from "../kit/cli.ts"
import { lines } from "../kit/script.ts"

const patience = { timeout: 240_000 }

/** What happened without when, by whom and in which run: the shape of a trace. */
const skeleton = (trace: string) => lines(trace).map(({ event_type, phase, step }) => [event_type, step, phase])

describe("writ demo", () => {
  it.live(
    "says what the artifact and the trace say, and says it the same way each time",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const shown = yield* writ(["demo"], { cwd })
        const documented = yield* writ(["demo", "--json"], { cwd })
        const quiet = yield* writ(["demo", "--quiet", "--run-dir", "here"], { cwd })

        assert.deepStrictEqual(
          [shown.code, documented.code, quiet.code],
          [0, 0, 0],
          shown.err + documented.err + quiet.err
        )
        assert.strictEqual(quiet.out, "DONE 21.57%\n")
        const document = JSON.parse(documented.out)
        assert.strictEqual(document.text, "DONE 21.57%")
        assert.strictEqual(documented.err, "")

        const runs = [...runsIn(cwd), join(cwd, "here")]
        const traces = runs.map(traceOf)
        assert.strictEqual(traces.length, 3)
        for (const trace of traces) assert.deepStrictEqual(skeleton(trace), skeleton(traces[0]!))

        const files = runs.map((run) => {
          const [name, ...more] = readdirSync(join(run, "artifacts"))
          assert.deepStrictEqual(more, [])
          return join(run, "artifacts", name!)
        })
        const hashes = files.map((file) => createHash("sha256").update(readFileSync(file)).digest("hex"))
        assert.strictEqual(new Set(hashes).size, 1)
        assert.include(readFileSync(files[0]!, "utf8"), "21.57%")

        for (const [at, trace] of traces.entries()) {
          const events = lines(trace)
          const written = events.filter(({ event_type }) => event_type === "artifact_written")
          assert.deepStrictEqual(
            written.map(({ data }) => data["sha256"]),
            [hashes[at]]
          )
          assert.strictEqual(events.at(-1)?.event_type, "run_completed")
          assert.strictEqual(events.at(-1)?.data["final_text"], "DONE 21.57%")
        }
        assert.deepStrictEqual([document.artifacts[0].sha256, document.artifacts.length], [hashes[0], 1])

        assert.include(shown.out, '→ calculate expression: "(0.744 - 0.612) / 0.612 * 100"')
        assert.include(shown.out, hashes[0]!)
        assert.include(shown.out, "npx writ trace inspect .writ/runs/")
        assert.match(shown.out, /done in .+: model .+, tools .+, orchestration .+\n/)
        assert.notInclude(shown.out, "\u001b", "no colours into a pipe")

        assert.strictEqual(readFileSync(join(cwd, ".writ/.gitignore"), "utf8"), "*\n")
        assert.deepStrictEqual(readdirSync(cwd).sort(), [".writ", "here"], "nothing is written elsewhere")
        for (const run of runs) {
          assert.deepStrictEqual(readdirSync(run).sort(), ["artifacts", "trace.jsonl", "transcript.yaml", "workspace"])
        }

        const again = yield* writ(["demo", "--run-dir", "here"], { cwd })
        assert.deepStrictEqual([again.code, again.err.includes("already holds a run")], [2, true])
      }),
    patience
  )

  it.live(
    "that is stopped before the model is there leaves no run behind",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const running = start(["demo"], { cwd })
        yield* until(running, () => running.said().includes("calculate"))
        running.child.kill("SIGINT")
        const left = yield* Effect.promise(() => running.ended)
        // Where the signal came late, the run is on the record.
        assert.oneOf(left.code, [0, 4], left.err)
        for (const run of runsIn(cwd)) assert.notStrictEqual(traceOf(run), "", "a run without a trace")
      }),
    patience
  )
})
