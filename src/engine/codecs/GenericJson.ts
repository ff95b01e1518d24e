/**
 * A call syntax of ours for models that were trained on none: one JSON object on a line of its own, several as an array or
 * one after the other, nothing behind them. Turns are marked as ChatML. Answers say which tool they are from and are JSON
 * objects of the type `tool_result`. The syntax is there for other turn marks too (`Gemma3`).
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
import type { Dialect, Opener, Stray } from "./Dialect.ts"
import type { Markup } from "./Markup.ts"
import { pythonJson } from "./PythonJson.ts"

const envelope = { key: "arguments", type: "tool_call" } as const

const resultType = "tool_result"

/** How calls are read between the turn marks of some family: `begins` opens a turn, `ends` close one. */
export const jsonLines = (begins: string, ends: ReadonlyArray<string>): Dialect => {
  const strays: ReadonlyArray<Stray> = [
    { text: begins, code: "forged_turn", what: "a turn must not write another speaker's turn" }
  ]
  const opener = (text: string): Opener => ({
    text,
    tentative: true,
    frame: (options, start) =>
      new BareJsonFrame({ envelope, ends, strays, resultType, arrays: true }, options, text, start)
  })
  return {
    form: 'write a call as {"type": "tool_call", "name": "TOOL", "arguments": {"KEY": VALUE}} on a line of its own and end your turn there',
    openers: [opener("\n{"), opener("\n[")],
    lead: [opener("{"), opener("[")],
    strays,
    ends,
    textAfter: "malformed",
    bare: "the call does not begin a line of its own outside code blocks",
    resultType
  }
}

const dialect: Dialect = { ...jsonLines("<|im_start|>", ChatMl.ends), thinking: ChatMl.thinkTags }

const toolLine = ({ description, name, parameters }: ToolSpec): string => pythonJson({ name, description, parameters })

/** Tells a model of its tools and how to call them. Nothing where there are none. */
export const tellTools = (out: Markup, tools: ReadonlyArray<ToolSpec>): Markup => {
  if (tools.length === 0) return out
  out.mark("\n\nTools are there for what you cannot know or do yourself. Each line is the JSON Schema of one:\n")
  for (const tool of tools) out.say(`${toolLine(tool)}\n`)
  return out.mark(
    '\nTo call one, write only this, on a line of its own, and end your turn:\n{"type": "tool_call", "name": "TOOL", ' +
      '"arguments": {"KEY": "VALUE"}}\nSeveral calls go one per line. Results come back as {"type": "tool_result", …}. ' +
      "When you need no tool, answer in plain text."
  )
}

const system = (text: string | undefined, { tools }: RenderOptions) =>
  tellTools(
    ChatMl.markup()
      .mark("<|im_start|>system\n")
      .say(text ?? "You are a helpful assistant."),
    tools
  )
    .mark("<|im_end|>\n")
    .done()

/** One line per answer. */
export const answerLines = (list: ReadonlyArray<ToolAnswer>): string =>
  list.map((answer) => pythonJson({ type: resultType, name: answer.name, ...resultOf(answer.text) })).join("\n")

const answers = (list: ReadonlyArray<ToolAnswer>) =>
  ChatMl.markup().mark("<|im_start|>user\n").say(answerLines(list)).mark("<|im_end|>\n").done()

/** The answer object of a call is spread into the line; any other text stays the text it is. */
const resultOf = (text: string): { readonly [key: string]: Json } => {
  const read = parse(text, { maxDepth: 100 })
  if (Result.isFailure(read) || !isObject(read.success) || typeof read.success["ok"] !== "boolean")
    return { content: text }
  const { name: _name, type: _type, ...rest } = read.success
  return rest
}

/** Prose, then a line per call. */
export const turnLines = (turn: AssistantTurn): string => {
  const lines = (turn.calls ?? []).map((call) =>
    pythonJson({
      type: "tool_call",
      ...(call.id === undefined ? {} : { id: call.id }),
      name: call.name,
      arguments: call.arguments
    })
  )
  return [...(turn.content === "" ? [] : [turn.content]), ...lines].join("\n")
}

const written = (turn: AssistantTurn) => ChatMl.markup().say(turnLines(turn)).done()

export const lineGrammar = (tools: ReadonlyArray<ToolSpec>) =>
  bareCalls(tools, {
    openings: (name) => [
      { text: `{"type": "tool_call", "name": "${name}", "arguments": `, atLine: true },
      { text: `{"type":"tool_call","name":"${name}","arguments":`, atLine: true }
    ]
  })

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
  ends: ChatMl.ends,
  reasoning: ChatMl.thinkTags,
  system,
  user: turns.user,
  answers,
  opening: turns.opening,
  closing: turns.closing,
  written,
  render: (messages, options) => renderAppended(turns, messages, options),
  parser: (options) => new CallScanner(dialect, options),
  grammar: lineGrammar
}
