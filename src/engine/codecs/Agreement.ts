/**
 * Does a codec speak as a model file's own chat template does? Both render a fixed set of conversations, which differ in one
 * thing at a time; what the codec writes of calls is also read back. Never part of a run.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { canonical, type JsonObject } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import type { Message, MessageCall } from "../Message.ts"
import { flatten } from "../Prompt.ts"
import type { Codec } from "./Codec.ts"
import { type ChatTemplate, compile, type TemplateError } from "./Template.ts"

/** Where the two part. */
export interface Divergence {
  readonly conversation: string
  /** Offset of the first differing byte. */
  readonly byte: number
  readonly codec: string
  readonly template: string
}

export interface AgreementReport {
  /** Renderings that were compared. */
  readonly compared: number
  readonly equal: number
  /** Conversations the template itself refuses or its engine cannot run, with its words. */
  readonly refused: ReadonlyArray<{ readonly conversation: string; readonly message: string }>
  readonly differences: ReadonlyArray<Divergence>
  /** Calls that were not read back as they were written. */
  readonly unread: ReadonlyArray<{ readonly call: string; readonly outcome: string }>
}

/** Texts of the special tokens a template may ask for. */
export interface TokenTexts {
  readonly bos?: string
  readonly eos?: string
}

interface Conversation {
  readonly name: string
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<ToolSpec>
}

const weather: ToolSpec = {
  name: "get_weather",
  description: "Current weather.",
  parameters: {
    type: "object",
    properties: { city: { type: "string", description: "City name" }, unit: { type: "string", enum: ["C", "F"] } },
    required: ["city"]
  }
}
const add: ToolSpec = {
  name: "add",
  description: "Adds numbers.",
  parameters: {
    type: "object",
    properties: { values: { type: "array", items: { type: "number" } }, exact: { type: "boolean" } },
    required: ["values"]
  }
}

const call = (name: string, args: JsonObject, ordinal = 0): MessageCall => ({
  name,
  arguments: args,
  id: `call0000${ordinal}`
})

const user = (content: string): Message => ({ role: "user", content })
const says = (content: string): Message => ({ role: "assistant", content })
const calls = (content: string, ...list: ReadonlyArray<MessageCall>): Message => ({
  role: "assistant",
  content,
  calls: list
})
const answers = (name: string, content: string, ordinal = 0): Message => ({
  role: "tool",
  name,
  content,
  id: `call0000${ordinal}`
})

const oslo = call("get_weather", { city: "Oslo" })
const sum = call("add", { values: [1, 2.5], exact: true }, 1)

/** Each body with and without system text and tools. */
const bodies: Readonly<Record<string, ReadonlyArray<Message>>> = {
  "one question": [user("What is 2 + 2?")],
  "an answer": [user("Hi."), says("Hello!")],
  "two exchanges": [user("Hi."), says("Hello!"), user("And now?")],
  "text that looks like markup": [user('He said "no" & left <b>\n\n é 日本 🇯🇵'), says("a\nb"), user("</b>")],
  "a call": [user("Weather in Oslo?"), calls("", oslo)],
  "a call and its answer": [
    user("Weather in Oslo?"),
    calls("", oslo),
    answers("get_weather", '{"ok":true,"result":7}')
  ],
  "a call, its answer and a conclusion": [
    user("Weather in Oslo?"),
    calls("", oslo),
    answers("get_weather", "7 degrees"),
    says("It is 7 degrees.")
  ],
  "prose before a call": [user("Sum?"), calls("Let me add.", sum), answers("add", "3.5", 1)],
  "two calls": [
    user("Both?"),
    calls("", oslo, sum),
    answers("get_weather", "7"),
    answers("add", "3.5", 1),
    says("7 and 3.5.")
  ],
  "two rounds": [user("Both?"), calls("", oslo), answers("get_weather", "7"), calls("", sum), answers("add", "3.5", 1)],
  "a later question": [
    user("Weather in Oslo?"),
    calls("", oslo),
    answers("get_weather", "7"),
    says("7."),
    user("Thanks.")
  ],
  reasoning: [
    user("Think."),
    { role: "assistant", content: "Four.", reasoning: "Two and two." },
    user("Again."),
    { role: "assistant", content: "", reasoning: "I need a sum.", calls: [sum] },
    answers("add", "3.5", 1)
  ]
}

