/** `writ models list`: the models that are here with what their headers say, and the names they were given. Loads no engine. */
import { resolve } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as ModelStore from "../actors/ModelStore.ts"
import { load } from "../effects/Settings.ts"
import { tinyModel } from "../effects/Wiring.ts"
import { shownUri } from "../engine/RemoteFile.ts"
import { inJson } from "./Ending.ts"
import { chosenBy, localPath, named, tinyName } from "./ModelNames.ts"
import { type ModelRow, type ModelsFlags, rowOf, settingsIn, shownAliases, table } from "./ModelView.ts"
import { inline, jsonText, size } from "./Printable.ts"
import { type Paint, paintFor } from "./Screen.ts"

interface Listed extends ModelRow {
  readonly ships: boolean
  readonly isDefault: boolean
  readonly aliases: ReadonlyArray<string>
  readonly uri: string | null
  readonly sha256: string | null
  readonly checksum: string | null
}

const head = ["", "NAME", "SIZE", "CODEC", "QUANT", "CONTEXT", "PATH"]

const cells = (row: Listed): ReadonlyArray<string> => [
  row.isDefault ? "*" : "",
  inline([row.name, ...row.aliases].join(", ")),
  size(row.bytes),
  row.codec ?? (row.architecture === null ? "?" : `none (${inline(row.architecture)})`),
  inline(row.quantization ?? "?"),
  row.contextTokens === null ? "?" : String(row.contextTokens),
  `${inline(row.path)}${row.ships ? " (ships with writ)" : ""}`
]

const human = (rows: ReadonlyArray<Listed>, choice: string, others: ReadonlyArray<string>, paint: Paint): string =>
  [
    ...table(head, rows.map(cells), (text, row) =>
      row < 0 ? paint.dim(text) : rows[row]!.problem === null ? text : paint.yellow(text)
    ),
    ...rows.flatMap(({ name, problem }) =>
      problem === null ? [] : [paint.yellow(`${inline(name)}: ${inline(problem)}`)]
    ),
    ...(others.length === 0 ? [] : ["", ...others]),
    "",
    paint.dim(choice)
  ].join("\n")

const why = {
  setting: "* is named by the setting model",
  alias: "* is what runs have when none is named: the alias default",
  "only one": "* is what runs have when none is named: the only one that was taken in",
  none: "* is what runs have when none is named: writ models pull takes in a real one"
} as const

/** Where a name leads, if it leads to a file that is here. */
const placeOf = (name: string, directory: string): Effect.Effect<string | undefined> =>
  Effect.map(Effect.option(named(name, directory)), (found) => {
    const path = Option.isNone(found) ? undefined : localPath(found.value, directory)
    return path === undefined ? undefined : resolve(path)
  })

/** The models of the directory, and behind them the one that ships. */
const modelsIn = (directory: string): ReadonlyArray<ModelStore.StoredModel> => [
  ...ModelStore.list(directory),
  { name: tinyName, path: tinyModel, files: [tinyModel], bytes: ModelStore.bytesOf(tinyModel), unfinished: false }
]

const documentOf = ({ architecture, bytes, contextTokens, isDefault, ...row }: Listed) => ({
  name: row.name,
  aliases: row.aliases,
  default: isDefault,
  ships: row.ships,
  path: row.path,
  size_bytes: bytes,
  architecture,
  codec: row.codec,
  quantization: row.quantization,
  context_tokens: contextTokens,
  uri: row.uri,
  sha256: row.sha256,
  checksum: row.checksum,
  problem: row.problem
})

const rowsOf = Effect.fnUntraced(function* (
  directory: string,
  aliases: Readonly<Record<string, string>>,
  defaultPath: string | undefined
) {
  const places: Array<readonly [string, string | undefined]> = []
  for (const name of Object.keys(aliases)) places.push([name, yield* placeOf(name, directory)])
  return yield* Effect.forEach(modelsIn(directory), (model) =>
    Effect.map(rowOf(model), (row): Listed => {
      const path = resolve(row.path)
      const { checksum, files, uri } = model.record ?? {}
      return {
        ...row,
        ships: row.path === tinyModel,
        isDefault: path === defaultPath && !model.unfinished,
        aliases: places.filter(([, place]) => place === path).map(([name]) => name),
        uri: uri === undefined ? null : shownUri(uri),
        sha256: files?.length === 1 ? files[0]!.sha256 : null,
        checksum: checksum ?? null
      }
    })
  )
})

export const listModels = (flags: ModelsFlags) =>
  Effect.gen(function* () {
    const { settings } = yield* load(settingsIn(flags))
    const { modelsDir } = settings
    const aliases = ModelStore.aliases(modelsDir)
    const choice = yield* Effect.result(chosenBy(settings))
    const chosen = Result.isSuccess(choice) ? (choice.success.model ?? tinyName) : null
    const rows = yield* rowsOf(modelsDir, aliases, chosen === null ? undefined : yield* placeOf(chosen, modelsDir))
    const shown = shownAliases(aliases)
    if (flags.json) {
      const standard = chosen === null ? null : shownUri(chosen)
      const document = { directory: modelsDir, default: standard, models: rows.map(documentOf), aliases: shown }
      return yield* Console.log(jsonText(document))
    }
    const here = rows.flatMap((row) => row.aliases)
    const elsewhere = Object.entries(shown)
      .filter(([name]) => !here.includes(name))
      .map(([name, target]) => `${inline(name)} stands for ${inline(target)}, which is not here`)
    const said = Result.isSuccess(choice) ? why[choice.success.because] : choice.failure.message
    return yield* Console.log(human(rows, said, elsewhere, yield* paintFor(flags.color)))
  }).pipe(inJson(flags.json))
