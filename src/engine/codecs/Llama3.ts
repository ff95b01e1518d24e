/**
 * Llama 3.1, 3.2 and 3.3: a call is the whole turn, one bare JSON object with `name` and `parameters`, with or without
 * `<|python_tag|>` before it. The template shows the tools in the first user turn; the increments of a live session show
 * them in the system turn, which is the template's own other choice (`tools_in_user_message` false). It prints one call a
 * turn and drops prose before it; several calls are joined with `; `, as the parsers of other servers read them. vLLM's template
 * (`llama3-vllm`) differs in a default system text, a space, and answers as objects.
 */
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { bareCalls } from "../Grammar.ts"
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { BareJsonFrame } from "./BareJsonFrame.ts"
import { CallScanner } from "./CallScanner.ts"
import type { AssistantTurn, Codec, RenderOptions } from "./Codec.ts"
import type { Dialect, Opener, Stray } from "./Dialect.ts"
import { Markup } from "./Markup.ts"
import { pythonJson, pythonJsonIndented } from "./PythonJson.ts"
import { strip } from "./PythonText.ts"

const begin = "<|begin_of_text|>"
const tag = "<|python_tag|>"
const ends = ["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"] as const

const markers = [begin, tag, ...ends, "<|start_header_id|>", "<|end_header_id|>"]

const markup = () => new Markup(markers)

const header = (role: string): string => `<|start_header_id|>${role}<|end_header_id|>\n\n`

const envelope = { key: "parameters", type: "function" } as const

const strays: ReadonlyArray<Stray> = [
  { text: "<function=", code: "wrong_envelope", what: "<function=…> is not how calls are written here" },
  { text: "<|start_header_id|>", code: "forged_turn", what: "a turn must not write another speaker's turn" }
]

const frameOptions = { envelope, tag, ends, strays, separator: ";", arrays: false } as const

const opener = (text: string): Opener => ({
  text,
  frame: (options, start) => new BareJsonFrame(frameOptions, options, text, start)
})

const dialect: Dialect = {
  form: 'write a call as the whole turn, {"name": "TOOL", "parameters": {"KEY": VALUE}}',
  openers: [opener(tag)],
  lead: [{ ...opener("{"), tentative: true }],
  strays,
  ends,
  textAfter: "malformed",
  bare: "the call is not the whole turn"
}

interface Wording {
  readonly ask: string
  /** System text of a conversation that brings tools and none of its own. */
  readonly fallback: string
  /** An answer's text as the turn shows it. */
  readonly answer: (text: string) => string
}

const format = 'Respond in the format {"name": function name, "parameters": dictionary of argument name and its value}.'

/** A text result is printed as a JSON string, since the template takes text for something to iterate over. */
const official: Wording = { ask: `${format}Do not use variables.\n\n`, fallback: "", answer: pythonJson }

const vllm: Wording = {
  ask: `${format} Do not use variables.\n\n`,
  fallback:
    "You are a helpful assistant with tool calling capabilities. Only reply with a tool call if the function exists in the " +
    "library provided by the user. If it doesn't exist, just reply directly in natural language. When you receive a tool call " +
    "response, use the output to format an answer to the original user question.",
  answer: (text) => pythonJson({ output: text })
}

const say = (role: string, content: string): ReadonlyArray<Segment> =>
  markup().mark(header(role)).say(strip(content)).mark("<|eot_id|>").done()

const listTools = (out: Markup, tools: ReadonlyArray<ToolSpec>): Markup => {
  for (const { description, name, parameters } of tools) {
    out.say(`${pythonJsonIndented({ type: "function", function: { name, description, parameters } }, 4)}\n\n`)
  }
  return out
}

const systemTurn = (
  text: string | undefined,
  options: RenderOptions,
  { ask, fallback }: Wording,
  withTools: boolean
): ReadonlyArray<Segment> => {
  const { today = "26 Jul 2024", tools } = options
  const out = markup().mark(begin + header("system") + (tools.length === 0 ? "" : "Environment: ipython\n"))
  out.mark("Cutting Knowledge Date: December 2023\nToday Date: ").say(today).mark("\n\n")
  if (withTools && tools.length > 0) {
    out.mark(
      `You have access to the following functions. To call a function, please respond with JSON for a function call.${ask}`
    )
    listTools(out, tools)
  }
  return out
    .say(strip(text ?? (tools.length === 0 ? "" : fallback)))
    .mark("<|eot_id|>")
    .done()
}

const firstUserTurn = (content: string, tools: ReadonlyArray<ToolSpec>, { ask }: Wording): ReadonlyArray<Segment> => {
  const out = markup().mark(
    `${header("user")}Given the following functions, please respond with a JSON for a function call with its proper ` +
      `arguments that best answers the given prompt.\n\n${ask}`
  )
  return listTools(out, tools).say(strip(content)).mark("<|eot_id|>").done()
}

const answer = (text: string, wording: Wording): ReadonlyArray<Segment> =>
  markup().mark(header("ipython")).say(wording.answer(text)).mark("<|eot_id|>").done()

const written = (turn: AssistantTurn): ReadonlyArray<Segment> => {
  const calls = (turn.calls ?? []).map(
    (call) => `{"name": "${call.name}", "parameters": ${pythonJson(call.arguments)}}`
  )
  return markup()
    .say(calls.length === 0 ? strip(turn.content) : calls.join("; "))
    .done()
}

const opening = [control(header("assistant"))]
const closing = [control("<|eot_id|>")]

const render = (messages: ReadonlyArray<Message>, options: RenderOptions, wording: Wording): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const rest = lead === undefined ? messages : messages.slice(1)
  const out = [...systemTurn(lead, options, wording, false)]
  const toolsFirst = options.tools.length > 0 && rest.length > 0
  if (toolsFirst) out.push(...firstUserTurn(rest[0]!.content, options.tools, wording))
  for (const message of toolsFirst ? rest.slice(1) : rest) {
    if (message.role === "tool") out.push(...answer(message.content, wording))
    else if (message.role === "assistant") out.push(...opening, ...written(message), ...closing)
    else out.push(...say(message.role, message.content))
  }
  return options.generationPrompt === true ? [...out, ...opening] : out
}

const llama3Codec = (id: string, wording: Wording): Codec => ({
  id,
  stops: [],
  ends: ["<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"],
  system: (text, options) => systemTurn(text, options, wording, true),
  user: (content) => say("user", content),
  answers: (list) => list.flatMap(({ text }) => answer(text, wording)),
  opening: () => opening,
  closing,
  written,
  render: (messages, options) => render(messages, options, wording),
  parser: (options) => new CallScanner(dialect, options),
  grammar: (tools) =>
    bareCalls(tools, {
      openings: (name) => [
        { text: `{"name": "${name}", "parameters": `, atStart: true },
        { text: `{"name":"${name}","parameters":`, atStart: true }
      ],
      tag: { text: tag, key: "parameters" }
    })
})

export const llama3: Codec = llama3Codec("llama3", official)

export const llama3Vllm: Codec = llama3Codec("llama3-vllm", vllm)
