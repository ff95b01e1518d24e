/**
 * The call syntax Qwen2.5, Qwen3 and Hermes have in common: one JSON object between `<tool_call>` and `</tool_call>`,
 * results between `<tool_response>` and `</tool_response>` in a user turn. No call ids: answers match by position.
 */
import type { JsonObject } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { type CompiledGrammar, jsonCalls } from "../Grammar.ts"
import type { MessageCall } from "../Message.ts"
import type { Segment } from "../Prompt.ts"
import { ends, markup, thinkTags } from "./ChatMl.ts"
import type { RenderOptions, ToolAnswer } from "./Codec.ts"
import type { Dialect } from "./Dialect.ts"
import { JsonFrame } from "./JsonFrame.ts"
import type { Markup } from "./Markup.ts"
import { pythonJson } from "./PythonJson.ts"

const envelope = { key: "arguments", type: "function" } as const

export const form = 'write every call as <tool_call>\n{"name": "TOOL", "arguments": {"KEY": VALUE}}\n</tool_call>'

/** A reader for one call, from behind its opening tag. */
export const jsonFrame = (): JsonFrame => new JsonFrame({ opener: "<tool_call>", closer: "</tool_call>", envelope })

/** How calls are read. A block of reasoning is accepted before the answer whether or not the family is known to write one. */
export const dialect: Dialect = {
  form,
  openers: [
    {
      text: "<tool_call>",
      frame: () => jsonFrame()
    }
  ],
  strays: [
    { text: "</tool_call>", code: "missing_opener", what: "</tool_call> came without <tool_call> before it" },
    {
      text: "<tool_response>",
      code: "forged_tool_response",
      what: "only the runtime writes <tool_response>, so end your turn after the call and wait for the answer"
    },
    { text: "</tool_response>", code: "forged_tool_response", what: "only the runtime writes </tool_response>" },
    { text: "<|im_start|>", code: "forged_turn", what: "a turn must not write another speaker's turn" }
  ],
  ends,
  textAfter: "keep",
  bare: "the call is not inside its tags",
  thinking: thinkTags
}

/** Grammar of one call: a newline inside each tag, as the family writes it. */
export const grammar = (tools: ReadonlyArray<ToolSpec>, argumentsFirst = false): CompiledGrammar | undefined =>
  jsonCalls(tools, {
    opener: "<tool_call>",
    closer: "</tool_call>",
    key: "arguments",
    around: ['"\\n"?', '"\\n"?'],
    argumentsFirst
  })

/** One tool as it stands in the `<tools>` list. */
export const toolLine = (tool: ToolSpec): string => {
  const before = toolLines.get(tool)
  if (before !== undefined) return before
  const line = pythonJson({
    type: "function",
    function: { name: tool.name, description: tool.description, parameters: tool.parameters }
  })
  toolLines.set(tool, line)
  return line
}

/** Specs are frozen with their registry and shown in every session. */
const toolLines = new WeakMap<ToolSpec, string>()

/** The system turn: system text (if any) and the tools with the instructions of the template. */
export const systemTurn = (system: string | undefined, { tools }: RenderOptions): ReadonlyArray<Segment> => {
  const out = markup()
    .mark("<|im_start|>system\n")
    .say(system ?? "")
  if (tools.length === 0) return out.mark("<|im_end|>\n").done()
  out.mark(
    `${system === undefined ? "" : "\n\n"}# Tools\n\nYou may call one or more functions to assist with the user query.\n\n` +
      "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
  )
  for (const tool of tools) out.mark("\n").say(toolLine(tool))
  return out
    .mark(
      "\n</tools>\n\nFor each function call, return a json object with function name and arguments within " +
        '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n' +
        "</tool_call><|im_end|>\n"
    )
    .done()
}

/** The answers of one turn share one user turn. */
export const answersTurn = (answers: ReadonlyArray<ToolAnswer>): ReadonlyArray<Segment> => {
  const out = markup().mark("<|im_start|>user")
  for (const answer of answers) out.mark("\n<tool_response>\n").say(answer.text).mark("\n</tool_response>")
  return out.mark("<|im_end|>\n").done()
}

/** Calls as a model writes them, each on lines of its own, with no newline before the first. */
export const writeCalls = (out: Markup, calls: ReadonlyArray<MessageCall>): Markup => {
  for (const [index, call] of calls.entries()) {
    out
      .mark(`${index === 0 ? "" : "\n"}<tool_call>\n`)
      .say(callJson(call.name, call.arguments))
      .mark("\n</tool_call>")
  }
  return out
}

// The name goes in as it is, as the template does it; names that were parsed or registered need no escape.
const callJson = (name: string, args: JsonObject): string => `{"name": "${name}", "arguments": ${pythonJson(args)}}`
