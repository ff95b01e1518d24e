/**
 * Where a run's files are: `.writ/runs/<run-id>/` with `trace.jsonl`, `artifacts/` and `transcript.yaml`, or one directory
 * of the caller's choice. A run that continues another is a part of it and lies beside it: `trace-r2.jsonl`, ….
 * Only makes directories; what goes into them is the actors' business.
 */

import { existsSync, mkdtempSync, readdirSync, rmdirSync, writeFileSync } from "node:fs"
import { basename, dirname, join, relative, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { look, makeDirectory, missingOf, reasonOf } from "../actors/Directories.ts"

export { look, type Place } from "../actors/Directories.ts"

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

/** The evaluated context of the part that stopped last, where it is kept; a second file beside it has the same name and more. */
export const stateIn = ({ directory }: RunDirectory): string => join(directory, "context.state")

/** `.writ/runs/<run-id>` under the current directory; for `ROOT-r2` the second part in the directory of `ROOT`. */
export const standard = (runId: string): RunDirectory => {
  const { part, root } = partOf(runId)
  return at(join(home, "runs", root), part)
}

/** The ids of the runs under `.writ/runs`. */
export const ids = (): ReadonlyArray<string> => {
  const runs = join(home, "runs")
  return look(runs)._tag === "Directory" ? readdirSync(runs) : []
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

export const isDirectory = (path: string): boolean => look(path)._tag === "Directory"

const tried = (directory: string, attempt: () => void): Effect.Effect<void, RunDirectoryError> =>
  Effect.try({
    try: attempt,
    catch: (cause) =>
      new RunDirectoryError({
        message: `${directory} cannot be made or written: ${reasonOf(cause)}. Choose a directory that files may be written to`
      })
  })

/** Makes `.writ` if it is missing; whatever is in it stays out of version control. */
export const prepareHome: Effect.Effect<void, RunDirectoryError> = tried(home, () => {
  makeDirectory(home)
  const ignore = join(home, ".gitignore")
  if (!existsSync(ignore)) writeFileSync(ignore, "*\n")
})

const isInHome = (directory: string): boolean => directory === home || directory.startsWith(`${home}${sep}`)

const refuseTaken = (run: RunDirectory): Effect.Effect<void, RunDirectoryError> =>
  Effect.suspend(() =>
    existsSync(run.trace)
      ? Effect.fail(
          new RunDirectoryError({
            message:
              basename(run.trace) === "trace.jsonl"
                ? `${run.directory} already holds a run; choose another directory`
                : `${run.trace} is there already: somebody else goes on with this run`
          })
        )
      : Effect.void
  )

/**
 * Can a run be written to its directory? Refuses one that already holds a run, and one that cannot be made. Tries it out
 * under a name of its own, and leaves nothing behind.
 */
export const check = (run: RunDirectory): Effect.Effect<void, RunDirectoryError> =>
  Effect.andThen(
    refuseTaken(run),
    tried(run.directory, () => rmdirSync(mkdtempSync(join(missingOf(run.directory).base, ".writ-check-"))))
  )

/** Makes the directory of a run. Refuses one that already holds a run. */
export const prepare = (run: RunDirectory): Effect.Effect<void, RunDirectoryError> =>
  Effect.gen(function* () {
    yield* refuseTaken(run)
    if (isInHome(run.directory)) yield* prepareHome
    yield* tried(run.directory, () => makeDirectory(run.directory))
  })

/** The trace named by a run's id, its directory or the file itself; `undefined` if there is none. */
export const findTrace = (named: string): string | undefined => {
  const candidates = [named, at(named).trace, standard(named).trace]
  return candidates.find((path) => look(path)._tag === "File")
}

/** A path as a person in the current directory would write it. */
export const shown = (path: string): string => {
  const near = relative("", path)
  return near === "" || near.startsWith(`..${sep}..`) ? path : near
}
