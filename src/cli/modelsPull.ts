/** `writ models pull`: downloads a model, checks it and puts it on record. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as ModelStore from "../actors/ModelStore.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { isUri, shownUri, uriProblem } from "../engine/RemoteFile.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import { pulled } from "./ModelChoice.ts"
import { isName, tinyName } from "./ModelNames.ts"
import { directoryOf, type ModelsFlags, rowOf } from "./ModelView.ts"
import { inline, jsonText, size } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface PullFlags extends ModelsFlags {
  readonly uri: string
  readonly name: string | undefined
  readonly sha256: string | undefined
}

const checksums = {
  given: "as you said",
  server: "as the server states",
  computed: "computed here; the server states none"
} as const

const check = ({ name, sha256, uri }: PullFlags) => {
  if (!isUri(uri)) return usage(`${uri}: expected hf:USER/REPO:QUANT, hf:USER/REPO/FILE.gguf or https://…`)
  const malformed = uriProblem(uri)
  if (malformed !== undefined) return usage(`${shownUri(uri)}: ${malformed}`)
  if (name !== undefined && !isName(name)) return usage("--name: expected a name of letters, digits and . _ : + -")
  return sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256)
    ? usage("--sha256: expected 64 hexadecimal digits")
    : Effect.void
}

/** Does `--model` with this name mean something else than the model of the name? */
const isTaken = (name: string, directory: string): boolean =>
  name === tinyName || Object.hasOwn(ModelStore.aliases(directory), name)

const checkFree = (name: string | undefined, directory: string): Effect.Effect<void, UsageError> =>
  name !== undefined && isTaken(name.replace(/\.gguf$/i, ""), directory)
    ? usage(
        `--name: ${name} stands for another model already; choose another name, or writ models alias ${name} --remove`
      )
    : Effect.void

export const pullModel = (flags: PullFlags) =>
  Effect.gen(function* () {
    yield* check(flags)
    const directory = yield* directoryOf(flags)
    yield* checkFree(flags.name, directory)
    yield* Effect.ignore(RunDirectory.prepareHome)
    const screen = yield* Screen.make(flags.color)
    const { had, model, record } = yield* pulled(
      flags.uri,
      {
        directory,
        ...(flags.name === undefined ? {} : { name: flags.name }),
        ...(flags.sha256 === undefined ? {} : { sha256: flags.sha256.toLowerCase() })
      },
      flags.json ? () => {} : screen.progress
    )
    const { codec, contextTokens, quantization } = yield* rowOf(model)
    const { checksum, files } = record
    if (flags.json) {
      const document = {
        name: model.name,
        path: model.path,
        uri: shownUri(flags.uri),
        had,
        size_bytes: model.bytes,
        checksum,
        files,
        codec,
        quantization,
        context_tokens: contextTokens
      }
      return yield* Console.log(jsonText(document))
    }
    const { dim, green, yellow } = screen.paint
    screen.line(
      `${green(had ? "is here" : "taken in")}  ${inline(model.name)}, ${size(model.bytes)}, ${inline(model.path)}`
    )
    for (const { name, sha256 } of files) {
      screen.line(dim(`sha256    ${sha256}${files.length > 1 ? ` ${inline(name)}` : ""} (${checksums[checksum]})`))
    }
    const use = isTaken(model.name, directory) ? `${model.name}.gguf` : model.name
    screen.line(
      codec === null
        ? yellow(`no codec fits its template: writ models inspect ${use} says why`)
        : dim(`codec     ${codec}; use it with --model ${use}`)
    )
  }).pipe(inJson(flags.json))
