/**
 * `assemblies/NAME.yaml` to `runs/RUN-ID/*.yaml`: reads and checks everything, then writes all files or none. What it makes
 * depends on the project's files alone; only the run's id is new each time.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { look, reasonOf } from "../../../actors/Directories.ts"
import { compile } from "../../../tools/JsonSchema.ts"
import { nearest } from "../../../tools/Nearest.ts"
import { ConversationError } from "../ConversationError.ts"
import * as ConversationText from "../ConversationText.ts"
import { pathText } from "../Place.ts"
import { type Path, pieces, Refusal, read, type YamlDocument } from "../YamlDocuments.ts"
import * as Assembly from "./Assembly.ts"
import { type Composed, checkPaths, compose } from "./Composing.ts"
import { problemOf } from "./FileNames.ts"
import * as Matrix from "./Matrix.ts"
import { ProjectFiles } from "./ProjectFiles.ts"
import * as RunId from "./RunId.ts"
import { putInPlace } from "./Staging.ts"

export interface Wanted {
  /** The project's directory. */
  readonly project: string
  /** The assembly's name. */
  readonly name: string
  /** Names of files, or values of the axis `case`; none for all. */
  readonly cases: ReadonlyArray<string>
  readonly variables: ReadonlyArray<Matrix.Variable>
}

export interface Assembled {
  readonly runId: string
  readonly directory: string
  readonly files: ReadonlyArray<{ readonly name: string; readonly file: string; readonly composed: Composed }>
}

const wrong = (path: string, place: string, reason: string): ConversationError =>
  new ConversationError({ path, place, reason })

/** The assembly's file, or what there is instead. */
const find = ({ name, project }: Wanted): string => {
  if (look(project)._tag !== "Directory")
    throw wrong(project, "", "there is no such directory: name the project with --project")
  const folder = join(project, "assemblies")
  const file = [".yaml", ".yml"].map((ending) => join(folder, name + ending)).find((path) => look(path)._tag === "File")
  if (problemOf(name) === undefined && file !== undefined) return file
  if (look(folder)._tag !== "Directory") {
    throw wrong(folder, "", `there is no such directory: assemblies are the files ${join(folder, "NAME.yaml")}`)
  }
  const known = readdirSync(folder)
    .flatMap((entry) => /^(.+)\.ya?ml$/.exec(entry)?.[1] ?? [])
    .sort(Assembly.inOrder)
  const near = nearest(name.replace(/^.*\//, "").replace(/\.ya?ml$/, ""), known)
  const there = known.length === 0 ? `there is none in ${folder}` : `there are ${known.join(", ")}`
  throw wrong("", "", `there is no assembly ${name}: ${near === undefined ? there : `did you mean ${near}?`}`)
}

const documentIn = (file: string): YamlDocument => {
  let text: string
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(file))
  } catch (cause) {
    throw new Refusal([], cause instanceof TypeError ? "it is not UTF-8 text" : `it cannot be read: ${reasonOf(cause)}`)
  }
  const [only, ...more] = pieces(text)
  if (only === undefined) throw new Refusal([], "there is nothing in it")
  if (more.length > 0) throw new Refusal([], `line ${more[0]!.line}: an assembly is one document: remove this ---`)
  return read(only)
}

const placeIn = (path: Path, line: number | undefined): string =>
  [pathText(path), line === undefined ? "" : `(line ${line})`].filter((part) => part !== "").join(" ")

/** Turns what the readers throw into an error of the assembly's file. */
const tried = <A>(
  file: string,
  document: YamlDocument | undefined,
  act: () => A
): Effect.Effect<A, ConversationError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(act())
    } catch (error) {
      if (error instanceof ConversationError) return Effect.fail(error)
      if (!(error instanceof Refusal)) throw error
      return Effect.fail(wrong(file, placeIn(error.path, document?.lineOf(error.path)), error.message))
    }
  })

/** A schema that nothing can be checked against is said now, not when a model has begun to talk. */
const checkSchemas = (all: ReadonlyArray<Composed>): Effect.Effect<void, ConversationError> => {
  const tools = new Map(all.flatMap(({ tools }) => tools).map((found) => [found.path, found]))
  return Effect.forEach(
    tools.values(),
    ({ path, tool }) =>
      Effect.mapError(compile(tool.input_schema), ({ message }) =>
        wrong(path, "input_schema", `it is refused: ${message}`)
      ),
    { discard: true }
  )
}

/** Every conversation that was asked for, made of the files as they are now. Writes nothing. */
export const plan = (wanted: Wanted): Effect.Effect<ReadonlyArray<Composed>, ConversationError> =>
  Effect.gen(function* () {
    const file = yield* tried("", undefined, () => find(wanted))
    const document = yield* tried(file, undefined, () => documentIn(file))
    const all = yield* tried(file, document, () => {
      const assembly = Assembly.decode(document, wanted.name)
      const axes = Matrix.withVariables(assembly.axes, wanted.variables)
      const cases = Matrix.selected(Matrix.casesOf(assembly, axes), wanted.cases)
      checkPaths(
        assembly,
        axes.map(({ name }) => name)
      )
      const files = new ProjectFiles(wanted.project)
      return cases.map((one) => compose(assembly, one, files))
    })
    yield* checkSchemas(all)
    return all
  })

/** Assembles, and writes the conversations to a new directory under `runs/`. */
export const assemble = (wanted: Wanted): Effect.Effect<Assembled, ConversationError> =>
  Effect.gen(function* () {
    const all = yield* plan(wanted)
    const texts = yield* Effect.forEach(all, ({ conversation, from }) =>
      Effect.map(Effect.fromResult(ConversationText.write(conversation, `${from.name}.yaml`)), (text) => ({
        name: `${from.name}.yaml`,
        text
      }))
    )
    const runs = join(wanted.project, "runs")
    const runId = yield* putInPlace(runs, texts, RunId.make(wanted.name))
    const directory = join(runs, runId)
    const files = all.map((composed) => ({
      name: composed.from.name,
      file: join(directory, `${composed.from.name}.yaml`),
      composed
    }))
    return { runId, directory, files }
  })
