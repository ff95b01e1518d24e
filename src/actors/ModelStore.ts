/**
 * Owns the directory of models: which files are in it, what is on record of each, and the names people gave. A record lies
 * beside its file (`NAME.gguf.json`), so that both can be moved together. Looks at no header and downloads nothing.
 */
import { lstatSync, readdirSync, rmSync, statSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { look, makeDirectory, reasonOf } from "./Directories.ts"
import { textOf, writeJson } from "./WholeFile.ts"

/** The directory of models cannot be read or written, or what is asked of it makes no sense. */
export class ModelStoreError extends Schema.TaggedError<ModelStoreError>()("ModelStoreError", {
  message: Schema.String
}) {}

/** One file of a model, as it was when it was taken in. */
const FileRecord = Schema.Struct({
  name: Schema.String,
  bytes: Schema.Natural,
  sha256: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))
})
export type FileRecord = typeof FileRecord.Type

/** What is on record of a model. */
const ModelRecord = Schema.Struct({
  schema: Schema.Literal("writ.model.v1"),
  /** What it was asked for by; absent where the file was put here by hand. */
  uri: Schema.optionalKey(Schema.String),
  /** Who says that this is the hash: the one who asked, the server, or only this machine after the download. */
  checksum: Schema.Literals(["given", "server", "computed"]),
  recorded_at: Schema.String,
  files: Schema.Array(FileRecord)
})
export type ModelRecord = typeof ModelRecord.Type

/** A model in the directory. Of one in several files they are in order; the first is the one to load. */
export interface StoredModel {
  /** The file's name without `.gguf`, and without the number of a part. */
  readonly name: string
  readonly path: string
  readonly files: ReadonlyArray<string>
  readonly bytes: number
  /** A download that broke off. */
  readonly unfinished: boolean
  readonly record?: ModelRecord
}

const decodeRecord = Schema.decodeUnknownOption(Schema.fromJsonString(ModelRecord))
const decodeAliases = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Record(Schema.String, Schema.String)))

const aliasFile = "aliases.json"

/** What an unfinished file's name ends with; the library that downloads has it so. */
export const partial = ".ipull"

/** Where the record of a model lies, whose first file this is. */
export const recordPath = (path: string): string => `${path}.json`

const recordOf = (path: string): ModelRecord | undefined => {
  const text = textOf(recordPath(path))
  return text === undefined ? undefined : Option.getOrUndefined(decodeRecord(text))
}

/** `a-00002-of-00003.gguf`: the model, and of how many parts this is one. */
const partName = /^(.+)-\d{5}-of-(\d{5})\.gguf$/i

/** The name of the model that a file is, or is a part of. */
export const stemOf = (file: string): string => partName.exec(file)?.[1] ?? withoutEnding(file)

const withoutEnding = (file: string): string => file.replace(/\.gguf$/i, "")

/** Files that are one model: the parts of as many. A whole file that is called like them is another one. */
const setOf = (file: string): string => {
  const [, stem, parts] = partName.exec(file) ?? []
  return parts === undefined ? withoutEnding(file) : `${stem} of ${parts}`
}

/** Each set by a name that no other has: parts are called like their first one where something else has their name. */
const named = (files: ReadonlyArray<string>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const sets = [...Map.groupBy(files, setOf).values()]
  const out = new Map<string, ReadonlyArray<string>>()
  for (const set of sets) if (!partName.test(set[0]!)) out.set(withoutEnding(set[0]!), set)
  for (const set of sets) {
    const [first] = set
    if (partName.test(first!)) out.set(out.has(stemOf(first!)) ? withoutEnding(first!) : stemOf(first!), set)
  }
  return out
}

/** Bytes of a file; 0 where there is none. */
export const bytesOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const modelOf = (directory: string, files: ReadonlyArray<string>, name: string): StoredModel => {
  const paths = files.map((file) => join(directory, file))
  const record = recordOf(paths[0]!)
  return {
    name,
    path: paths[0]!,
    files: paths,
    bytes: paths.reduce((sum, path) => sum + bytesOf(path), 0),
    unfinished: false,
    ...(record === undefined ? {} : { record })
  }
}

