/**
 * Finds what an evaluation is about: a suite by name or path, conversations in a file or directory, inside the project or
 * anywhere else. Zero conversations is an error, never an empty success.
 */
import { readdirSync, readFileSync } from "node:fs"
import { basename, join, resolve } from "node:path"
import { parseEnv } from "node:util"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { look, reasonOf } from "../../actors/Directories.ts"
import { nearest } from "../../tools/Nearest.ts"
import * as ConversationFile from "../conversation/ConversationFile.ts"
import type { Named } from "./Matching.ts"

export class ProjectError extends Schema.TaggedError<ProjectError>()("ProjectError", { message: Schema.String }) {}

const no = (message: string) => Effect.fail(new ProjectError({ message }))

const ending = /\.ya?ml$/i

/** A script lies beside the conversations it belongs to, and is none. */
const script = /\.script\.ya?ml$/i

const namesIn = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory)
    .filter((name) => !name.startsWith("."))
    .sort()

const isFile = (path: string): boolean => look(path)._tag === "File"

/** The file of a suite: a path, or NAME for `evals/NAME.yaml`. */
export const suiteFile = (project: string, suite: string): Effect.Effect<string, ProjectError> =>
  Effect.suspend(() => {
    const evals = join(project, "evals")
    const found = [join(evals, `${suite}.yaml`), join(evals, `${suite}.yml`), suite, join(project, suite)].find(isFile)
    if (found !== undefined) return Effect.succeed(found)
    const known =
      look(evals)._tag === "Directory"
        ? namesIn(evals)
            .filter((name) => ending.test(name))
            .map((name) => name.replace(ending, ""))
        : []
    const near = nearest(suite, known)
    const hint =
      known.length === 0
        ? `${evals} holds none`
        : near === undefined
          ? `there are ${known.join(", ")}`
          : `did you mean ${near}?`
    return no(`there is no suite ${suite}: ${hint}`)
  })

export interface Over {
  /** Name of the directory, or stem of the file. */
  readonly runId: string
  readonly path: string
  readonly conversations: ReadonlyArray<Named>
}

/** Names of the conversations below that somebody may have meant. */
const hintFor = (directory: string): string => {
  const below = namesIn(directory).filter(
    (name) =>
      look(join(directory, name))._tag === "Directory" && namesIn(join(directory, name)).some((one) => ending.test(one))
  )
  if (below.length === 0) return "conversation files end in .yaml or .yml"
  return `it holds runs; name one of them, or several: ${below
    .slice(-3)
    .map((name) => join(directory, name))
    .join(", ")}`
}

const filesOf = (path: string): Effect.Effect<ReadonlyArray<string>, ProjectError> =>
  Effect.suspend(() => {
    if (look(path)._tag === "File") return Effect.succeed([path])
    const files = namesIn(path)
      .filter((name) => ending.test(name) && !script.test(name) && isFile(join(path, name)))
      .map((name) => join(path, name))
    return files.length === 0 ? no(`there are no conversations in ${path}: ${hintFor(path)}`) : Effect.succeed(files)
  })

const stem = (path: string): string => basename(path).replace(ending, "")

/** What `--over` names: relative to the current directory, to the project, or the id of a run in `runs/`. */
const placeOf = (project: string, over: string): string | undefined =>
  [over, join(project, over), join(project, "runs", over)].find((path) => {
    const { _tag } = look(path)
    return _tag === "File" || _tag === "Directory"
  })

/** Loads every conversation; one that cannot be read refuses them all, by name. */
export const over = Effect.fnUntraced(function* (project: string, named: string): Effect.fn.Return<Over, ProjectError> {
  const path = placeOf(project, named)
  if (path === undefined) return yield* no(`--over ${named}: there is no such file, directory or run`)
  const files = yield* filesOf(path).pipe(
    Effect.catchDefect((cause) => no(`--over ${named}: it cannot be read: ${reasonOf(cause)}`))
  )
  const twice = files.find((file, index) => files.slice(0, index).some((before) => stem(before) === stem(file)))
  if (twice !== undefined) return yield* no(`two files are called ${stem(twice)} in ${path}: rename one of them`)
  const conversations = yield* Effect.validate(files, (file) =>
    Effect.map(ConversationFile.load(file), (conversation): Named => ({ name: stem(file), conversation }))
  ).pipe(
    Effect.mapError((errors) => {
      const shown = errors.slice(0, 10).map(({ message }) => message)
      const more = errors.length > 10 ? `\nand ${errors.length - 10} more` : ""
      return new ProjectError({ message: `${shown.join("\n")}${more}` })
    })
  )
  return { runId: stem(resolve(path)), path, conversations }
})

/** The environment that scripts may be passed parts of: the shell's, and beneath it the project's `.env`. */
export const environment = (
  project: string,
  shell: Readonly<Record<string, string | undefined>>
): Effect.Effect<Readonly<Record<string, string | undefined>>, ProjectError> =>
  Effect.suspend(() => {
    const path = join(project, ".env")
    if (!isFile(path)) return Effect.succeed(shell)
    return Effect.try({
      try: () => ({ ...parseEnv(readFileSync(path, "utf8")), ...shell }),
      catch: (cause) => new ProjectError({ message: `${path} cannot be read: ${reasonOf(cause)}` })
    })
  })
