/**
 * A call syntax of ours for models that were trained on none: one JSON object on a line of its own, several as an array or
 * one after the other, nothing behind them. Turns are marked as ChatML. Answers say which tool they are from and are JSON
 * objects of the type `tool_result`.
 */

import * as Result from "effect/Result"
import { isObject, type Json, parse } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { bareCalls } from "../Grammar.ts"
import { BareJsonFrame } from "./BareJsonFrame.ts"
import { CallScanner } from "./CallScanner.ts"
import * as ChatMl from "./ChatMl.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import { renderAppended, type Turns } from "./Conversation.ts"
import type { Dialect, Opener } from "./Dialect.ts"
import { pythonJson } from "./PythonJson.ts"

const envelope = { key: "arguments", type: "tool_call" } as const

const frameOptions = { envelope, ends: ChatMl.ends, arrays: true } as const

const opener = (text: string): Opener => ({
  text,
  tentative: true,
  frame: (options, start) => new BareJsonFrame(frameOptions, options, text, start)
})

const dialect: Dialect = {
  form: 'write a call as {"type": "tool_call", "name": "TOOL", "arguments": {"KEY": VALUE}} on a line of its own and end your turn there',
  openers: [opener("\n{"), opener("\n[")],
  lead: [opener("{"), opener("[")],
  strays: [{ text: "<|im_start|>", code: "forged_turn", what: "a turn must not write another speaker's turn" }],
  ends: ChatMl.ends,
  textAfter: "malformed",
  bare: "the call does not begin a line of its own outside code blocks",
  thinking: ChatMl.thinkTags
}

const toolLine = ({ description, name, parameters }: ToolSpec): string => pythonJson({ name, description, parameters })

const system = (text: string | undefined, { tools }: RenderOptions) => {
  const out = ChatMl.markup()
    .mark("<|im_start|>system\n")
    .say(text ?? "You are a helpful assistant.")
  if (tools.length === 0) return out.mark("<|im_end|>\n").done()
  out.mark("\n\nTools are there for what you cannot know or do yourself. Each line is the JSON Schema of one:\n")
  for (const tool of tools) out.say(`${toolLine(tool)}\n`)
  return out
    .mark(
      '\nTo call one, write only this, on a line of its own, and end your turn:\n{"type": "tool_call", "name": "TOOL", ' +
        '"arguments": {"KEY": "VALUE"}}\nSeveral calls go one per line. Results come back as {"type": "tool_result", …}. ' +
        "When you need no tool, answer in plain text.<|im_end|>\n"
    )
    .done()
}

const answers = (list: ReadonlyArray<ToolAnswer>) => {
  const out = ChatMl.markup().mark("<|im_start|>user\n")
  const lines = list.map((answer) => pythonJson({ type: "tool_result", name: answer.name, ...resultOf(answer.text) }))
  return out.say(lines.join("\n")).mark("<|im_end|>\n").done()
}

/** The answer object of a call is spread into the line; any other text stays the text it is. */
const resultOf = (text: string): { readonly [key: string]: Json } => {
  const read = parse(text, { maxDepth: 100 })
  if (Result.isFailure(read) || !isObject(read.success) || typeof read.success["ok"] !== "boolean")
    return { content: text }
  const { name: _name, type: _type, ...rest } = read.success
  return rest
}

const written = (turn: AssistantTurn) => {
  const lines = (turn.calls ?? []).map((call) =>
    pythonJson({
      type: "tool_call",
      ...(call.id === undefined ? {} : { id: call.id }),
      name: call.name,
      arguments: call.arguments
    })
  )
  return ChatMl.markup()
    .say([...(turn.content === "" ? [] : [turn.content]), ...lines].join("\n"))
    .done()
}

const turns: Turns = {
  system,
  laterSystem: (content) => ChatMl.turn("system", content),
  user: (content) => ChatMl.turn("user", content),
  answers,
  opening: () => ChatMl.opening,
  closing: ChatMl.closing,
  written
}

export const genericJson: Codec = {
  id: "generic-json",
  stops: [],
  reasoning: ChatMl.thinkTags,
  system,
  user: turns.user,
  answers,
  opening: turns.opening,
  closing: turns.closing,
  written,
  render: (messages, options) => renderAppended(turns, messages, options),
  parser: (options) => new CallScanner(dialect, options),
  grammar: (tools) =>
    bareCalls(tools, {
      openings: (name) => [
        { text: `{"type": "tool_call", "name": "${name}", "arguments": `, atLine: true },
        { text: `{"type":"tool_call","name":"${name}","arguments":`, atLine: true }
      ]
    })
}
