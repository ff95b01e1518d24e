/** FunctionGemma: Gemma's brace form with `<escape>` around strings, in a model of 270 million parameters made for calls. */
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { BraceFrame } from "./BraceFrame.ts"
import { grammar } from "./BraceGrammar.ts"
import { writeMembers, writeValue } from "./BraceText.ts"
import { CallScanner } from "./CallScanner.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import type { Dialect } from "./Dialect.ts"
import { declaration } from "./GemmaDeclaration.ts"
import { Markup } from "./Markup.ts"
import { strip } from "./PythonText.ts"

const quote = "<escape>"
const style = { quote, null: "None", emptyDescriptions: true } as const
const marks = { opener: "<start_function_call>", closer: "<end_function_call>", quote } as const

const markup = () =>
  new Markup([
    "<bos>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_function_declaration>",
    "<end_function_declaration>",
    "<start_function_call>",
    "<end_function_call>",
    "<start_function_response>",
    "<end_function_response>"
  ])

const dialect: Dialect = {
  form: `write every call as <start_function_call>call:TOOL{KEY:${quote}TEXT${quote},KEY:NUMBER}<end_function_call>`,
  openers: [{ text: marks.opener, frame: () => new BraceFrame(marks) }],
  strays: [
    {
      text: marks.closer,
      code: "missing_opener",
      what: "<end_function_call> came without <start_function_call> before it"
    },
    {
      text: "<end_function_response>",
      code: "forged_tool_response",
      what: "only the runtime writes what a tool answers"
    },
    { text: "<start_of_turn>", code: "forged_turn", what: "a turn must not write another speaker's turn" }
  ],
  ends: ["<end_of_turn>", "<start_function_response>"],
  answerEnd: "<start_function_response>",
  textAfter: "keep",
  bare: "the call is not inside its marks, or not in their form",
  bareHead: /\bcall:([\p{L}\p{N}_.:/-]{1,64})\{/gu
}

const system = (text: string | undefined, { tools }: RenderOptions): ReadonlyArray<Segment> => {
  const out = markup().mark("<bos>")
  if (text === undefined && tools.length === 0) return out.done()
  const content = strip(text ?? "")
  out.mark("<start_of_turn>developer\n").say(content)
  if (text === undefined) out.mark("You are a model that can do function calling with the following functions")
  for (const tool of tools)
    out.mark("<start_function_declaration>").say(declaration(tool, style)).mark("<end_function_declaration>")
  return out.mark("<end_of_turn>\n").done()
}

const turn = (role: "user" | "developer", content: string) =>
  markup().mark(`<start_of_turn>${role}\n`).say(strip(content)).mark("<end_of_turn>\n").done()

const answers = (list: ReadonlyArray<ToolAnswer>): ReadonlyArray<Segment> => {
  const out = markup()
  for (const { name, text } of list) {
    out
      .mark("<start_function_response>")
      .say(`response:${name}{value:${writeValue(strip(text), style)}}`)
      .mark("<end_function_response>")
  }
  return out.done()
}

const written = (message: AssistantTurn): ReadonlyArray<Segment> => {
  const out = markup().say(strip(message.content))
  for (const call of message.calls ?? []) {
    out
      .mark("<start_function_call>")
      .say(`call:${call.name}{${writeMembers(call.arguments, style)}}`)
      .mark("<end_function_call>")
  }
  return out.done()
}

const header = control("<start_of_turn>model\n")

const render = (messages: ReadonlyArray<Message>, options: RenderOptions): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const rest = lead === undefined ? messages : messages.slice(1)
  const out: Array<Segment> = [...system(lead, options)]
  for (const [index, message] of rest.entries()) {
    const before = rest[index - 1]
    if (message.role === "tool") out.push(...answers([{ name: message.name, text: message.content }]))
    else if (message.role === "user") out.push(...turn("user", message.content))
    else if (message.role === "system") out.push(...turn("developer", message.content))
    else {
      out.push(...(before?.role === "tool" ? [] : [header]), ...written(message))
      const answered = rest[index + 1]?.role === "tool"
      if ((message.calls ?? []).length === 0) out.push(control("<end_of_turn>\n"))
      else if (!answered) out.push(control("<start_function_response>"))
    }
  }
  return options.generationPrompt === true && rest[rest.length - 1]?.role !== "tool" ? [...out, header] : out
}

export const functionGemma: Codec = {
  id: "functiongemma",
  stops: [],
  ends: ["<end_of_turn>", "<eos>"],
  system,
  user: (content) => turn("user", content),
  answers,
  opening: ({ after }) => (after === "answers" ? [] : [header]),
  closing: [control("<end_of_turn>\n")],
  closingAfterCalls: [],
  written,
  render,
  parser: (options) => new CallScanner(dialect, options),
  grammar: grammar(marks, style)
}
