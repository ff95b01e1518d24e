/**
 * Where a run's files are: `.writ/runs/<run-id>/` with `trace.jsonl`, `artifacts/` and `transcript.yaml`, or one directory
 * of the caller's choice. A run that continues another is a part of it and lies beside it: `trace-r2.jsonl`, ….
 * Only makes directories; what goes into them is the actors' business.
 */

import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative, sep } from "node:path"
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
  /** Files that the run brought along for its tools; only a demonstration has them. */
  readonly workspace: string
}

export class RunDirectoryError extends Schema.TaggedError<RunDirectoryError>()("RunDirectoryError", {
  message: Schema.String
}) {}

/** `ROOT-r2` is the second part of the run `ROOT`; a run's first part has the run's own name. */
export const partOf = (runId: string): { readonly root: string; readonly part: number } => {
  const found = /^(.+)-r([1-9]\d*)$/.exec(runId)
  return found === null ? { root: runId, part: 1 } : { root: found[1]!, part: Number(found[2]) }
}

/** The files of a run in `directory`. `part` counts from 1; all parts share their artifacts. */
export const at = (directory: string, part = 1): RunDirectory => {
  const suffix = part > 1 ? `-r${part}` : ""
  return {
    directory,
    trace: join(directory, `trace${suffix}.jsonl`),
    artifacts: join(directory, "artifacts"),
    transcript: join(directory, `transcript${suffix}.yaml`),
    workspace: join(directory, "workspace")
  }
}

/** `.writ/runs/<run-id>` under the current directory; for `ROOT-r2` the second part in the directory of `ROOT`. */
export const standard = (runId: string): RunDirectory => {
  const { part, root } = partOf(runId)
  return at(join(home, "runs", root), part)
}

/** The directory a run's trace lies in, if it has the name such a trace has. */
export const directoryOf = (trace: string): string | undefined =>
  /^trace(?:-r[1-9]\d*)?\.jsonl$/.test(basename(trace)) ? dirname(trace) : undefined

/** The traces in `directory`, oldest part first, from part 1 on; `undefined` where one is missing in between. */
export const partsIn = (directory: string): ReadonlyArray<string | undefined> => {
  const parts: Array<string | undefined> = []
  for (const name of readdirSync(directory)) {
    const found = /^trace(?:-r([1-9]\d*))?\.jsonl$/.exec(name)
    if (found !== null) parts[Number(found[1] ?? 1) - 1] = join(directory, name)
  }
  return Array.from(parts)
}

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
