/**
 * Where a run's files are: `.writ/runs/<run-id>/` with `trace.jsonl`, `artifacts/` and `transcript.yaml`, or one directory
 * of the caller's choice. Only makes directories; what goes into them is the actors' business.
 */

import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs"
import { join, relative, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** What Writ keeps in a directory it works in. */
export const home = ".writ"

/** The effect ledger that the runs of a directory share. */
export const ledger = join(home, "ledger.sqlite")

/** What is known of model files that were hashed before. */
export const modelHashes = join(home, "model-hashes.json")

export interface RunDirectory {
  readonly directory: string
  readonly trace: string
  readonly artifacts: string
  readonly transcript: string
}

export class RunDirectoryError extends Schema.TaggedError<RunDirectoryError>()("RunDirectoryError", {
  message: Schema.String
}) {}

/** The files of a run in `directory`. */
export const at = (directory: string): RunDirectory => ({
  directory,
  trace: join(directory, "trace.jsonl"),
  artifacts: join(directory, "artifacts"),
  transcript: join(directory, "transcript.yaml")
})

/** `.writ/runs/<run-id>` under the current directory. */
export const standard = (runId: string): RunDirectory => at(join(home, "runs", runId))

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))

/** Makes `.writ` if it is missing; whatever is in it stays out of version control. */
export const prepareHome: Effect.Effect<void, RunDirectoryError> = Effect.try({
  try: () => {
    mkdirSync(home, { recursive: true })
    const ignore = join(home, ".gitignore")
    if (!existsSync(ignore)) writeFileSync(ignore, "*\n")
  },
  catch: (cause) => new RunDirectoryError({ message: `${home} cannot be made here: ${reasonOf(cause)}` })
})

const isInHome = (directory: string): boolean => directory === home || directory.startsWith(`${home}${sep}`)

/** Refuses a directory that already holds a run: one run, one file. */
export const check = (run: RunDirectory): Effect.Effect<void, RunDirectoryError> =>
  Effect.suspend(() =>
    existsSync(run.trace)
      ? Effect.fail(
          new RunDirectoryError({ message: `${run.directory} already holds a run; choose another directory` })
        )
      : Effect.void
  )

/** Makes the directory of a run. Refuses one that already holds a run. */
export const prepare = (run: RunDirectory): Effect.Effect<void, RunDirectoryError> =>
  Effect.gen(function* () {
    yield* check(run)
    if (isInHome(run.directory)) yield* prepareHome
    yield* Effect.try({
      try: () => mkdirSync(run.directory, { recursive: true }),
      catch: (cause) => new RunDirectoryError({ message: `${run.directory} cannot be made: ${reasonOf(cause)}` })
    })
  })

/** The trace named by a run's id, its directory or the file itself; `undefined` if there is none. */
export const findTrace = (named: string): string | undefined => {
  const candidates = [named, at(named).trace, standard(named).trace]
  return candidates.find((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true)
}

/** A path as a person in the current directory would write it. */
export const shown = (path: string): string => {
  const near = relative("", path)
  return near === "" || near.startsWith(`..${sep}..`) ? path : near
}
