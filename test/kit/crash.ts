/** Starts processes that die where they are told to, and reads what they left. */
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { build } from "esbuild"
import type { Stop } from "../../src/effects/State.ts"
import { type Verdict, validateFile } from "../../src/effects/trace/TraceValidator.ts"
import { partFiles } from "./crashParts.ts"

export const temporary = (prefix: string): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), prefix))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
  )

/** A program of this kit in one file: hundreds of processes have to start quickly. */
export const bundled = Effect.fnUntraced(function* (name: string): Effect.fn.Return<string, never, Scope.Scope> {
  const directory = yield* temporary("writ-crash-program-")
  const outfile = join(directory, `${name}.mjs`)
  yield* Effect.promise(() =>
    build({
      entryPoints: [join(import.meta.dirname, `${name}.ts`)],
      outfile,
      bundle: true,
      platform: "node",
      format: "esm",
      // A package in the older form asks for Node's own modules by itself.
      banner: { js: 'import { createRequire } from "node:module"\nconst require = createRequire(import.meta.url)' },
      logLevel: "error"
    })
  )
  return outfile
})

export const makeProgram = bundled("crashChild")

/** What a process said at its end; nothing if it was killed. */
export interface Said {
  readonly stop?: Stop
  readonly transcript?: ReadonlyArray<unknown>
  readonly refused?: string
  /** Trace lines it wrote. */
  readonly lines: number
  /** How often it came to each place. */
  readonly visits: Readonly<Record<string, number>>
}

export type Mode = "external" | "none"

/** One process in `directory`, to its end. */
export const child = (program: string, directory: string, mode: Mode, where: string): Effect.Effect<Said | "killed"> =>
  Effect.callback((resume) => {
    const process_ = spawn(process.execPath, [program, directory, mode, where], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: join(program, "..", "cache") }
    })
    let out = ""
    let errors = ""
    process_.stdout.on("data", (chunk) => {
      out += chunk
    })
    process_.stderr.on("data", (chunk) => {
      errors += chunk
    })
    process_.on("close", (_code, signal) => {
      if (signal === "SIGKILL") resume(Effect.succeed("killed"))
      else if (out === "") resume(Effect.die(new Error(`the process failed at ${where}: ${errors}`)))
      else resume(Effect.sync(() => JSON.parse(out) as Said))
    })
    return Effect.sync(() => process_.kill("SIGKILL"))
  })

/** What is left when all is over: history, answer, artifacts by hash, and the outside world line by line. */
export interface Left {
  readonly stop: Stop | undefined
  readonly transcript: ReadonlyArray<unknown> | undefined
  readonly artifacts: ReadonlyArray<string>
  readonly world: ReadonlyArray<string>
}

const worldOf = (directory: string): ReadonlyArray<string> => {
  const path = join(directory, "world.txt")
  return existsSync(path) ? readFileSync(path, "utf8").trimEnd().split("\n") : []
}

const artifactsOf = (directory: string): ReadonlyArray<string> => {
  const path = join(directory, "artifacts")
  if (!existsSync(path)) return []
  return readdirSync(path)
    .sort()
    .map(
      (name) =>
        `${name} ${createHash("sha256")
          .update(readFileSync(join(path, name)))
          .digest("hex")}`
    )
}

export interface Lives {
  readonly left: Left
  /** What the last process said. */
  readonly said: Said
  /** Verdicts on the traces, oldest first. */
  readonly verdicts: ReadonlyArray<Verdict>
}

/** Processes in a fresh directory, one after the other; all but the last are told where to die and must. */
export const lives = (program: string, mode: Mode, deaths: ReadonlyArray<string>): Effect.Effect<Lives> =>
  Effect.scoped(
    Effect.gen(function* () {
      const directory = yield* temporary("writ-crash-")
      for (const where of deaths) {
        const said = yield* child(program, directory, mode, where)
        if (said !== "killed") return yield* Effect.die(new Error(`nothing died at ${where}: ${JSON.stringify(said)}`))
      }
      const said = yield* child(program, directory, mode, "never")
      if (said === "killed") return yield* Effect.die(new Error("somebody killed the last process"))
      const files = partFiles(directory)
      const options = { artifacts: join(directory, "artifacts"), allowStrays: true }
      const verdicts = yield* Effect.forEach(files, (file) => Effect.orDie(validateFile(file, options)))
      const left = {
        stop: said.stop,
        transcript: said.transcript,
        artifacts: artifactsOf(directory),
        world: worldOf(directory)
      }
      return { left, said, verdicts }
    })
  )
