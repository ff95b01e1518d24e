/**
 * gpt-oss: the harmony format. System text goes into the developer message, tools are shown as TypeScript-like types, and
 * each call is a message of its own. The template prints the first call of a turn only and takes prose before it for
 * reasoning, which it drops once an answer follows; live sessions keep what was in context.
 */
import { isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import type { ThinkingBounds } from "../Generation.ts"
import type { Message, MessageCall } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import { grammar } from "./HarmonyGrammar.ts"
import { HarmonyParser } from "./HarmonyParser.ts"
import { Markup } from "./Markup.ts"
import { pythonJson } from "./PythonJson.ts"
import { str } from "./PythonText.ts"
import { typeScriptType } from "./TypeScriptType.ts"

const markers = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"]

const markup = () => new Markup(markers)

const parameter = (name: string, schema: Json, required: ReadonlyArray<Json>): string => {
  const fields: JsonObject = isObject(schema) ? schema : {}
  const description =
    typeof fields["description"] === "string" && fields["description"] !== "" ? `// ${fields["description"]}\n` : ""
  const value = fields["default"]
  const plain = fields["enum"] !== undefined || fields["oneOf"] !== undefined
  const shown = value === undefined ? "" : plain ? str(value) : pythonJson(value)
  const fallback = value === undefined ? "" : `${fields["oneOf"] === undefined ? ", " : ""}// default: ${shown}`
  return `${description}${name}${required.includes(name) ? "" : "?"}: ${typeScriptType(fields)}${fallback},\n`
}

const toolType = (tool: ToolSpec): string => {
  const properties = tool.parameters["properties"]
  const required = Array.isArray(tool.parameters["required"]) ? tool.parameters["required"] : []
  const members =
    properties !== undefined && isObject(properties)
      ? Object.entries(properties).map(([name, schema]) => parameter(name, schema, required))
      : []
  const shape = members.length === 0 ? "()" : `(_: {\n${members.join("")}})`
  return `// ${tool.description}\ntype ${tool.name} = ${shape} => any;\n\n`
}

/** `early`: the first wording of the template, which sets the developer message's parts off in another way. */
const systemTurn = (
  text: string | undefined,
  { tools, today }: RenderOptions,
  early: boolean
): ReadonlyArray<Segment> => {
  const out = markup().mark(
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n"
  )
  if (today !== undefined) out.mark("Current date: ").say(today).mark("\n")
  out.mark(
    "\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be included for every message."
  )
  if (tools.length > 0) out.mark("\nCalls to these tools must go to the commentary channel: 'functions'.")
  out.mark("<|end|>")
  const instructions = text ?? ""
  if (instructions === "" && tools.length === 0) return out.done()
  out.mark("<|start|>developer<|message|>")
  if (instructions !== "")
    out
      .mark("# Instructions\n\n")
      .say(instructions)
      .mark(early ? "\n\n" : "")
  if (tools.length > 0) {
    out.mark(`${early ? "" : "\n\n"}# Tools\n\n## functions\n\nnamespace functions {\n\n`)
    for (const tool of tools) out.say(toolType(tool))
    out.mark("} // namespace functions")
  }
  return out.mark("<|end|>").done()
}

const user = (content: string) => markup().mark("<|start|>user<|message|>").say(content).mark("<|end|>").done()

const answers = (list: ReadonlyArray<ToolAnswer>): ReadonlyArray<Segment> => {
  const out = markup()
  for (const { name, text } of list) {
    out.mark("<|start|>functions.").say(name).mark(" to=assistant<|channel|>commentary<|message|>")
    // The template takes text for something to iterate over and prints a JSON string.
    out.say(pythonJson(text)).mark("<|end|>")
  }
  return out.done()
}

const opening = [control("<|start|>assistant")]

const nextMessage = "<|end|><|start|>assistant"
const answer = `${nextMessage}<|channel|>final<|message|>`

/**
 * Reasoning is a message on the channel `analysis`, of which a turn may have several. The next message is the model's to
 * choose while there is something to call; if it goes on reasoning, and where there is no tool, it is the answer.
 */
const thinking = ({ tools }: RenderOptions): ThinkingBounds => ({
  open: "<|channel|>analysis<|message|>",
  close: "<|end|>",
  anywhere: true,
  closing: tools.length > 0 ? nextMessage : answer,
  again: answer
})

const say = (out: Markup, channel: "analysis" | "final", text: string): Markup =>
  out.mark(`<|channel|>${channel}<|message|>`).say(text)

const call = (out: Markup, one: MessageCall): Markup =>
  out.mark(" to=functions.").say(one.name).mark("<|channel|>commentary json<|message|>").say(pythonJson(one.arguments))

/** What follows the first `<|start|>assistant`, without the last end marker. */
const written = (turn: AssistantTurn): ReadonlyArray<Segment> => {
  const calls = turn.calls ?? []
  const thought = turn.reasoning ?? (calls.length > 0 ? turn.content : "")
  const out = markup()
  if (thought !== "") say(out, "analysis", thought).mark("<|end|><|start|>assistant")
  if (calls.length === 0) return say(out, "final", turn.content).done()
  for (const [index, one] of calls.entries()) call(index === 0 ? out : out.mark("<|call|><|start|>assistant"), one)
  return out.done()
}

const renderAll = (
  messages: ReadonlyArray<Message>,
  options: RenderOptions,
  early: boolean
): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const rest = lead === undefined ? messages : messages.slice(1)
  const out = [...systemTurn(lead, options, early)]
  const lastAnswer = rest.findLastIndex((message) => message.role === "assistant" && (message.calls ?? []).length === 0)
  let lastCall = ""
  for (const [index, message] of rest.entries()) {
    if (message.role === "user") out.push(...user(message.content))
    else if (message.role === "tool") out.push(...answers([{ name: lastCall, text: message.content }]))
    else if (message.role === "assistant") {
      const first = message.calls?.[0]
      const part = markup()
      if (first !== undefined) {
        if (message.content !== "" && lastAnswer < index) {
          say(part.mark("<|start|>assistant"), "analysis", message.content).mark("<|end|>")
        }
        call(part.mark("<|start|>assistant"), first).mark("<|call|>")
        lastCall = first.name
      } else {
        const ends = index === rest.length - 1 && options.generationPrompt !== true
        say(part.mark("<|start|>assistant"), "final", message.content).mark(ends ? "<|return|>" : "<|end|>")
      }
      out.push(...part.done())
    }
  }
  return options.generationPrompt === true ? [...out, ...opening] : out
}

const codec = (id: string, early: boolean): Codec => ({
  id,
  stops: [],
  ends: ["<|return|>", "<|call|>", "<|endoftext|>"],
  system: (text, options) => systemTurn(text, options, early),
  user,
  answers,
  opening: () => opening,
  closing: [control("<|end|>")],
  closingAfterCalls: [control("<|call|>")],
  written,
  render: (messages, options) => renderAll(messages, options, early),
  parser: (options) => new HarmonyParser(options),
  grammar,
  thinking
})

export const gptOss: Codec = codec("gpt-oss", false)

export const gptOssEarly: Codec = codec("gpt-oss-early", true)
