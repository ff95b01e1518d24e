/**
 * Hermes 2 Pro and Hermes 3: JSON calls in `<tool_call>` tags like Qwen2.5, in other words. Tools are described as Python
 * signatures, results have a role of their own. Its template drops prose that stands before a call, and the last answer of
 * a conversation ends differently from the others, so the rendering is not append-only. vLLM's copy (`hermes-vllm`) shows an
 * empty list of tools where there are none, and no newline behind it.
 */
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import * as ChatMl from "./ChatMl.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import { grouped } from "./Conversation.ts"
import { Markup } from "./Markup.ts"
import { pythonJson } from "./PythonJson.ts"
import { dialect, grammar, writeCalls } from "./TaggedJson.ts"

const begin = "<|begin_of_text|>"

const markup = () => new Markup([begin, ...ChatMl.markers])

const head =
  "You are a function calling AI model. You are provided with function signatures within <tools></tools> XML tags. " +
  "You may call one or more functions to assist with the user query. Don't make assumptions about what values to plug into " +
  "functions. Here are the available tools: <tools> "

const tail =
  " </tools>Use the following pydantic model json schema for each tool call you will make: " +
  '{"properties": {"name": {"title": "Name", "type": "string"}, "arguments": {"title": "Arguments", "type": "object"}}, ' +
  '"required": ["name", "arguments"], "title": "FunctionCall", "type": "object"}}\nFor each function call return a json ' +
  "object with function name and arguments within <tool_call></tool_call> XML tags as follows:\n<tool_call>\n" +
  '{"name": <function-name>, "arguments": <args-dict>}\n</tool_call><|im_end|>'

const scalars: Readonly<Record<string, string>> = { string: "str", number: "float", integer: "int", boolean: "bool" }

/** A schema as the Python type the template makes of it, oddities included: it looks for an array's items in the wrong place. */
const pythonType = (schema: Json | undefined): string => {
  const type = typeof schema === "object" && schema !== null ? (schema as JsonObject)["type"] : undefined
  if (typeof type === "string" && Object.hasOwn(scalars, type)) return scalars[type]!
  if (type === "array") return "list[Union[]]"
  if (type === "object") {
    const more = (schema as JsonObject)["additionalProperties"]
    return more === undefined ? "dict" : `dict[str, ${pythonType(more)}]`
  }
  // The template cannot print "null" at all: it never ends. `Any` is our word for it.
  if (Array.isArray(type))
    return `Union[${type.map((one) => (one === "null" ? "Any" : pythonType({ type: one }))).join(",")}]`
  return "Union[]"
}

const describe = (tool: ToolSpec): string => {
  const properties = Object.entries((tool.parameters["properties"] ?? {}) as JsonObject)
  const signature = properties.map(([name, schema]) => `${name}: ${pythonType(schema)}`).join(", ")
  const args = properties.map(([name, schema]) => `        ${name}(${pythonType(schema)}): ${describedAs(schema)}`)
  const list = args.length === 0 ? "" : `    Args:\n${args.join("")}`
  const parameters = properties.length === 0 ? "{}" : pythonJson(tool.parameters)
  return (
    `{"type": "function", "function": {"name": "${tool.name}", "description": "${tool.name}(${signature}) - ` +
    `${tool.description}\n\n${list}", "parameters": ${parameters}}`
  )
}

const describedAs = (schema: Json): string => {
  const text = typeof schema === "object" && schema !== null ? (schema as JsonObject)["description"] : undefined
  return typeof text === "string" ? text.trim() : ""
}

const toolsTurn = (tools: ReadonlyArray<ToolSpec>, vllm: boolean): ReadonlyArray<Segment> => {
  if (tools.length === 0 && !vllm) return [control(begin)]
  return markup()
    .mark(`${begin}<|im_start|>system\n${head}`)
    .say(tools.map(describe).join("\n"))
    .mark(tail + (vllm ? "" : "\n"))
    .done()
}

/** `last`: nothing follows in the conversation, which leaves out one newline. */
const answersTurn = (answers: ReadonlyArray<ToolAnswer>, last: boolean): ReadonlyArray<Segment> => {
  const out = markup().mark("<|im_start|>tool\n")
  for (const [index, answer] of answers.entries()) {
    out.mark("<tool_response>\n").say(answer.text)
    out.mark(last && index === answers.length - 1 ? "\n</tool_response>" : "\n</tool_response>\n")
  }
  return out.mark("<|im_end|>").done()
}

const written = (turn: AssistantTurn): ReadonlyArray<Segment> => {
  const calls = turn.calls ?? []
  return calls.length === 0 ? markup().say(turn.content).done() : writeCalls(markup(), calls).done()
}

const render = (messages: ReadonlyArray<Message>, options: RenderOptions, vllm: boolean): ReadonlyArray<Segment> => {
  const out = [...toolsTurn(options.tools, vllm)]
  const groups = grouped(messages)
  for (const [index, group] of groups.entries()) {
    if (group.kind === "answers") out.push(...answersTurn(group.answers, index === groups.length - 1))
    else if (group.message.role === "assistant")
      out.push(...ChatMl.opening, ...written(group.message), ...ChatMl.closing)
    else out.push(...ChatMl.turn(group.message.role, group.message.content))
  }
  return options.generationPrompt === true ? [...out, ...ChatMl.opening] : out
}

const hermesCodec = (id: string, vllm: boolean): Codec => ({
  id,
  stops: [],
  ends: ChatMl.ends,
  reasoning: ChatMl.thinkTags,
  system: (system, options) => [
    ...toolsTurn(options.tools, vllm),
    ...(system === undefined ? [] : ChatMl.turn("system", system))
  ],
  user: (content) => ChatMl.turn("user", content),
  answers: (answers) => answersTurn(answers, true),
  opening: () => ChatMl.opening,
  closing: ChatMl.closing,
  written,
  render: (messages, options) => render(messages, options, vllm),
  parser: (options) => new CallScanner(dialect, options),
  // The model was taught both orders.
  grammar: (tools) => grammar(tools, true)
})

export const hermes: Codec = hermesCodec("hermes", false)

export const hermesVllm: Codec = hermesCodec("hermes-vllm", true)
