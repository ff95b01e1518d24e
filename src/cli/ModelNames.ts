/**
 * What `--model` names: the model that ships, a URI, a file, a name that was given (`writ models alias`), a model of the
 * directory. And which model it is where nobody names one. Looks at names only.
 */
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import * as ModelStore from "../actors/ModelStore.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { tinyModel } from "../effects/Wiring.ts"
import { isUri, shownUri, uriProblem } from "../engine/RemoteFile.ts"
import { nearest } from "../tools/Nearest.ts"
import { type UsageError, usage } from "./Ending.ts"
import { problemAt } from "./Places.ts"

export type NamedModel =
  | { readonly _tag: "Tiny" }
  | { readonly _tag: "Uri"; readonly uri: string }
  | { readonly _tag: "File"; readonly path: string }

/** The name of the model that ships. Its file's name means it too. */
export const tinyName = "tiny"
/** The alias that says which model is meant where none is named. */
export const defaultName = "default"

const tinyFile = basename(tinyModel, ".gguf")

/** Is it written as a path, so that it cannot be a name? */
export const isPath = (text: string): boolean => /[/\\]/.test(text) || /\.gguf$/i.test(text)

/** May this be a name that somebody gives? */
export const isName = (text: string): boolean =>
  /^[A-Za-z0-9][\w.:+-]{0,99}$/.test(text) && !isPath(text) && !isUri(text)

const plain = (model: string, directory: string): NamedModel | undefined => {
  if (isUri(model)) return { _tag: "Uri", uri: model }
  if (model === tinyName || model === tinyFile) return { _tag: "Tiny" }
  if (problemAt(model, "File") === undefined) return { _tag: "File", path: model }
  const stored = ModelStore.find(directory, model)
  return stored === undefined ? undefined : { _tag: "File", path: stored.path }
}

const unknown = (model: string, directory: string, by: string): Effect.Effect<never, UsageError> => {
  const names = ModelStore.list(directory).map(({ name }) => name)
  const near = isPath(model) ? undefined : nearest(model, [...names, ...Object.keys(ModelStore.aliases(directory))])
  const hint = near === undefined ? "" : ` Did you mean ${near}?`
  return usage(
    `${by}${model}: ${problemAt(model, "File")}.${hint} Pass a GGUF file, a name from writ models list, or hf:USER/REPO:QUANT to download one.`
  )
}

/**
 * What a name means. An alias is looked up first, unless the text is a path: what lies in a directory does not change it.
 * `by`: what stands before the name in messages.
 */
export const named = (model: string, directory: string, by = "--model "): Effect.Effect<NamedModel, UsageError> =>
  Effect.suspend(() => {
    const malformed = isUri(model) ? uriProblem(model) : undefined
    if (malformed !== undefined) return usage(`${by}${shownUri(model)}: ${malformed}`)
    const given = isPath(model) ? undefined : ModelStore.aliases(directory)[model]
    if (given === undefined) {
      const found = plain(model, directory)
      return found === undefined ? unknown(model, directory, by) : Effect.succeed(found)
    }
    const found = plain(given, directory)
    return found === undefined
      ? usage(
          `${by}${model}: that stands for ${given}, which is not there any more. Name another with writ models alias ${model} TARGET.`
        )
      : Effect.succeed(found)
  })

/** The model of the directory whose file has this name, for a run that goes on; undefined is the one that ships. */
export const sameFile = (fileName: string, directory: string): string | undefined =>
  ModelStore.list(directory).find(({ path, unfinished }) => !unfinished && basename(path) === fileName)?.path

export interface Default {
  /** As `--model` would say it; undefined is the model that ships. */
  readonly model: string | undefined
  /** Why this one. */
  readonly because: "setting" | "alias" | "only one" | "none"
}

/**
 * Which model a run has: the one that the settings name, the alias `default`, the only one in the directory, the one that
 * ships. Several without a choice are a question that the user has to answer.
 */
export const chosenBy = ({
  model,
  modelsDir
}: Pick<Settings, "model" | "modelsDir">): Effect.Effect<Default, UsageError> =>
  Effect.suspend(() => {
    if (model !== undefined) return Effect.succeed<Default>({ model, because: "setting" })
    if (ModelStore.aliases(modelsDir)[defaultName] !== undefined) {
      return Effect.succeed<Default>({ model: defaultName, because: "alias" })
    }
    const names = ModelStore.list(modelsDir)
      .filter(({ unfinished }) => !unfinished)
      .map(({ name }) => name)
    if (names.length > 1) {
      return usage(
        `there are ${names.length} models in ${modelsDir} (${names.join(", ")}), and none is named. Name one with --model NAME, ` +
          `or choose for good: writ models alias ${defaultName} ${names[0]}. The one that ships is --model ${tinyName}.`
      )
    }
    return Effect.succeed<Default>(
      names[0] === undefined ? { model: undefined, because: "none" } : { model: names[0], because: "only one" }
    )
  })

/** The path of a model that is on this machine; a URI only if it was downloaded. */
export const localPath = (model: NamedModel, directory: string): string | undefined => {
  if (model._tag === "Tiny") return tinyModel
  return model._tag === "File" ? model.path : ModelStore.findByUri(directory, model.uri)?.path
}
