/**
 * Qwen3: the call syntax of Qwen2.5 with reasoning. Thinking is switched off by an empty block in the assistant's opening;
 * models that always think have the block opened for them (`qwen3-thinking`). The template drops the reasoning of earlier
 * exchanges from history, so its rendering is not append-only; the increments keep what was in context.
 */
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import * as ChatMl from "./ChatMl.ts"
import type { AssistantTurn, Codec, RenderOptions } from "./Codec.ts"
import { grouped } from "./Conversation.ts"
import { lstripNewlines, stripNewlines } from "./PythonText.ts"
import { answersTurn, dialect, grammar, systemTurn, writeCalls } from "./TaggedJson.ts"
import { keptParts, lastQuery } from "./ThinkHistory.ts"

const system = (text: string | undefined, options: RenderOptions): ReadonlyArray<Segment> =>
  text === undefined && options.tools.length === 0 ? [] : systemTurn(text, options)

/** A turn with its reasoning block, or without one. */
const turn = (
  content: string,
  calls: AssistantTurn["calls"],
  reasoning: string | undefined
): ReadonlyArray<Segment> => {
  const out = ChatMl.markup()
  if (reasoning !== undefined) out.mark("<think>\n").say(reasoning).mark("\n</think>\n\n")
  out.say(content)
  if (calls !== undefined && calls.length > 0 && content !== "") out.mark("\n")
  return writeCalls(out, calls ?? []).done()
}

const written = (message: AssistantTurn): ReadonlyArray<Segment> =>
  turn(message.content, message.calls, message.reasoning === undefined ? undefined : stripNewlines(message.reasoning))

/** History as the template shows it: reasoning only after the last question, and an empty block in a last turn without any. */
const history = (message: AssistantTurn, afterQuery: boolean, last: boolean): ReadonlyArray<Segment> => {
  const { content, reasoning } = keptParts(message)
  if (!afterQuery || (!last && reasoning === "")) return turn(content, message.calls, undefined)
  const stripped = lstripNewlines(content)
  const out = ChatMl.markup().mark("<think>\n").say(stripNewlines(reasoning)).mark("\n</think>\n\n").say(stripped)
  // The newline before the first call goes by the content before it was stripped.
  if ((message.calls ?? []).length > 0 && content !== "") out.mark("\n")
  return writeCalls(out, message.calls ?? []).done()
}

const qwen3Codec = (id: string, alwaysThinks: boolean): Codec => {
  const opening = (options: RenderOptions): ReadonlyArray<Segment> => {
    if (alwaysThinks) return [control("<|im_start|>assistant\n<think>\n")]
    return options.thinking === false ? [...ChatMl.opening, ChatMl.emptyThink] : ChatMl.opening
  }
  const render = (messages: ReadonlyArray<Message>, options: RenderOptions): ReadonlyArray<Segment> => {
    const lead = messages[0]?.role === "system" ? messages[0].content : undefined
    const out = [...system(lead, options)]
    const query = lastQuery(messages)
    let index = 0
    for (const group of grouped(messages)) {
      const first = index
      index += group.kind === "answers" ? group.answers.length : 1
      if (group.kind === "answers") out.push(...answersTurn(group.answers))
      else if (group.message.role === "user") out.push(...ChatMl.turn("user", group.message.content))
      else if (group.message.role === "assistant") {
        out.push(
          ...ChatMl.opening,
          ...history(group.message, first > query, index === messages.length),
          ...ChatMl.closing
        )
      } else if (first > 0) out.push(...ChatMl.turn("system", group.message.content))
    }
    return options.generationPrompt === true ? [...out, ...opening(options)] : out
  }
  return {
    id,
    stops: [],
    ends: ChatMl.ends,
    reasoning: ChatMl.thinkTags,
    system,
    user: (content) => ChatMl.turn("user", content),
    answers: answersTurn,
    opening,
    closing: ChatMl.closing,
    written,
    render,
    parser: (options) => new CallScanner(dialect, options),
    grammar: (tools) => grammar(tools)
  }
}

export const qwen3: Codec = qwen3Codec("qwen3", false)

export const qwen3Thinking: Codec = qwen3Codec("qwen3-thinking", true)
