/** `writ codec parse`: what a turn of a model comes to, as JSON. Ends with 3 where it cannot be used. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { Action } from "../engine/codecs/Codec.ts"
import type { ToolSpec } from "../tools/ToolCall.ts"
import { chooseCodec } from "./CodecChoice.ts"
import { endWith, inJson, usage } from "./Ending.ts"
import { readText, readTools } from "./Inputs.ts"
import { jsonText } from "./Printable.ts"

export interface ParseFlags {
  readonly file: string | undefined
  readonly family: string | undefined
  readonly model: string | undefined
  readonly tools: string | undefined
  readonly chunk: number | undefined
  readonly stop: "eos" | "length"
  readonly reasoningOpen: boolean
  readonly json: boolean
}

/** Without tools nothing is a call; where none are given, calls are to be seen all the same. */
const anyTool: ToolSpec = { name: "a_tool", description: "", parameters: { type: "object" } }

const documentOf = (action: Action) => {
  const reasoning = action.reasoning === undefined ? {} : { reasoning: action.reasoning }
  if (action._tag === "FinalText") return { action: "final_text", text: action.text, ...reasoning }
  const list = action._tag === "ToolCalls" ? action.calls : action.partial
  const calls = list.map(({ arguments: args, id, name }) => ({
    name,
    arguments: args,
    ...(id === undefined ? {} : { id })
  }))
  if (action._tag === "ToolCalls") {
    const { textAfter, textBefore } = action
    const text = textBefore === "" ? {} : { text: textBefore }
    return {
      action: "tool_calls",
      ...text,
      ...(textAfter === "" ? {} : { text_after: textAfter }),
      ...reasoning,
      calls
    }
  }
  const { code, excerpt, ordinal, position, reason } = action
  const error = { code, reason, position, ...(ordinal === undefined ? {} : { ordinal }), excerpt }
  return { action: "malformed", ...reasoning, ...(calls.length === 0 ? {} : { calls }), errors: [error] }
}

export const parseTurn = (flags: ParseFlags) =>
  Effect.gen(function* () {
    const { codec } = yield* chooseCodec(flags)
    const { chunk } = flags
    if (chunk !== undefined && (!Number.isInteger(chunk) || chunk < 1))
      return yield* usage("--chunk: expected a whole number of at least 1")
    const tools = flags.tools === undefined ? [anyTool] : yield* readTools(flags.tools)
    const text = yield* readText("the turn", flags.file)
    const parser = codec.parser({ tools, reasoningOpen: flags.reasoningOpen })
    const size = chunk ?? Math.max(1, text.length)
    for (let at = 0; at < text.length; at += size) parser.push(text.slice(at, at + size))
    const { action } = parser.end(flags.stop === "length" ? "length" : "eog")
    yield* Console.log(jsonText(documentOf(action), flags.json ? 0 : 2))
    return yield* endWith(action._tag === "Malformed" ? 3 : 0)
  }).pipe(inJson(flags.json))
