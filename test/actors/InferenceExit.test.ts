import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterAll, describe } from "vitest"
import { makeGguf } from "../kit/gguf.ts"

/** How often each way of leaving is tried in each phase; `WRIT_EXIT_ROUNDS=20` for the long form. */
const rounds = Number(process.env["WRIT_EXIT_ROUNDS"] ?? 2)

const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-exit-"))
afterAll(() => Fs.rmSync(directory, { recursive: true, force: true }))
const model = Path.join(directory, "model.gguf")
Fs.writeFileSync(model, makeGguf({ muteEog: true, dim: 128, ff: 512, layers: 4 }))
const wide = Path.join(directory, "wide.gguf")
Fs.writeFileSync(wide, makeGguf({ vocabulary: 60_000 }))
const program = Path.resolve(import.meta.dirname, "../kit/engineExit.ts")

interface Ending {
  readonly code: number | null
  readonly signal: string | null
  readonly output: string
}

const run = (path: string, phase: string, way: string, delay: number) =>
  Effect.callback<Ending>((resume) => {
    const child = execFile(process.execPath, [program, path, phase, way, String(delay)], (_error, stdout, stderr) => {
      resume(Effect.succeed({ code: child.exitCode, signal: child.signalCode, output: stdout + stderr }))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

describe("a process with a model open", () => {
  for (const phase of ["load", "prefill", "decode", "embed"]) {
    for (const [way, code] of [
      ["exit", 0],
      ["error", 1],
      ["SIGINT", 130]
    ] as const) {
      it.live(
        `leaves without an abort: ${way} during ${phase}`,
        () =>
          Effect.gen(function* () {
            for (let round = 0; round < rounds; round++) {
              // spread over what a load consists of: thread start, library, file, context
              const ended = yield* run(
                phase === "load" ? wide : model,
                phase,
                way,
                200 + round * Math.floor(2400 / rounds)
              )
              assert.notStrictEqual(ended.signal, "SIGABRT", ended.output)
              assert.strictEqual(ended.code, code, JSON.stringify(ended))
              assert.notInclude(ended.output, "finished")
            }
          }),
        rounds * 60_000
      )
    }
  }

  it.live(
    "ends by itself once the model's scope is closed",
    () =>
      Effect.gen(function* () {
        const ended = yield* run(model, "close", "", 0)
        assert.deepStrictEqual(ended, { code: 0, signal: null, output: "finished\n" })
      }),
    240_000
  )
})
