/** An assembling process that is killed leaves all conversations or none, and the next one cleans up after it. */
import { spawn } from "node:child_process"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { project } from "../kit/projects.ts"

const entry = join(import.meta.dirname, "../kit/stagingChild.ts")

/** Runs the process and kills it before its nth file; without n it goes to its end. The signal it ended with. */
const run = (runs: string, before?: number): Effect.Effect<string | null> =>
  Effect.promise(
    () =>
      new Promise((resolve) => {
        const child = spawn(process.execPath, [entry, runs, ...(before === undefined ? [] : [String(before)])])
        child.stdout.on("data", () => child.kill("SIGKILL"))
        child.on("close", (_, signal) => resolve(signal))
      })
  )

describe("a process that is killed while it assembles", () => {
  it.live(
    "leaves nothing that looks like a run, and the next one takes away what it left",
    () =>
      Effect.gen(function* () {
        const runs = join(yield* project({}), "runs")
        for (const before of [0, 1, 10, 19]) {
          assert.strictEqual(yield* run(runs, before), "SIGKILL")
          const left = readdirSync(runs).filter((name) => name !== ".gitignore")
          assert.lengthOf(left, 1)
          assert.match(left[0]!, /^\.run-\d+\.\d+\.tmp$/)
          assert.lengthOf(readdirSync(join(runs, left[0]!)), before)
        }
        assert.isNull(yield* run(runs))
        const whole = readdirSync(runs).filter((name) => name !== ".gitignore")
        assert.lengthOf(whole, 1)
        assert.match(whole[0]!, /^run-\d+$/)
        assert.lengthOf(readdirSync(join(runs, whole[0]!)), 20)
      }),
    120_000
  )
})
