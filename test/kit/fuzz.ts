/** Turns of a family, broken at random and read in pieces of random size. Deterministic by its seed. */
import type { Codec } from "../../src/engine/codecs/Codec.ts"
import type { EndReason } from "../../src/engine/Generation.ts"
import { flatten } from "../../src/engine/Prompt.ts"
import type { JsonObject } from "../../src/tools/JsonText.ts"
import { parsePieces, tool } from "./codecs.ts"
import { type Random, seeded } from "./gbnf.ts"
import { wireOf } from "./wires.ts"

const tools = [
  tool("calc", { type: "object", properties: { a: { type: "string" }, n: { type: "array" }, x: { type: "number" } } }),
  tool("read")
]

const values: ReadonlyArray<JsonObject> = [
  {},
  { a: "b", n: [1, { k: null }], x: -0.5 },
  { a: 'quo"ted \\ {braces} [x] </tool_call> <|im_end|>\nlines', x: 1e-7 },
  { a: "é 日本 🇯🇵 \u2028", n: [[[]], {}, true] }
]

const marks =
  '<tool_call>|</tool_call>|<tool_response>|<think>|</think>|<function=calc>\n|<parameter=a>\n|\n</parameter>\n|</function>|<|im_end|>|<|im_start|>|<|python_tag|>|<|eot_id|>|[TOOL_CALLS]|[ARGS]|[CALL_ID]|[THINK]|</s>|<|channel|>final|<|message|>|<|start|>assistant|<|call|>| to=functions.calc|<｜tool▁calls▁begin｜>|<｜tool▁call▁begin｜>|<｜tool▁sep｜>|<｜tool▁call▁end｜>|```json\n|```\n|<|tool_call>|<tool_call|>|<|"|>|<|channel>|<escape>|<start_function_call>|CALL([|]) WITH |{"name": "calc", |"arguments": {}}|"type": "tool_call"|{"type": "tool_result", |RESULT([|[TOOL_RESULTS]|<|start_header_id|>ipython|`|```|{"name": "ca|{|}|[|]|"|\\|\\u|\\ud800|\n| |,|:|-|0|1e999|NaN|\u0000|\ufffd|\ud800'.split(
    /(?<!<)\|(?![>"])/
  )

/** What turns are made of before they are broken. */
const parts = (codec: Codec): ReadonlyArray<string> => [
  ...values.flatMap((args) => {
    const call = { name: "calc", arguments: args, id: "abcdefghi" }
    return [
      flatten(codec.written({ role: "assistant", content: "", calls: [call] }, { tools, thinking: false })),
      flatten(codec.written({ role: "assistant", content: "Prose. ", calls: [call, call] }, { tools, thinking: false }))
    ]
  }),
  flatten(codec.written({ role: "assistant", content: "An answer.", reasoning: "First.\nThen." }, { tools })),
  "Plain text, `code` and a list:\n- a\n- b\n",
  "```\nblock\n```\n"
]

const pick = <A>(list: ReadonlyArray<A>, random: Random): A => list[Math.floor(random() * list.length)]!

const mutate = (text: string, whole: ReadonlyArray<string>, random: Random): string => {
  const at = Math.floor(random() * (text.length + 1))
  const end = Math.min(text.length, at + Math.floor(random() * 40))
  switch (Math.floor(random() * 7)) {
    case 0:
      return text.slice(0, at) + text.slice(end)
    case 1:
      return text.slice(0, at) + pick(marks, random) + text.slice(at)
    case 2:
      return text.slice(0, end) + text.slice(at, end) + text.slice(end)
    case 3:
      return text.slice(0, at)
    case 4:
      return text.slice(0, at) + String.fromCharCode(Math.floor(random() * 0x300)) + text.slice(at + 1)
    case 5:
      return text.slice(0, at) + pick(whole, random) + text.slice(at)
    default:
      return text + pick(whole, random)
  }
}

const cut = (text: string, random: Random): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  const most = random() < 0.2 ? 1 : 1 + Math.floor(random() * 60)
  for (let at = 0; at < text.length; ) {
    const size = 1 + Math.floor(random() * most)
    pieces.push(text.slice(at, at + size))
    at += size
  }
  return pieces
}

/** What no answer may hold: what begins a call, where that is a mark, and what begins another turn. */
const forbidden = ({ id }: Codec): ReadonlyArray<string> => {
  const { openers, turn } = wireOf(id)
  const speaker = /^(?:<[^>]*>|\[[A-Z]+\])/.exec(turn)![0]
  return [...openers.filter((opener) => !opener.startsWith("{")), speaker]
}

/** Reads so many bytes of broken turns; throws where an outcome depends on the pieces or an answer holds a mark. */
export const fuzz = (codec: Codec, options: { readonly bytes: number; readonly seed: number }) => {
  const random = seeded(options.seed + codec.id.length * 7919)
  const whole = parts(codec)
  const marksOfCodec = forbidden(codec)
  const outcomes: Record<string, number> = {}
  let [read, turns] = [0, 0]
  while (read < options.bytes) {
    let text = pick(whole, random)
    for (let count = Math.floor(random() * 6); count >= 0; count--) text = mutate(text, whole, random)
    // Now and then a turn is long: what costs more than it should shows there.
    if (random() < 0.002) text = text.repeat(Math.ceil(50_000 / Math.max(1, text.length)))
    const reason = pick<EndReason>(["eog", "eog", "length", "stop"], random)
    const given = {
      tools: random() < 0.05 ? [] : tools,
      reasoningOpen: random() < 0.1,
      thinkCalls: random() < 0.1 ? ("implicit_close" as const) : ("reject" as const)
    }
    const { action } = parsePieces(codec, cut(text, random), given, reason)
    if (turns % 16 === 0) {
      const again = parsePieces(codec, [text], given, reason).action
      if (JSON.stringify(again) !== JSON.stringify(action))
        throw new Error(`${codec.id}: depends on the pieces: ${JSON.stringify(text)}`)
    }
    const leak =
      action._tag === "FinalText" && given.tools.length > 0 && marksOfCodec.find((mark) => action.text.includes(mark))
    if (typeof leak === "string") throw new Error(`${codec.id}: an answer holds ${leak}: ${JSON.stringify(text)}`)
    const name = action._tag === "Malformed" ? action.code : action._tag
    outcomes[name] = (outcomes[name] ?? 0) + 1
    read += Buffer.byteLength(text)
    turns += 1
  }
  return { outcomes, turns }
}
