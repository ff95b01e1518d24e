/** `writ models verify`: reads models whole and compares them with their record. Loads no engine. */
import { basename } from "node:path"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { look } from "../actors/Directories.ts"
import * as ModelStore from "../actors/ModelStore.ts"
import * as GgufFile from "../engine/GgufFile.ts"
import { endWith, inJson, type UsageError, usage } from "./Ending.ts"
import { localPath, named } from "./ModelNames.ts"
import { directoryOf, type ModelsFlags } from "./ModelView.ts"
import { inline, jsonText, size } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface VerifyFlags extends ModelsFlags {
  readonly names: ReadonlyArray<string>
  readonly record: boolean
}

interface Verdict {
  readonly name: string
  readonly path: string
  /** `unrecorded`: sound as far as its structure goes, and there is no hash to compare with. */
  readonly state: "ok" | "bad" | "unrecorded" | "recorded"
  readonly problem: string | null
  readonly files: ReadonlyArray<ModelStore.FileRecord>
}

/** Structure, then content, of each file. */
const measure = Effect.fnUntraced(function* (model: ModelStore.StoredModel) {
  const files: Array<ModelStore.FileRecord> = []
  for (const path of model.files) {
    const { fileBytes } = yield* GgufFile.read(path)
    files.push({ name: basename(path), bytes: fileBytes, sha256: yield* GgufFile.sha256(path) })
  }
  return files
})

const differenceIn = (
  recorded: ReadonlyArray<ModelStore.FileRecord>,
  files: ReadonlyArray<ModelStore.FileRecord>
): string | null => {
  for (const { bytes, name, sha256 } of recorded) {
    const now = files.find((file) => file.name === name)
    if (now === undefined) return `its file ${name} is missing`
    if (now.bytes !== bytes) return `${name} has ${now.bytes} bytes, on record are ${bytes}`
    if (now.sha256 !== sha256) return `${name} has the SHA-256 ${now.sha256}, on record is ${sha256}`
  }
  return null
}

const verdictOf = Effect.fnUntraced(function* (
  model: ModelStore.StoredModel,
  record: boolean
): Effect.fn.Return<Verdict, ModelStore.ModelStoreError> {
  const about = { name: model.name, path: model.path }
  if (model.unfinished) return { ...about, state: "bad", problem: "not complete: pull it again", files: [] }
  const measured = yield* Effect.result(measure(model))
  if (Result.isFailure(measured)) return { ...about, state: "bad", problem: measured.failure.message, files: [] }
  const files = measured.success
  if (model.record !== undefined) {
    const problem = differenceIn(model.record.files, files)
    return { ...about, state: problem === null ? "ok" : "bad", problem, files }
  }
  const recordFile = ModelStore.recordPath(model.path)
  // Whoever damaged it may have changed the model: it is not taken for one without a record.
  if (look(recordFile)._tag !== "Nothing") {
    const problem = `its record ${recordFile} cannot be read: remove both and pull it again, or only the record and use --record`
    return { ...about, state: "bad", problem, files }
  }
  if (!record) return { ...about, state: "unrecorded", problem: null, files }
  const recorded_at = DateTime.formatIso(yield* DateTime.now)
  yield* ModelStore.record(model.path, { schema: "writ.model.v1", checksum: "computed", recorded_at, files })
  return { ...about, state: "recorded", problem: null, files }
})

const modelsFor = Effect.fnUntraced(function* (
  names: ReadonlyArray<string>,
  directory: string
): Effect.fn.Return<ReadonlyArray<ModelStore.StoredModel>, UsageError> {
  const all = ModelStore.list(directory)
  if (names.length === 0) return all
  const found: Array<ModelStore.StoredModel> = []
  for (const name of names) {
    const stored = all.find((model) => model.name === name)
    const path = stored?.path ?? localPath(yield* named(name, directory), directory)
    if (path === undefined) return yield* usage(`${name}: it is not here; take it in with writ models pull`)
    found.push(stored ?? all.find((model) => model.path === path) ?? ModelStore.fileAt(path))
  }
  return found
})

const line = ({ files, name, problem, state }: Verdict, { green, red, yellow }: Screen.Paint): string => {
  const bytes = size(files.reduce((sum, file) => sum + file.bytes, 0))
  const hash = files.length === 1 ? `, sha256 ${files[0]!.sha256}` : ""
  if (state === "bad") return `${red("BAD ")}  ${inline(name)}: ${inline(problem ?? "")}`
  if (state === "ok") return `${green("ok  ")}  ${inline(name)}, ${bytes}: as on record${hash}`
  return state === "recorded"
    ? `${green("ok  ")}  ${inline(name)}, ${bytes}: put on record${hash}`
    : `${yellow("note")}  ${inline(name)}, ${bytes}: whole, but nothing on record to compare with (--record makes a record)${hash}`
}

export const verifyModels = (flags: VerifyFlags) =>
  Effect.gen(function* () {
    const directory = yield* directoryOf(flags)
    const models = yield* modelsFor(flags.names, directory)
    const screen = yield* Screen.make(flags.color)
    const verdicts: Array<Verdict> = []
    for (const model of models) {
      if (!flags.json) screen.progress(`reading ${model.name}, ${size(model.bytes)} …`)
      const verdict = yield* verdictOf(model, flags.record)
      verdicts.push(verdict)
      if (!flags.json) screen.line(line(verdict, screen.paint))
    }
    const bad = verdicts.some(({ state }) => state === "bad")
    if (flags.json) yield* Console.log(jsonText({ directory, sound: !bad, models: verdicts }))
    else if (models.length === 0) screen.line(`there are no models in ${directory}`)
    yield* endWith(bad ? 3 : 0)
  }).pipe(inJson(flags.json))