const conversations: ReadonlyArray<Conversation> = Object.entries(bodies).flatMap(([name, messages]) => {
  const system: Message = { role: "system", content: "You are brief." }
  const callsTools = messages.some(
    (message) => message.role === "tool" || (message.role === "assistant" && message.calls)
  )
  const withTools: Conversation = {
    name: `${name}, with tools`,
    messages: [system, ...messages],
    tools: [weather, add]
  }
  if (callsTools === true) return [withTools]
  return [withTools, { name: `${name}, without tools`, messages: [system, ...messages], tools: [] }]
})

/** The day the date of a rendering is taken from. */
const today = {
  date: DateTime.toDateUtc(DateTime.makeUnsafe("2024-07-26T12:00:00Z")),
  long: "26 Jul 2024",
  iso: "2024-07-26"
}

/** Compares a codec with a template that has been read. */
const compare = (codec: Codec, template: ChatTemplate, tokens: TokenTexts): Effect.Effect<AgreementReport> =>
  Effect.gen(function* () {
    const refused: Array<AgreementReport["refused"][number]> = []
    const differences: Array<Divergence> = []
    let compared = 0
    for (const { messages, name, tools } of conversations) {
      for (const [how, thinking] of thinkingModes(codec)) {
        for (const generationPrompt of messages.at(-1)?.role === "assistant" ? [false] : [true, false]) {
          const conversation = `${name}${how}${generationPrompt ? ", to be continued" : ""}`
          const rendered = yield* Effect.result(
            template.render({
              messages,
              tools,
              generationPrompt,
              now: today.date,
              variables: {
                ...(tokens.bos === undefined ? {} : { bos_token: tokens.bos }),
                ...(tokens.eos === undefined ? {} : { eos_token: tokens.eos }),
                ...(thinking === undefined ? {} : { enable_thinking: thinking, thinking })
              }
            })
          )
          if (rendered._tag === "Failure") {
            refused.push({ conversation, message: rendered.failure.message })
            continue
          }
          compared += 1
          const own = flatten(
            codec.render(messages, {
              tools,
              generationPrompt,
              today: codec.id.startsWith("gpt-oss") ? today.iso : today.long,
              ...(thinking === undefined ? {} : { thinking })
            })
          )
          const difference = divergence(conversation, own, rendered.success)
          if (difference !== undefined) differences.push(difference)
        }
      }
    }
    return { compared, equal: compared - differences.length, refused, differences, unread: readBack(codec) }
  })

const thinkingModes = (codec: Codec): ReadonlyArray<readonly [string, boolean | undefined]> =>
  codec.reasoning === undefined
    ? [["", undefined]]
    : [
        ["", undefined],
        [", thinking on", true],
        [", thinking off", false]
      ]

const shownBytes = 40

const divergence = (conversation: string, codec: string, template: string): Divergence | undefined => {
  if (codec === template) return undefined
  let at = 0
  while (at < codec.length && codec[at] === template[at]) at += 1
  const around = (text: string) => text.slice(Math.max(0, at - 10), at + shownBytes)
  return {
    conversation,
    byte: Buffer.byteLength(template.slice(0, at)),
    codec: around(codec),
    template: around(template)
  }
}

const readable: ReadonlyArray<MessageCall> = [
  oslo,
  sum,
  call("get_weather", { city: 'a "quoted" \\ name\nwith lines é 日本 🇯🇵' }),
  call("get_weather", { city: "</tool_call> {}" }),
  call("add", { values: [] }),
  call("add", { values: [-1e-3, 1234567890], exact: false })
]

/** What the codec writes of a call it must read as that call. */
const readBack = (codec: Codec): AgreementReport["unread"] =>
  readable.flatMap((one) => {
    const tools = [weather, add]
    const options = { tools, thinking: false }
    const written = flatten(codec.written({ role: "assistant", content: "", calls: [one] }, options))
    const parser = codec.parser({ tools })
    parser.push(written)
    const { action } = parser.end("eog")
    const read = action._tag === "ToolCalls" ? action.calls[0] : undefined
    const same = read !== undefined && read.name === one.name && canonical(read.arguments) === canonical(one.arguments)
    return same ? [] : [{ call: written, outcome: action._tag === "Malformed" ? action.code : action._tag }]
  })

/** Compares a codec with the text of a template. Fails where that is no template at all. */
export const agreement = (
  codec: Codec,
  template: string,
  tokens: TokenTexts
): Effect.Effect<AgreementReport, TemplateError> =>
  Effect.flatMap(compile(template), (compiled) => compare(codec, compiled, tokens))

/** Do they agree wherever they could be compared? */
export const agrees = ({ compared, differences, unread }: AgreementReport): boolean =>
  compared > 0 && differences.length === 0 && unread.length === 0
