/** Where reports lie (`evals/reports/`), how they get there whole, and how one is found again. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { look, reasonOf } from "../../actors/Directories.ts"
import { writeWhole } from "../../actors/WholeFile.ts"
import { nearest } from "../../tools/Nearest.ts"
import { KeptError, makeKept } from "./Kept.ts"
import * as Report from "./Report.ts"

export class ReportError extends Schema.TaggedError<ReportError>()("ReportError", { message: Schema.String }) {}

export const reportsIn = (project: string): string => join(project, "evals", "reports")

export const judgesIn = (project: string, runId: string): string => join(project, "evals", "judges", runId)

/**
 * Writes a file of what evaluations leave behind: the old one or the new one is there, never a part. Its path.
 *
 * @param top the directory that says its content is generated
 */
export const writeIn = (
  directory: string,
  name: string,
  pieces: Iterable<string>,
  top = directory
): Effect.Effect<string, ReportError> => {
  // Part of the name is what a report that was read calls its run: no path.
  const path = join(directory, name.replace(/[^A-Za-z0-9._-]/g, "_"))
  return makeKept(directory, top).pipe(
    Effect.andThen(
      Effect.try({
        try: () => writeWhole(path, pieces),
        catch: (cause) => new KeptError({ message: `${path} cannot be written: ${reasonOf(cause)}` })
      })
    ),
    Effect.as(path),
    Effect.mapError(({ message }) => new ReportError({ message }))
  )
}

/** A file of the reports. */
export const write = (project: string, name: string, pieces: Iterable<string>): Effect.Effect<string, ReportError> =>
  writeIn(reportsIn(project), name, pieces)

/** Run ids of the reports there are. Comparisons lie there too, and are none. */
const idsIn = (directory: string): ReadonlyArray<string> =>
  look(directory)._tag === "Directory"
    ? readdirSync(directory)
        .filter((name) => name.endsWith(".json") && !name.includes("-vs-") && !/\.(?:repeats|bench)\.json$/.test(name))
        .map((name) => name.slice(0, -".json".length))
        .sort()
    : []

/** The report of a run, by the run's id or by the path of its JSON. */
export const load = (project: string, named: string): Effect.Effect<Report.Report, ReportError> =>
  Effect.gen(function* () {
    const directory = reportsIn(project)
    const known = join(directory, `${named}.json`)
    const path = look(known)._tag === "File" ? known : named
    if (look(path)._tag !== "File") {
      const ids = idsIn(directory)
      const near = nearest(named, ids)
      const hint =
        ids.length === 0
          ? `${directory} holds no reports; make one with writ eval`
          : near === undefined
            ? `there are ${ids.slice(-5).join(", ")}${ids.length > 5 ? ` and ${ids.length - 5} older ones` : ""}`
            : `did you mean ${near}?`
      return yield* new ReportError({ message: `there is no report ${named}: ${hint}` })
    }
    const text = yield* Effect.try({
      try: () => readFileSync(path, "utf8"),
      catch: (cause) => new ReportError({ message: `${path} cannot be read: ${reasonOf(cause)}` })
    })
    const read = Report.parse(text)
    return Result.isSuccess(read) ? read.success : yield* new ReportError({ message: `${path}: ${read.failure}` })
  })
