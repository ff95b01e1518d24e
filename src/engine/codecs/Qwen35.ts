/**
 * Qwen3.5: calls as functions with parameter blocks, tools as JSON lines before the system text, and reasoning whose block
 * the prompt opens (thinking off: an empty block instead). Contents are stripped. Reasoning of earlier exchanges is not
 * part of history in the template. Qwen3.8 speaks alike; it is told how much to think and keeps all reasoning.
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

/** What a generation says of itself in the system turn. */
type Lead = (options: RenderOptions) => string

const noLead: Lead = () => ""

/** The template's own default; how much to think is not chosen here. */
const effort: Lead = ({ thinking }) =>
  thinking === false
    ? ""
    : "Reasoning effort is set to xhigh. Please think carefully through the task, validate key assumptions, consider plausible " +
      "alternatives, and prioritize correctness, consistency, and clarity in the final answer."

const system = (text: string | undefined, options: RenderOptions, lead: Lead): ReadonlyArray<Segment> => {
  const content = strip(text ?? "")
  const first = lead(options)
  const out = ChatMl.markup().mark(`<|im_start|>system\n${first}`)
  if (options.tools.length === 0) {
    if (first === "" && text === undefined) return []
    return out
      .mark(first === "" || content === "" ? "" : "\n\n")
      .say(content)
      .mark("<|im_end|>\n")
      .done()
  }
  out.mark(first === "" ? "" : "\n\n").mark("# Tools\n\nYou have access to the following functions:\n\n<tools>")
  for (const tool of options.tools) out.mark("\n").say(toolLine(tool))
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

/** Without a leading effort only reasoning after the last question is shown. */
const render = (messages: ReadonlyArray<Message>, options: RenderOptions, leads: Lead): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const out = [...system(lead, options, leads)]
  const query = lastQuery(messages.map((message) => ({ ...message, content: strip(message.content) })))
  let index = 0
  for (const group of grouped(messages)) {
    const first = index
    index += group.kind === "answers" ? group.answers.length : 1
    if (group.kind === "answers") out.push(...answers(group.answers))
    else if (group.message.role === "user") out.push(...ChatMl.turn("user", strip(group.message.content)))
    else if (group.message.role === "assistant") {
      const { content, reasoning } = keptParts({ ...group.message, content: strip(group.message.content) })
      const shown = first > query || leads === effort ? strip(reasoning) : undefined
      out.push(...ChatMl.opening, ...turn(content, group.message.calls, shown), ...ChatMl.closing)
    } else if (first > 0) out.push(...ChatMl.turn("system", strip(group.message.content)))
  }
  return options.generationPrompt === true ? [...out, ...opening(options)] : out
}

const codec = (id: string, lead: Lead): Codec => ({
  id,
  stops: [],
  ends: ChatMl.ends,
  reasoning: ChatMl.thinkTags,
  system: (text, options) => system(text, options, lead),
  user: (content) => ChatMl.turn("user", strip(content)),
  answers,
  opening,
  closing: ChatMl.closing,
  written,
  render: (messages, options) => render(messages, options, lead),
  parser: (options) => new CallScanner(dialectEither, options),
  grammar
})

export const qwen35: Codec = codec("qwen3.5", noLead)

export const qwen38: Codec = codec("qwen3.8", effort)
