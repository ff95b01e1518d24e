/** Runs the command: as a real process in a directory of its own, or in this process. */

import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as TestConsole from "effect/testing/TestConsole"
import { codeOf } from "../../src/cli/Ending.ts"
import { command } from "../../src/cli/Main.ts"
import { type Line, lines } from "./script.ts"

/** The sources; or what was built from them, which starts sooner, where somebody says that it is current. */
export const entry = process.env["WRIT_TEST_COMMAND"] ?? join(import.meta.dirname, "../../src/cli.ts")

export interface Ran {
  readonly code: number | null
  readonly signal: string | null
  readonly out: string
  readonly err: string
}

export interface Process {
  readonly child: ChildProcess
  /** What it has said so far. */
  readonly said: () => string
  readonly ended: Promise<Ran>
}

export interface Start {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** Another program that is the command line. */
  readonly program?: string
}

/** A directory that goes with the scope. */
export const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-cli-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

export const start = (args: ReadonlyArray<string>, { cwd, env = {}, input, program = entry }: Start): Process => {
  const { FORCE_COLOR: _, NO_COLOR: __, ...inherited } = process.env
  const child = spawn(process.execPath, [program, ...args], { cwd, env: { ...inherited, ...env } })
  let [out, err] = ["", ""]
  child.stdout.setEncoding("utf8").on("data", (text) => (out += text))
  child.stderr.setEncoding("utf8").on("data", (text) => (err += text))
  child.stdin.on("error", () => {})
  child.stdin.end(input ?? "")
  const ended = new Promise<Ran>((resolve) => child.on("close", (code, signal) => resolve({ code, signal, out, err })))
  return { child, said: () => out, ended }
}

/** Runs to the end. */
export const writ = (args: ReadonlyArray<string>, options: Start): Effect.Effect<Ran> =>
  Effect.promise(() => start(args, options).ended)

/** Waits until `condition` holds or the process has ended. */
export const until = (running: Process, condition: () => boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    let over = false
    void running.ended.then(() => (over = true))
    while (!over && !condition()) await new Promise((resolve) => setTimeout(resolve, 2))
  })

/** The directories of the runs made under `cwd`, oldest first. */
export const runsIn = (cwd: string): ReadonlyArray<string> => {
  const runs = join(cwd, ".writ/runs")
  return existsSync(runs)
    ? readdirSync(runs)
        .sort()
        .map((id) => join(runs, id))
    : []
}

export const traceOf = (run: string): string => {
  const path = join(run, "trace.jsonl")
  return existsSync(path) ? readFileSync(path, "utf8") : ""
}

/** The whole lines of the newest run's trace. */
export const newestTrace = (cwd: string): ReadonlyArray<Line> => {
  const run = runsIn(cwd).at(-1)
  const text = run === undefined ? "" : traceOf(run)
  return lines(text.slice(0, text.lastIndexOf("\n") + 1))
}

/** As somebody whom permissions hold back: the superuser may read everything. */
export const unprivileged = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  process.getuid?.() !== 0
    ? effect
    : Effect.acquireUseRelease(
        Effect.sync(() => process.seteuid!(65534)),
        () => effect,
        () => Effect.sync(() => process.seteuid!(0))
      )

/** Runs the command in this process, with these variables and no others. */
export const invoke = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
  Effect.gen(function* () {
    const exit = yield* Effect.exit(command(args))
    const out = (yield* TestConsole.logLines).join("\n")
    const err = (yield* TestConsole.errorLines).join("\n")
    return { code: codeOf(exit), out, err }
  }).pipe(
    Effect.provide([NodeServices.layer, Layer.fresh(TestConsole.layer)]),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { ...env } }))
  )
