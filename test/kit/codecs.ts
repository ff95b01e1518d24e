/** What the codec suites share: cutting a turn into pieces, shared cases, conformance rows, a model file's own template. */
import { existsSync, readFileSync } from "node:fs"
import type { Action, Codec, ParserOptions, Visible } from "../../src/engine/codecs/Codec.ts"
import type { EndReason } from "../../src/engine/Generation.ts"
import type { Message } from "../../src/engine/Message.ts"
import type { Json, JsonObject } from "../../src/tools/JsonText.ts"
import type { ToolSpec } from "../../src/tools/ToolCall.ts"

export interface Outcome {
  readonly action: Action
  /** Everything that was shown as text, and as reasoning. */
  readonly text: string
  readonly reasoning: string
}

/** Parses a turn that arrives in the given pieces. */
export const parsePieces = (
  codec: Codec,
  pieces: ReadonlyArray<string>,
  options: ParserOptions,
  reason: EndReason = "eog"
): Outcome => {
  const parser = codec.parser(options)
  const visible: Array<Visible> = []
  for (const piece of pieces) visible.push(...parser.push(piece))
  const end = parser.end(reason)
  visible.push(...end.visible)
  const shown = (tag: Visible["_tag"]) =>
    visible
      .filter((one) => one._tag === tag)
      .map((one) => one.text)
      .join("")
  return { action: end.action, text: shown("Text"), reasoning: shown("Reasoning") }
}

/** Every way to cut a text into two. */
export const splits = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from({ length: text.length + 1 }, (_, at) => [text.slice(0, at), text.slice(at)])

/** Every way to cut a text into three. */
export const pairs = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  splits(text).flatMap(([left, right]) =>
    Array.from({ length: right!.length + 1 }, (_, at) => [left!, right!.slice(0, at), right!.slice(at)])
  )

/** One UTF-16 unit at a time. */
export const units = (text: string): ReadonlyArray<string> => text.split("")

/** Cuts at the given fractions of the length. */
export const cutAt = (text: string, fractions: ReadonlyArray<number>): ReadonlyArray<string> => {
  const at = [0, ...fractions.map((fraction) => Math.floor(fraction * text.length)).sort((a, b) => a - b), text.length]
  return at.slice(1).map((end, index) => text.slice(at[index], end))
}

export const tool = (
  name: string,
  parameters: JsonObject = { type: "object", properties: {} },
  description = ""
): ToolSpec => ({
  name,
  description,
  parameters
})

interface ExpectedCall {
  readonly name: string
  readonly arguments: JsonObject
}

interface Expectation {
  readonly action: "final_text" | "tool_calls" | "malformed"
  readonly layer?: "parse" | "validate"
  readonly calls?: ReadonlyArray<ExpectedCall>
  readonly errors?: ReadonlyArray<string>
  readonly text?: string
}

export interface SharedCase {
  readonly id: string
  readonly family: string
  readonly raw_model_output: string
  readonly chunks?: ReadonlyArray<string>
  readonly stop: "eos" | "length"
  readonly reasoning_open?: boolean
  readonly tools: ReadonlyArray<{ readonly name: string; readonly parameters: JsonObject }>
  readonly expected: Expectation & { readonly policy?: boolean }
}

/** The shared cases of some families. */
export const sharedCases = (...families: ReadonlyArray<string>): ReadonlyArray<SharedCase> =>
  readFileSync(new URL("../fixtures/shared-cases.jsonl", import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as SharedCase)
    .filter((one) => families.includes(one.family))

export const specsOf = (one: SharedCase): ReadonlyArray<ToolSpec> =>
  one.tools.map(({ name, parameters }) => tool(name, parameters))

const conformanceDirectory = new URL(
  `${process.env["WRIT_CONFORMANCE"] ?? new URL("../../../shared/conformance", import.meta.url).pathname}/`,
  import.meta.url
)

/** Rows of one conformance file, or `undefined` where the data is not at hand. */
export const conformance = <Row>(file: string): ReadonlyArray<Row> | undefined => {
  const path = new URL(`${file}.jsonl`, conformanceDirectory)
  if (!existsSync(path)) return undefined
  return readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row)
}

export interface RenderRow {
  readonly id: string
  readonly template: string
  readonly family: string
  readonly case: string
  readonly add_generation_prompt: boolean
  readonly options: { readonly enable_thinking?: boolean; readonly think?: boolean }
  readonly messages: ReadonlyArray<PlainMessage>
  readonly tools: ReadonlyArray<{ readonly function: ToolSpec }> | null
  readonly expected_text?: string
  readonly expected_error?: string
  readonly trust: "agreed" | "reference-only"
}

interface PlainMessage {
  readonly role: "system" | "developer" | "user" | "assistant" | "tool"
  readonly content?: string | null
  readonly name?: string
  readonly reasoning_content?: string
  readonly tool_call_id?: string
  readonly tool_calls?: ReadonlyArray<{
    readonly id?: string
    readonly function: { readonly name: string; readonly arguments: Json }
  }>
}

/** A row's conversation in our form. Arguments given as JSON text stay text: the codecs print what they are given. */
export const messagesOf = (row: { readonly messages: ReadonlyArray<PlainMessage> }): ReadonlyArray<Message> =>
  row.messages.map((message): Message => {
    const content = message.content ?? ""
    if (message.role === "tool") {
      return {
        role: "tool",
        name: message.name ?? "",
        content,
        ...(message.tool_call_id === undefined ? {} : { id: message.tool_call_id })
      }
    }
    // Templates treat the newer name of the role alike.
    if (message.role === "developer") return { role: "system", content }
    if (message.role !== "assistant") return { role: message.role, content }
    return {
      role: "assistant",
      content,
      ...(message.reasoning_content === undefined ? {} : { reasoning: message.reasoning_content }),
      ...(message.tool_calls === undefined
        ? {}
        : {
            calls: message.tool_calls.map((call) => ({
              name: call.function.name,
              arguments: call.function.arguments as JsonObject,
              ...(call.id === undefined ? {} : { id: call.id })
            }))
          })
    }
  })

/** Says where two texts part, for a message that can be acted on; `undefined` when they are equal. */
export const firstDifference = (actual: string, expected: string): string | undefined => {
  if (actual === expected) return undefined
  let at = 0
  while (at < actual.length && actual[at] === expected[at]) at += 1
  const byte = Buffer.byteLength(expected.slice(0, at))
  const around = (text: string) => JSON.stringify(text.slice(Math.max(0, at - 30), at + 40))
  return `first difference at byte ${byte}: got ${around(actual)}, expected ${around(expected)}`
}

/** The chat template inside a GGUF file, or `undefined` where the file is not at hand. */
export const templateOf = (path: URL): string | undefined => {
  if (!existsSync(path)) return undefined
  const bytes = readFileSync(path)
  const key = bytes.indexOf("tokenizer.chat_template")
  if (key < 0) return undefined
  const at = key + "tokenizer.chat_template".length + 4
  return bytes.subarray(at + 8, at + 8 + Number(bytes.readBigUInt64LE(at))).toString("utf8")
}

/** The model that ships with the package. */
export const shippedModel = new URL("../../models/tiny-tool-agent/tiny-tool-agent-q8_0.gguf", import.meta.url)
