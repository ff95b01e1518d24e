/** The call syntax of Qwen3-Coder and Qwen3.5: a function with parameter blocks between `<tool_call>` and `</tool_call>`. */
import type { Json } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { type CompiledGrammar, xmlCalls } from "../Grammar.ts"
import type { MessageCall } from "../Message.ts"
import { ends, thinkTags } from "./ChatMl.ts"
import type { ParserOptions } from "./Codec.ts"
import type { Dialect, Frame, FrameEnd, Stray } from "./Dialect.ts"
import type { Markup } from "./Markup.ts"
import { pythonJson } from "./PythonJson.ts"
import { str } from "./PythonText.ts"
import { jsonFrame } from "./TaggedJson.ts"
import type { Window } from "./Window.ts"
import { XmlFrame } from "./XmlFrame.ts"

export const form =
  "write every call as <tool_call>\n<function=TOOL>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>"

const outside = (text: string): Stray => ({
  text,
  code: "missing_opener",
  what: `${text} stands outside a call: <tool_call> and a line <function=NAME> must come first`
})

const forged = (text: string): Stray => ({
  text,
  code: "forged_tool_response",
  what: `only the runtime writes ${text}, so end your turn after the call and wait for the answer`
})

export const dialect: Dialect = {
  form,
  openers: [{ text: "<tool_call>", frame: (options) => new XmlFrame(options) }],
  strays: [
    ...["<function=", "</function>", "<parameter=", "</parameter>", "</tool_call>"].map(outside),
    forged("<tool_response>"),
    forged("</tool_response>"),
    { text: "<|im_start|>", code: "forged_turn", what: "a turn must not write another speaker's turn" }
  ],
  ends,
  textAfter: "keep",
  bare: "the call is JSON and not inside its tags",
  thinking: thinkTags
}

/** Grammar of one call in this form. */
export const grammar = (tools: ReadonlyArray<ToolSpec>): CompiledGrammar | undefined =>
  xmlCalls(tools, { opener: "<tool_call>", closer: "</tool_call>" })

/** Qwen3.5 was trained on this form and now and then writes the older one: the payload's first character tells them apart. */
export const dialectEither: Dialect = {
  ...dialect,
  openers: [{ text: "<tool_call>", frame: (options) => new EitherFrame(options) }]
}

class EitherFrame implements Frame {
  readonly #options: ParserOptions
  #frame: Frame | undefined

  constructor(options: ParserOptions) {
    this.#options = options
  }

  read(window: Window): FrameEnd | undefined {
    if (this.#frame === undefined) {
      const more = window.skipSpace()
      if (!more && window.ending === undefined) return undefined
      this.#frame = window.text[window.at] === "{" ? jsonFrame() : new XmlFrame(this.#options)
    }
    return this.#frame.read(window)
  }
}

/** The words about the call format that follow the list of tools. */
export const instructions = (wording: {
  readonly what: string
  readonly second: string
  readonly reminder: string
}): string =>
  `\n\nIf you choose to call a ${wording.what} ONLY reply in the following format with NO suffix:\n\n<tool_call>\n` +
  "<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n<parameter=example_parameter_2>\n" +
  `${wording.second}\n</parameter>\n</function>\n</tool_call>\n\n<IMPORTANT>\nReminder:\n- Function calls MUST follow the ` +
  `specified format: ${wording.reminder}\n- Required parameters MUST be specified\n- You may provide optional reasoning for ` +
  "your function call in natural language BEFORE the function call, but NOT after\n- If there is no function call available, " +
  "answer the question like normal with your current knowledge and do not tell the user about function calls\n</IMPORTANT>"

export const currentWording = {
  what: "function",
  second: "This is the value for the second parameter\nthat can span\nmultiple lines",
  reminder: "an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags"
} as const

/** A value as text between the parameter's tags: objects and arrays as JSON, scalars as Python prints them. */
const valueText = (value: Json): string =>
  typeof value === "object" && value !== null ? pythonJson(value) : str(value)

/** Calls as a model writes them, with no newline before the first. */
export const writeCalls = (out: Markup, calls: ReadonlyArray<MessageCall>): Markup => {
  for (const [index, call] of calls.entries()) {
    out
      .mark(`${index === 0 ? "" : "\n"}<tool_call>\n<function=`)
      .say(call.name)
      .mark(">\n")
    for (const [name, value] of Object.entries(call.arguments)) {
      out.mark("<parameter=").say(name).mark(">\n").say(valueText(value)).mark("\n</parameter>\n")
    }
    out.mark("</function>\n</tool_call>")
  }
  return out
}
