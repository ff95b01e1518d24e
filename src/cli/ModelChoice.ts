/** From `--model` to a file that has been looked at and a codec that fits, before anything native is loaded. */

import { basename } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type Pulled, type PullOptions, pull } from "../actors/ModelPull.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { tinyModel } from "../effects/Wiring.ts"
import * as Families from "../engine/codecs/Families.ts"
import type { EngineError } from "../engine/EngineError.ts"
import * as GgufFile from "../engine/GgufFile.ts"
import { shownUri } from "../engine/RemoteFile.ts"
import { type UsageError, usage } from "./Ending.ts"
import { sayCut } from "./EngineSettings.ts"
import { type NamedModel, named } from "./ModelNames.ts"
import { size } from "./Printable.ts"

export interface ChosenModel {
  readonly path: string
  readonly info: GgufFile.GgufInfo
  readonly codec: string
  readonly tiny: boolean
  /** For people: name, size, architecture, quantization. */
  readonly title: string
}

/** Is the codec that was asked for one there is? Costs nothing, so it comes first. */
export const checkCodec = (codec: string | undefined): Effect.Effect<void, UsageError> => {
  const found = codec === undefined ? undefined : Families.byId(codec)
  return found !== undefined && Result.isFailure(found) ? usage(`--codec: ${found.failure.reason}`) : Effect.void
}

/** Is there a model where `--model` says? */
export const checkModel = (model: string | undefined, modelsDir: string): Effect.Effect<void, UsageError> =>
  model === undefined ? Effect.void : Effect.asVoid(named(model, modelsDir))

const titleOf = (info: GgufFile.GgufInfo): string => {
  const facts = [size(info.fileBytes), info.architecture, info.quantization].filter((fact) => fact !== undefined)
  return `${basename(info.path).replace(/\.gguf$/i, "")} (${facts.join(", ")})`
}

const codecOf = (wanted: string | undefined, info: GgufFile.GgufInfo): Effect.Effect<string, UsageError> => {
  if (wanted !== undefined) {
    const found = Families.byId(wanted)
    return Result.isSuccess(found) ? Effect.succeed(found.success.id) : usage(found.failure.reason)
  }
  const chosen = Families.choose(info)
  return Result.isSuccess(chosen)
    ? Effect.succeed(chosen.success.codec.id)
    : usage(`${basename(info.path)}: ${chosen.failure.reason}`)
}

/** Takes a model in, with what stands in progress as a line of text. `""` at the end. */
export const pulled = (
  uri: string,
  options: Pick<PullOptions, "directory" | "name" | "sha256">,
  onProgress: (text: string) => void
): Effect.Effect<Pulled, EngineError> => {
  const shown = shownUri(uri)
  const share = (done: number, total: number) => (total > 0 ? `, ${Math.floor((100 * done) / total)}%` : "")
  return pull(uri, {
    ...options,
    hashes: RunDirectory.modelHashes,
    onProgress: (step, done, total) =>
      onProgress(
        step === "checking"
          ? `checking ${shown} …`
          : // The numbers first: an address can be longer than a line.
            `downloading ${size(done)}${total > 0 ? ` of ${size(total)}` : ""}${share(done, total)}: ${shown} …`
      )
  }).pipe(Effect.ensuring(Effect.sync(() => onProgress(""))))
}

const pathOf = (
  model: NamedModel,
  directory: string,
  onProgress: (text: string) => void
): Effect.Effect<string, EngineError> => {
  if (model._tag === "Tiny") return Effect.succeed(tinyModel)
  if (model._tag === "File") return Effect.succeed(model.path)
  return Effect.map(
    Effect.andThen(Effect.ignore(RunDirectory.prepareHome), pulled(model.uri, { directory }, onProgress)),
    (taken) => taken.model.path
  )
}

/** The file of a model that is named, downloaded if need be: where it is not for turns and needs no codec. */
export const locate = (
  { model, modelsDir }: { readonly model: string; readonly modelsDir: string },
  onProgress: (text: string) => void
): Effect.Effect<string, EngineError | UsageError> =>
  Effect.flatMap(named(model, modelsDir), (what) => pathOf(what, modelsDir, onProgress))

/** Finds, downloads if need be, and reads the header of the model. Without a name it is the one that ships. */
export const choose = Effect.fnUntraced(function* (
  { codec, model, modelsDir }: Pick<Settings, "model" | "codec" | "modelsDir">,
  onProgress: (text: string) => void
): Effect.fn.Return<ChosenModel, EngineError | UsageError> {
  const what: NamedModel = model === undefined ? { _tag: "Tiny" } : yield* named(model, modelsDir)
  const path = yield* pathOf(what, modelsDir, onProgress)
  const info = yield* GgufFile.read(path)
  return { path, info, codec: yield* codecOf(codec, info), tiny: what._tag === "Tiny", title: titleOf(info) }
})

/** The same for a model that is opened next: what it cannot have of the context that is asked for is said. */
export const chooseToOpen = (
  settings: Pick<Settings, "model" | "codec" | "modelsDir" | "context">,
  onProgress: (text: string) => void
): Effect.Effect<ChosenModel, EngineError | UsageError> =>
  Effect.tap(choose(settings, onProgress), ({ info }) =>
    sayCut(settings.context, info.contextTokens, `${basename(info.path)} was trained for no more`)
  )
