/** `writ codec render`: a conversation as the bytes a model is given, and nothing else. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { incremental } from "../engine/codecs/Incremental.ts"
import { flatten } from "../engine/Prompt.ts"
import { chooseCodec } from "./CodecChoice.ts"
import { inJson } from "./Ending.ts"
import { readMessages, readTools } from "./Inputs.ts"
import { jsonText } from "./Printable.ts"

export interface RenderFlags {
  readonly family: string | undefined
  readonly model: string | undefined
  readonly messages: string | undefined
  readonly tools: string | undefined
  readonly thinking: "on" | "off" | undefined
  readonly mode: "template" | "verbatim"
  readonly today: string | undefined
  readonly generationPrompt: boolean | undefined
  readonly json: boolean
}

export const render = (flags: RenderFlags) =>
  Effect.gen(function* () {
    const { codec } = yield* chooseCodec(flags)
    const messages = yield* readMessages(flags.messages)
    const tools = flags.tools === undefined ? [] : yield* readTools(flags.tools)
    const options = {
      tools,
      generationPrompt: flags.generationPrompt ?? messages.at(-1)?.role !== "assistant",
      ...(flags.thinking === undefined ? {} : { thinking: flags.thinking === "on" }),
      ...(flags.today === undefined ? {} : { today: flags.today })
    }
    const segments = flags.mode === "template" ? codec.render(messages, options) : incremental(codec, messages, options)
    const text = flatten(segments)
    if (flags.json) {
      const document = { codec: codec.id, mode: flags.mode, bytes: Buffer.byteLength(text), text, segments }
      return yield* Console.log(jsonText(document))
    }
    // Nothing may be added, not even a newline: the bytes are the answer.
    const { stdout } = yield* Stdio.Stdio
    return yield* Effect.orDie(Stream.run(Stream.make(text), stdout({ endOnDone: false })))
  }).pipe(inJson(flags.json))
