/** `writ codec list`: the codecs there are, and what each can do. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { byId, ids } from "../engine/codecs/Families.ts"
import { jsonText } from "./Printable.ts"
import { paintFor } from "./Screen.ts"

export interface ListFlags {
  readonly json: boolean
  readonly color: boolean | undefined
}

export const list = (flags: ListFlags) =>
  Effect.gen(function* () {
    const codecs = ids.map((id) => {
      const codec = Result.getOrThrow(byId(id))
      const reasoning = codec.reasoning !== undefined || codec.thinking !== undefined
      return { id, reasoning, constrained: codec.grammar !== undefined }
    })
    if (flags.json) return yield* Console.log(jsonText(codecs))
    const paint = yield* paintFor(flags.color)
    const lines = codecs.map(({ constrained, id, reasoning }) => {
      const can = [...(reasoning ? ["reasoning"] : []), ...(constrained ? ["constrained calls"] : [])]
      return `${id.padEnd(24)}${paint.dim(can.join(", "))}`.trimEnd()
    })
    return yield* Console.log(lines.join("\n"))
  })
