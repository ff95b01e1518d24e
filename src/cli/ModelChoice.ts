/** From `--model` to a file that has been looked at and a codec that fits, before anything native is loaded. */

import { basename } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Settings } from "../effects/SettingFields.ts"
import { tinyModel } from "../effects/Wiring.ts"
import * as Families from "../engine/codecs/Families.ts"
import type { EngineError } from "../engine/EngineError.ts"
import * as GgufFile from "../engine/GgufFile.ts"
import { download, isUri } from "../engine/LlamaDownload.ts"
import { type UsageError, usage } from "./Ending.ts"
import { problemAt } from "./Places.ts"
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

/** Is there a file where `--model` says? */
export const checkModel = (model: string | undefined): Effect.Effect<void, UsageError> => {
  if (model === undefined || isUri(model)) return Effect.void
  const problem = problemAt(model, "File")
  if (problem === undefined) return Effect.void
  return usage(`--model ${model}: ${problem}. Pass a GGUF file, or hf:USER/REPO:QUANT to download one.`)
}

const titleOf = (info: GgufFile.GgufInfo): string => {
  const facts = [size(info.fileBytes), info.architecture, info.quantization].filter((fact) => fact !== undefined)
  return `${basename(info.path).replace(/\.gguf$/i, "")} (${facts.join(", ")})`
}

const codecOf = (wanted: string | undefined, info: GgufFile.GgufInfo): Effect.Effect<string, UsageError> => {
  if (wanted !== undefined) {
    const found = Families.byId(wanted)
    return Result.isSuccess(found) ? Effect.succeed(found.success.id) : usage(found.failure.reason)
  }
  const chosen = Families.choose({
    name: info.name,
    ...(info.template === undefined ? {} : { template: info.template }),
    ...(info.architecture === undefined ? {} : { architecture: info.architecture })
  })
  return Result.isSuccess(chosen)
    ? Effect.succeed(chosen.success.codec.id)
    : usage(`${basename(info.path)}: ${chosen.failure.reason}`)
}

/** Finds, downloads if need be, and reads the header of the model. */
export const choose = Effect.fnUntraced(function* (
  { codec, model, modelsDir }: Pick<Settings, "model" | "codec" | "modelsDir">,
  onProgress: (text: string) => void
): Effect.fn.Return<ChosenModel, EngineError | UsageError> {
  const progress = (done: number, total: number) =>
    onProgress(`downloading ${model}: ${size(done)}${total > 0 ? ` of ${size(total)}` : ""} …`)
  const path =
    model === undefined
      ? tinyModel
      : isUri(model)
        ? yield* download(model, { directory: modelsDir, onProgress: progress })
        : model
  const info = yield* GgufFile.read(path)
  return { path, info, codec: yield* codecOf(codec, info), tiny: model === undefined, title: titleOf(info) }
})
