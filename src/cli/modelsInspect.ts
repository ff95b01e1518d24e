/** `writ models inspect`: what a model file says about itself, and which codec speaks its language and why. Loads no engine. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as ModelStore from "../actors/ModelStore.ts"
import { tinyModel } from "../effects/Wiring.ts"
import { type AgreementReport, agrees } from "../engine/codecs/Agreement.ts"
import * as Families from "../engine/codecs/Families.ts"
import * as GgufFile from "../engine/GgufFile.ts"
import { isUri } from "../engine/RemoteFile.ts"
import { readModel } from "./CodecChoice.ts"
import { compareWith } from "./codecCheck.ts"
import { inJson, usage } from "./Ending.ts"
import { isPath, localPath, named } from "./ModelNames.ts"
import { directoryOf, type ModelsFlags } from "./ModelView.ts"
import { block, inline, jsonText, size } from "./Printable.ts"
import { type Paint, paintFor } from "./Screen.ts"

export interface ModelFlags extends ModelsFlags {
  readonly file: string | undefined
}

interface Choice {
  readonly codec: string | null
  readonly reason: string
  readonly candidates: ReadonlyArray<string>
}

const choiceOf = (info: GgufFile.GgufInfo): Choice => {
  const chosen = Families.choose(info)
  return Result.isSuccess(chosen)
    ? { codec: chosen.success.codec.id, reason: chosen.success.reason, candidates: [] }
    : { codec: null, reason: chosen.failure.reason, candidates: chosen.failure.candidates }
}

/** What comparing the codec with the template gave, or why there was nothing to compare. */
type Compared = AgreementReport | { readonly problem: string } | undefined

const compared = (info: GgufFile.GgufInfo, { codec }: Choice): Effect.Effect<Compared> => {
  if (codec === null || info.template === undefined) return Effect.succeed(undefined)
  return Effect.catch(compareWith(Result.getOrThrow(Families.byId(codec)), info), ({ message }) =>
    Effect.succeed({ problem: message })
  )
}

const inWords = (report: Compared): string | undefined => {
  if (report === undefined) return undefined
  if ("problem" in report) return `not known: the template cannot be read (${report.problem})`
  const { compared: count, differences, equal, unread } = report
  if (agrees(report)) return `yes, ${count} renderings are equal to the byte`
  const first = differences[0] ?? unread[0]
  const where =
    differences[0] === undefined ? "" : `, first at byte ${differences[0].byte} of "${differences[0].conversation}"`
  return first === undefined
    ? "not known: the template refuses every conversation"
    : `no, ${equal} of ${count} renderings are equal${where}; see writ codec check --model FILE`
}

const excerptLines = 12
const excerptColumns = 110

const excerpt = (template: string): ReadonlyArray<string> => {
  const lines = block(template).split("\n")
  const shown = lines
    .slice(0, excerptLines)
    .map((line) => (line.length > excerptColumns ? `${line.slice(0, excerptColumns - 1)}…` : line))
  return lines.length > excerptLines ? [...shown, `… ${lines.length - excerptLines} more lines`] : shown
}

const human = (info: GgufFile.GgufInfo, choice: Choice, report: Compared, paint: Paint): string => {
  const field = (name: string, value: string | number | undefined) =>
    value === undefined ? [] : [`${paint.dim(name.padEnd(13))} ${inline(String(value))}`]
  const tokens = Object.entries(info.specialTokens).map(
    ([name, { id, text }]) => `${name} ${JSON.stringify(text)} (${id})`
  )
  return [
    ...field("file", info.path),
    ...field("name", info.name),
    ...field("size", `${size(info.fileBytes)}, ${info.tensorCount} tensors`),
    ...field("architecture", info.architecture),
    ...field("quantization", info.quantization),
    ...field("context", info.contextTokens === undefined ? undefined : `${info.contextTokens} tokens`),
    ...field(
      "tokenizer",
      info.tokenizer === undefined ? undefined : `${info.tokenizer}, ${info.vocabularySize ?? "?"} tokens`
    ),
    ...field("special", tokens.length === 0 ? undefined : tokens.join(", ")),
    ...field("header", `GGUF ${info.version}, ${size(info.headerBytes)}, sha256 ${info.headerHash}`),
    `${paint.dim("codec".padEnd(13))} ${choice.codec === null ? paint.red("none") : paint.green(choice.codec)}`,
    ...field("why", choice.reason),
    ...field("agrees", inWords(report)),
    ...field("template", info.template === undefined ? "none" : `${info.template.length} characters`),
    ...(info.template === undefined ? [] : excerpt(info.template).map((line) => `  ${paint.dim(line)}`))
  ].join("\n")
}

/** A name of the list, an alias, a URI that was downloaded, or a file. */
const infoOf = Effect.fnUntraced(function* (flags: ModelFlags) {
  const { file } = flags
  if (file === undefined) return yield* GgufFile.read(tinyModel)
  const directory = yield* directoryOf(flags)
  if (isPath(file) && !isUri(file) && ModelStore.find(directory, file) === undefined)
    return yield* readModel(file, file)
  const path = localPath(yield* named(file, directory), directory)
  return yield* path === undefined
    ? usage(`${file}: it is not here; take it in with writ models pull`)
    : GgufFile.read(path)
})

export const inspectModel = (flags: ModelFlags) =>
  Effect.gen(function* () {
    const info = yield* infoOf(flags)
    const choice = choiceOf(info)
    const report = yield* compared(info, choice)
    if (!flags.json) return yield* Console.log(human(info, choice, report, yield* paintFor(flags.color)))
    const document = {
      file: info.path,
      name: info.name,
      size_bytes: info.fileBytes,
      tensors: info.tensorCount,
      architecture: info.architecture ?? null,
      quantization: info.quantization ?? null,
      context_tokens: info.contextTokens ?? null,
      tokenizer: info.tokenizer ?? null,
      vocabulary_size: info.vocabularySize ?? null,
      special_tokens: info.specialTokens,
      gguf_version: info.version,
      header_bytes: info.headerBytes,
      header_sha256: info.headerHash,
      codec: choice,
      agreement: report === undefined || "problem" in report ? (report ?? null) : { agrees: agrees(report), ...report },
      template: info.template ?? null
    }
    return yield* Console.log(jsonText(document))
  }).pipe(inJson(flags.json))