/** The models in `directory`, by name. A directory that is not there holds none. */
export const list = (directory: string): ReadonlyArray<StoredModel> => {
  if (look(directory)._tag !== "Directory") return []
  const entries = readdirSync(directory).toSorted()
  const isFile = (name: string) => look(join(directory, name))._tag === "File"
  const whole = entries.filter((name) => /\.gguf$/i.test(name) && isFile(name))
  const unfinished = entries
    .filter((name) => name.endsWith(`.gguf${partial}`) && isFile(name))
    .map((file) => ({
      ...modelOf(directory, [file], file.slice(0, -`.gguf${partial}`.length)),
      unfinished: true
    }))
  const finished = [...named(whole)].map(([name, files]) => modelOf(directory, files, name))
  return [...finished.toSorted((a, b) => (a.path < b.path ? -1 : 1)), ...unfinished]
}

/** A file somewhere else, as a model. */
export const fileAt = (path: string): StoredModel => modelOf(dirname(path), [basename(path)], stemOf(basename(path)))

/** The finished model of this name, with or without `.gguf`. */
export const find = (directory: string, name: string): StoredModel | undefined => {
  const wanted = withoutEnding(name)
  return list(directory).find((model) => !model.unfinished && model.name === wanted)
}

/** The model that was downloaded by this URI, if all of its files are still there. */
export const findByUri = (directory: string, uri: string): StoredModel | undefined =>
  list(directory).find(
    (model) => !model.unfinished && model.record?.uri === uri && model.record.files.length === model.files.length
  )

const attempt = <A>(what: string, run: () => A): Effect.Effect<A, ModelStoreError> =>
  Effect.try({ try: run, catch: (cause) => new ModelStoreError({ message: `${what}: ${reasonOf(cause)}` }) })

/** Makes the directory if it is missing. */
export const prepare = (directory: string): Effect.Effect<void, ModelStoreError> =>
  attempt(`the directory for models ${directory} cannot be made; choose another with --models-dir`, () =>
    makeDirectory(directory)
  )

/** Puts a model on record. */
export const record = (path: string, about: ModelRecord): Effect.Effect<void, ModelStoreError> =>
  attempt(`${recordPath(path)} cannot be written`, () => writeJson(recordPath(path), about))

/**
 * Removes a model of `directory` with its record. Only what `list` found there goes, each by its plain name, so that nothing
 * outside is reached; of a link only the link goes. The bytes that are free again.
 */
export const remove = (directory: string, model: StoredModel): Effect.Effect<number, ModelStoreError> =>
  attempt(`${model.name} cannot be removed`, () => {
    let freed = 0
    for (const path of model.files.flatMap((file) => [file, recordPath(file)])) {
      const inside = join(directory, basename(path))
      const stat = lstatSync(inside, { throwIfNoEntry: false })
      if (stat === undefined) continue
      rmSync(inside)
      if (!stat.isSymbolicLink()) freed += stat.size
    }
    return freed
  })

/** The names that were given in `directory`, with what each stands for. A file that cannot be read holds none. */
export const aliases = (directory: string): Readonly<Record<string, string>> => {
  const text = textOf(join(directory, aliasFile))
  return text === undefined ? {} : Option.getOrElse(decodeAliases(text), () => ({}))
}

/** Gives a name; `undefined` takes it away. */
export const setAlias = (
  directory: string,
  name: string,
  target: string | undefined
): Effect.Effect<void, ModelStoreError> =>
  Effect.andThen(
    prepare(directory),
    attempt(`${join(directory, aliasFile)} cannot be written`, () => {
      const path = join(directory, aliasFile)
      const text = textOf(path)
      // What somebody else wrote there is not thrown away.
      if (text !== undefined && Option.isNone(decodeAliases(text))) throw new Error("it is not a list of names")
      const { [name]: _, ...others } = aliases(directory)
      writeJson(path, target === undefined ? others : { ...others, [name]: target })
    })
  )
