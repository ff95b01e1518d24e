/** The first minutes of the soak: five where every change is checked (`CI`), one elsewhere; `WRIT_SOAK_MINUTES` says otherwise. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"

const minutes = process.env["WRIT_SOAK_MINUTES"] ?? (process.env["CI"] === undefined ? "1" : "5")

/** What hangs is ended; a slow machine only makes fewer sessions. */
const limitMillis = Number(minutes) * 60_000 + 600_000

const soaked = Effect.promise(
  () =>
    new Promise<{ readonly failure: string | undefined; readonly out: string }>((resolve) => {
      const program = join(import.meta.dirname, "../bench/soak/sessions.ts")
      execFile(process.execPath, [program, minutes], { timeout: limitMillis }, (error, out, err) =>
        resolve({ failure: error === null ? undefined : `${error.message}\n${err}`, out })
      )
    })
)

it.live(
  "sessions that are cancelled, cut and crashed under leave valid records and nothing behind",
  () =>
    Effect.gen(function* () {
      const { failure, out } = yield* soaked
      assert.isUndefined(failure, `${failure}\n${out.slice(-3_000)}`)
      const { Completed, problems, sessions } = JSON.parse(out.trimEnd().split("\n").at(-1)!)
      assert.strictEqual(problems, 0)
      // Nothing would be found where nothing ran.
      assert.isAbove(sessions, 0)
      assert.isAbove(Completed, 0)
    }),
  limitMillis + 60_000
)
