/** What is known of a model in the directory, from its name, its record and its header; and a table of several. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { StoredModel } from "../actors/ModelStore.ts"
import type { Raw } from "../effects/SettingForms.ts"
import { load, type RawSettings } from "../effects/Settings.ts"
import * as Families from "../engine/codecs/Families.ts"
import * as GgufFile from "../engine/GgufFile.ts"
import { shownUri } from "../engine/RemoteFile.ts"
import { cut } from "./Printable.ts"

/** What all commands about models are told. */
export interface ModelsFlags {
  readonly modelsDir?: Raw | undefined
  readonly json: boolean
  readonly color: boolean | undefined
}

/** The settings among the flags. */
export const settingsIn = ({ modelsDir }: ModelsFlags): RawSettings => (modelsDir === undefined ? {} : { modelsDir })

/** The directory of models, from flags, environment and file. */
export const directoryOf = (flags: ModelsFlags) =>
  Effect.map(load(settingsIn(flags)), ({ settings }) => settings.modelsDir)

/** The names that were given, with what each stands for as far as that is shown: an address may hold a key. */
export const shownAliases = (aliases: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(aliases).map(([name, target]) => [name, shownUri(target)]))

export interface ModelRow {
  readonly name: string
  readonly path: string
  readonly bytes: number
  readonly architecture: string | null
  readonly codec: string | null
  readonly quantization: string | null
  readonly contextTokens: number | null
  /** Why it cannot be used, or is not complete. */
  readonly problem: string | null
}

const familyOf = (info: GgufFile.GgufInfo): string | null => {
  const chosen = Families.choose(info)
  return Result.isSuccess(chosen) ? chosen.success.codec.id : null
}

const unread = { architecture: null, codec: null, quantization: null, contextTokens: null }

/** Reads the header. What is wrong with it is part of the row. */
export const rowOf = ({ bytes, name, path, unfinished }: StoredModel): Effect.Effect<ModelRow> => {
  const about = { name, path, bytes }
  if (unfinished) return Effect.succeed({ ...about, ...unread, problem: "not complete: pull it again" })
  return Effect.map(Effect.result(GgufFile.read(path)), (read): ModelRow => {
    if (Result.isFailure(read)) return { ...about, ...unread, problem: read.failure.message }
    const info = read.success
    return {
      ...about,
      architecture: info.architecture ?? null,
      codec: familyOf(info),
      quantization: info.quantization ?? null,
      contextTokens: info.contextTokens ?? null,
      problem: null
    }
  })
}

/** Lines of a table; a column is as wide as its widest text. `style` paints a text of a row. */
export const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  style: (text: string, row: number, column: number) => string
): ReadonlyArray<string> => {
  const all = [head, ...rows].map((row) => row.map((text, at) => (at === row.length - 1 ? text : cut(text, 60))))
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]!.length)))
  return all.map((row, index) =>
    row.map((text, at) => style(at === row.length - 1 ? text : text.padEnd(widths[at]!), index - 1, at)).join("  ")
  )
}
