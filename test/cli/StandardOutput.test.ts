import { spawn } from "node:child_process"
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { directory, entry } from "../kit/cli.ts"

const patience = { timeout: 240_000 }

/** Runs the command with its standard output in a file. */
const into = (path: string, args: ReadonlyArray<string>, cwd: string) =>
  Effect.promise(
    () =>
      new Promise<{ readonly code: number | null; readonly err: string }>((resolve) => {
        const out = openSync(path, "w")
        const child = spawn(process.execPath, [entry, ...args], { cwd, stdio: ["ignore", out, "pipe"] })
        closeSync(out)
        let err = ""
        child.stderr!.setEncoding("utf8").on("data", (text) => (err += text))
        child.on("close", (code) => resolve({ code, err }))
      })
  )

const viaShell = (script: string, args: ReadonlyArray<string>, cwd: string) =>
  Effect.promise(
    () =>
      new Promise<{ readonly code: number | null; readonly err: string }>((resolve) => {
        const child = spawn("bash", ["-c", script, "bash", process.execPath, entry, ...args], {
          cwd,
          stdio: ["ignore", "ignore", "pipe"]
        })
        let err = ""
        child.stderr!.setEncoding("utf8").on("data", (text) => (err += text))
        child.on("close", (code) => resolve({ code, err }))
      })
  )

describe.skipIf(!existsSync("/dev/full"))("standard output on a full disk", () => {
  it.live(
    "costs the answer and therefore exit code 1, in words on standard error",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const task = "What is 17.5% of 240?"
        const whole = yield* into(join(cwd, "answer"), ["run", "--quiet", "--run-dir", "run", task], cwd)
        assert.strictEqual(whole.code, 0, whole.err)
        assert.include(readFileSync(join(cwd, "answer"), "utf8"), "42")
        for (const args of [
          ["run", "--quiet", task],
          ["run", "--json", task],
          ["trace", "inspect", "run"],
          ["trace", "validate", "run"]
        ]) {
          const left = yield* into("/dev/full", args, cwd)
          assert.strictEqual(left.code, 1, left.err)
          assert.include(left.err, "writ: standard output could not be written: ENOSPC")
        }
      }),
    patience
  )

  it.live(
    "that takes only a beginning is a failure too",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const left = yield* viaShell('ulimit -f 1; "$@" > cut.txt', ["run", "--help"], cwd)
        assert.strictEqual(left.code, 1, left.err)
        assert.include(left.err, "standard output could not be written")
      }),
    patience
  )
})

describe("a reader that goes away", () => {
  it.live(
    "after the command has said everything is no failure",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        const script = '"$@" | head -c0; exit "$' + '{PIPESTATUS[0]}"'
        const left = yield* viaShell(script, ["codec", "list"], cwd)
        assert.deepStrictEqual([left.code, left.err], [0, ""])
      }),
    patience
  )
})

describe("a run directory that cannot be made", () => {
  it.live.skipIf(!existsSync("/proc/self"))(
    "is a usage error at once",
    () =>
      Effect.gen(function* () {
        const cwd = yield* directory
        for (const args of [
          ["run", "--run-dir", "/proc/x/y", "hi"],
          ["demo", "--run-dir", "/proc/x"]
        ]) {
          // Before, this never came back and could not be interrupted.
          const left = yield* viaShell('timeout -s KILL 60 "$@"', args, cwd)
          assert.strictEqual(left.code, 2, left.err)
          assert.include(left.err, "cannot be made")
        }
        assert.deepStrictEqual(readdirSync(cwd), [])
      }),
    patience
  )
})
