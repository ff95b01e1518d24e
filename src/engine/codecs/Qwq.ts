/**
 * QwQ: the call syntax of Qwen2.5 in a model that always thinks. Its template knows no field for reasoning and prints none, drops
 * it from old answers that hold it in their text, and leaves an empty line where the system text would stand.
 */
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import * as ChatMl from "./ChatMl.ts"
import type { AssistantTurn, Codec, RenderOptions } from "./Codec.ts"
import { grouped } from "./Conversation.ts"
import { lstripNewlines } from "./PythonText.ts"
import { answersTurn, dialect, grammar, systemTurn, writeCalls } from "./TaggedJson.ts"

const system = (text: string | undefined, options: RenderOptions): ReadonlyArray<Segment> =>
  text === undefined && options.tools.length === 0 ? [] : systemTurn(text ?? "", options)

const turn = (content: string, calls: AssistantTurn["calls"], spaced: boolean): ReadonlyArray<Segment> => {
  const out = ChatMl.markup().say(content)
  if (calls !== undefined && calls.length > 0 && spaced) out.mark("\n")
  return writeCalls(out, calls ?? []).done()
}

/** The opening has begun the block. */
const written = (message: AssistantTurn): ReadonlyArray<Segment> => [
  ...ChatMl.markup()
    .say(message.reasoning ?? "")
    .mark("\n</think>\n\n")
    .done(),
  ...turn(message.content, message.calls, message.content !== "")
]

/** A turn of the past; the last one is shown as it is. */
const history = (message: AssistantTurn, last: boolean): ReadonlyArray<Segment> => {
  const answer = message.content.slice(afterThinking(message.content))
  const content = last ? message.content : lstripNewlines(answer)
  return turn(content, message.calls, message.content !== "")
}

const afterThinking = (content: string): number => {
  const at = content.lastIndexOf("</think>")
  return at < 0 ? 0 : at + "</think>".length
}

const opening = [control("<|im_start|>assistant\n<think>\n")]

const render = (messages: ReadonlyArray<Message>, options: RenderOptions): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const out = [...system(lead, options)]
  const groups = grouped(lead === undefined ? messages : messages.slice(1))
  for (const [index, group] of groups.entries()) {
    if (group.kind === "answers") out.push(...answersTurn(group.answers))
    else if (group.message.role === "assistant")
      out.push(...ChatMl.opening, ...history(group.message, index === groups.length - 1), ...ChatMl.closing)
    else out.push(...ChatMl.turn(group.message.role, group.message.content))
  }
  return options.generationPrompt === true ? [...out, ...opening] : out
}

export const qwq: Codec = {
  id: "qwq",
  stops: [],
  ends: ChatMl.ends,
  reasoning: ChatMl.thinkTags,
  system,
  user: (content) => ChatMl.turn("user", content),
  answers: answersTurn,
  opening: () => opening,
  closing: ChatMl.closing,
  written,
  render,
  parser: (options) => new CallScanner(dialect, options),
  grammar: (tools) => grammar(tools)
}
