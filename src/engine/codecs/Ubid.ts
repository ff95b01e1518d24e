/**
 * A syntax that is taught in the prompt alone: tools have numbers and a call is `CALL([NUMBER]) WITH {…}`. For prompts that
 * were written for it; no other codec reads it. Turns are marked as ChatML.
 */
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { headedCalls } from "../Grammar.ts"
import { CallScanner } from "./CallScanner.ts"
import * as ChatMl from "./ChatMl.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import { renderAppended, type Turns } from "./Conversation.ts"
import type { Dialect } from "./Dialect.ts"
import { pythonJson } from "./PythonJson.ts"
import { UbidFrame } from "./UbidFrame.ts"

const dialect: Dialect = {
  form: 'write every call as CALL([NUMBER]) WITH {"KEY": VALUE}',
  openers: [{ text: "CALL([", frame: (options) => new UbidFrame(options.tools) }],
  strays: [
    {
      text: "RESULT([",
      code: "forged_tool_response",
      what: "only the runtime writes RESULT, so end your turn after the call"
    },
    { text: "<|im_start|>", code: "forged_turn", what: "a turn must not write another speaker's turn" }
  ],
  ends: ChatMl.ends,
  textAfter: "keep",
  bare: "the call does not follow CALL([NUMBER]) WITH",
  thinking: ChatMl.thinkTags
}

const toolLine = (tool: ToolSpec, index: number): string =>
  `[${index + 1}] ${tool.name}: ${tool.description} ${pythonJson(tool.parameters)}\n`

const system = (text: string | undefined, { tools }: RenderOptions) => {
  const out = ChatMl.markup()
    .mark("<|im_start|>system\n")
    .say(text ?? "You are a helpful assistant.")
  if (tools.length === 0) return out.mark("<|im_end|>\n").done()
  out.mark("\n\nThese tools are there, each with its number and the JSON Schema of its arguments:\n")
  out.say(tools.map(toolLine).join(""))
  return out
    .mark(
      '\nTo call one, write a line CALL([NUMBER]) WITH {"KEY": "VALUE"} and end your turn. Its answer comes as a line ' +
        "RESULT([NAME]). When you need no tool, answer in plain text.<|im_end|>\n"
    )
    .done()
}

const answers = (list: ReadonlyArray<ToolAnswer>) =>
  ChatMl.markup()
    .mark("<|im_start|>user\n")
    .say(list.map((answer) => `RESULT([${answer.name}]) ${answer.text}`).join("\n"))
    .mark("<|im_end|>\n")
    .done()

const written = (turn: AssistantTurn, options?: RenderOptions) => {
  const calls = (turn.calls ?? []).map((call) => {
    const index = options?.tools.findIndex((tool) => tool.name === call.name) ?? -1
    return `CALL([${index < 0 ? call.name : index + 1}]) WITH ${pythonJson(call.arguments)}`
  })
  return ChatMl.markup()
    .say([...(turn.content === "" ? [] : [turn.content]), ...calls].join("\n"))
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

export const ubid: Codec = {
  id: "ubid",
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
  grammar: (tools) =>
    headedCalls(tools, {
      opener: "CALL([",
      label: (index) => String(index + 1),
      parts: ["", '"]) WITH "', ""],
      marks: {}
    })
}
