/** Which codec `--family` or `--model` means, and what a model file says about it. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Codec } from "../engine/codecs/Codec.ts"
import * as Families from "../engine/codecs/Families.ts"
import type { EngineError } from "../engine/EngineError.ts"
import * as GgufFile from "../engine/GgufFile.ts"
import { type UsageError, usage } from "./Ending.ts"
import { problemAt } from "./Places.ts"

export interface CodecFlags {
  readonly family: string | undefined
  readonly model?: string | undefined
}

export interface ChosenCodec {
  readonly codec: Codec
  /** What decided. */
  readonly reason: string
  readonly info?: GgufFile.GgufInfo
}

/** What a model file says about itself; a path that leads to no file is a mistake of the command line. `named`: as it was given. */
export const readModel = (named: string, path: string): Effect.Effect<GgufFile.GgufInfo, UsageError | EngineError> => {
  const problem = problemAt(path, "File")
  return problem === undefined ? GgufFile.read(path) : usage(`${named}: ${problem}`)
}

/** By family where one is named, else by the template of the model file. */
export const chooseCodec = Effect.fnUntraced(function* ({
  family,
  model
}: CodecFlags): Effect.fn.Return<ChosenCodec, UsageError | EngineError> {
  if (family === undefined && model === undefined)
    return yield* usage("name a codec with --family, or a file with --model")
  const info = model === undefined ? undefined : yield* readModel(`--model ${model}`, model)
  const about = info === undefined ? {} : { info }
  if (family !== undefined) {
    const found = Families.byId(family)
    return Result.isSuccess(found)
      ? { codec: found.success, reason: "named by --family", ...about }
      : yield* usage(`--family: ${found.failure.reason}`)
  }
  const chosen = Families.choose(info!)
  return Result.isSuccess(chosen)
    ? { ...chosen.success, ...about }
    : yield* usage(`--model: ${chosen.failure.reason.replace("--codec", "--family")}`)
})
