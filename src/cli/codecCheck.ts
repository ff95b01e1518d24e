/** `writ codec check`: does the codec write what the model file's own template writes, and read what it writes? */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { tinyModel } from "../effects/Wiring.ts"
import { type AgreementReport, agreement, agrees } from "../engine/codecs/Agreement.ts"
import type { Codec } from "../engine/codecs/Codec.ts"
import type { TemplateError } from "../engine/codecs/Template.ts"
import type { GgufInfo } from "../engine/GgufFile.ts"
import { chooseCodec } from "./CodecChoice.ts"
import { endWith, inJson, usage } from "./Ending.ts"
import { cut, inline, jsonText } from "./Printable.ts"
import { type Paint, paintFor } from "./Screen.ts"

export interface CheckFlags {
  readonly family: string | undefined
  readonly model: string | undefined
  readonly json: boolean
  readonly color: boolean | undefined
}

/** Compares the codec with the template in the file. */
export const compareWith = (
  codec: Codec,
  { specialTokens, template }: GgufInfo
): Effect.Effect<AgreementReport, TemplateError> => {
  const [bos, eos] = [specialTokens["bos"]?.text, specialTokens["eos"]?.text]
  return agreement(codec, template ?? "", {
    ...(bos === undefined ? {} : { bos }),
    ...(eos === undefined ? {} : { eos })
  })
}

const shown = 5

const human = (codec: string, report: AgreementReport, paint: Paint): string => {
  const { compared, differences, equal, refused, unread } = report
  const verdict = agrees(report)
    ? paint.green(`${codec} and the file's template agree`)
    : paint.red(`${codec} and the file's template do not agree`)
  const more = (count: number) => (count > shown ? [`  … and ${count - shown} more`] : [])
  return [
    verdict,
    `  ${equal} of ${compared} renderings are equal to the byte${refused.length === 0 ? "" : `; the template refuses ${refused.length}`}`,
    ...differences
      .slice(0, shown)
      .flatMap(({ byte, codec: own, conversation, template }) => [
        `  ${conversation}: differs at byte ${byte}`,
        `    codec     ${cut(inline(own), 90)}`,
        `    template  ${cut(inline(template), 90)}`
      ]),
    ...more(differences.length),
    ...unread.slice(0, shown).map(({ call, outcome }) => `  not read back (${outcome}): ${cut(inline(call), 90)}`),
    ...[...new Set(refused.map(({ message }) => message))]
      .slice(0, shown)
      .map((message) => `  refused: ${cut(inline(message), 90)}`)
  ].join("\n")
}

export const check = (flags: CheckFlags) =>
  Effect.gen(function* () {
    const model = flags.model ?? tinyModel
    const { codec, info, reason } = yield* chooseCodec({ family: flags.family, model })
    if (info?.template === undefined)
      return yield* usage(`--model ${model}: the file has no chat template to compare with`)
    const report = yield* Effect.catch(compareWith(codec, info), (error) =>
      usage(`--model ${model}: its chat template cannot be read: ${error.message}`)
    )
    if (flags.json) {
      const document = { model, codec: codec.id, reason, agrees: agrees(report), ...report }
      yield* Console.log(jsonText(document))
    } else yield* Console.log(human(codec.id, report, yield* paintFor(flags.color)))
    return yield* endWith(agrees(report) ? 0 : 3)
  }).pipe(inJson(flags.json))
