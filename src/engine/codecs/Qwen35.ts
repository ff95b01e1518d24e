/**
 * Qwen3.5: calls as functions with parameter blocks, tools as JSON lines before the system text, and reasoning whose block
 * the prompt opens (thinking off: an empty block instead). Contents are stripped. Reasoning of earlier exchanges is not
 * part of history in the template.
 */
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import * as ChatMl from "./ChatMl.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import { grouped } from "./Conversation.ts"
import { strip } from "./PythonText.ts"
import { toolLine } from "./TaggedJson.ts"
import { currentWording, dialectEither, grammar, instructions, writeCalls } from "./TaggedXml.ts"
import { keptParts, lastQuery } from "./ThinkHistory.ts"

const system = (text: string | undefined, { tools }: RenderOptions): ReadonlyArray<Segment> => {
  const content = strip(text ?? "")
  if (tools.length === 0) return text === undefined ? [] : ChatMl.turn("system", content)
  const out = ChatMl.markup().mark(
    "<|im_start|>system\n# Tools\n\nYou have access to the following functions:\n\n<tools>"
  )
  for (const tool of tools) out.mark("\n").say(toolLine(tool))
  out.mark(`\n</tools>${instructions(currentWording)}`)
  return out
    .mark(content === "" ? "" : "\n\n")
    .say(content)
    .mark("<|im_end|>\n")
    .done()
}

const answers = (list: ReadonlyArray<ToolAnswer>): ReadonlyArray<Segment> => {
  const out = ChatMl.markup().mark("<|im_start|>user")
  for (const answer of list) out.mark("\n<tool_response>\n").say(strip(answer.text)).mark("\n</tool_response>")
  return out.mark("<|im_end|>\n").done()
}

const turn = (
  content: string,
  calls: AssistantTurn["calls"],
  reasoning: string | undefined
): ReadonlyArray<Segment> => {
  const out = ChatMl.markup()
  if (reasoning !== undefined) out.mark("<think>\n").say(reasoning).mark("\n</think>\n\n")
  out.say(content)
  if (calls !== undefined && calls.length > 0 && strip(content) !== "") out.mark("\n\n")
  return writeCalls(out, calls ?? []).done()
}

const written = (message: AssistantTurn, options?: RenderOptions): ReadonlyArray<Segment> => {
  const { content, reasoning } = keptParts({ ...message, content: strip(message.content) })
  const out = ChatMl.markup()
  // The opening has begun the block already, or written an empty one.
  if (options?.thinking !== false) out.say(strip(reasoning)).mark("\n</think>\n\n")
  return [...out.done(), ...turn(content, message.calls, undefined)]
}

const opening = (options: RenderOptions): ReadonlyArray<Segment> =>
  options.thinking === false ? [...ChatMl.opening, ChatMl.emptyThink] : [control("<|im_start|>assistant\n<think>\n")]

const render = (messages: ReadonlyArray<Message>, options: RenderOptions): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const out = [...system(lead, options)]
  const query = lastQuery(messages.map((message) => ({ ...message, content: strip(message.content) })))
  let index = 0
  for (const group of grouped(messages)) {
    const first = index
    index += group.kind === "answers" ? group.answers.length : 1
    if (group.kind === "answers") out.push(...answers(group.answers))
    else if (group.message.role === "user") out.push(...ChatMl.turn("user", strip(group.message.content)))
    else if (group.message.role === "assistant") {
      const { content, reasoning } = keptParts({ ...group.message, content: strip(group.message.content) })
      const shown = first > query ? strip(reasoning) : undefined
      out.push(...ChatMl.opening, ...turn(content, group.message.calls, shown), ...ChatMl.closing)
    } else if (first > 0) out.push(...ChatMl.turn("system", strip(group.message.content)))
  }
  return options.generationPrompt === true ? [...out, ...opening(options)] : out
}

export const qwen35: Codec = {
  id: "qwen3.5",
  stops: [],
  reasoning: ChatMl.thinkTags,
  system,
  user: (content) => ChatMl.turn("user", strip(content)),
  answers,
  opening,
  closing: ChatMl.closing,
  written,
  render,
  parser: (options) => new CallScanner(dialectEither, options),
  grammar
}
