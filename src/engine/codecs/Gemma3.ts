/**
 * Gemma 2 and 3, whose templates know neither tools nor a system turn: our JSON lines (`generic-json`) between Gemma's turn marks.
 * System text and tools stand at the head of the first question, as Gemma 3's template puts a system text; in a live session
 * they are a turn before it. Without tools the prompt is the official one.
 */
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import type { AssistantTurn, Codec, RenderOptions } from "./Codec.ts"
import { grouped } from "./Conversation.ts"
import { answerLines, jsonLines, lineGrammar, tellTools, turnLines } from "./GenericJson.ts"
import { Markup } from "./Markup.ts"
import { strip } from "./PythonText.ts"

const begin = "<bos>"
const userTurn = "<start_of_turn>user\n"
const endOfTurn = "<end_of_turn>\n"

const markup = () => new Markup([begin, "<start_of_turn>", "<end_of_turn>"])

const dialect = jsonLines("<start_of_turn>", ["<end_of_turn>"])

/** System text and tools, with the empty line that sets them off; nothing where there is neither. */
const head = (out: Markup, text: string | undefined, { tools }: RenderOptions): Markup => {
  if (text === undefined && tools.length === 0) return out
  return tellTools(out.say(text ?? "You are a helpful assistant."), tools).mark("\n\n")
}

const user = (content: string): ReadonlyArray<Segment> =>
  markup().mark(userTurn).say(strip(content)).mark(endOfTurn).done()

const system = (text: string | undefined, options: RenderOptions): ReadonlyArray<Segment> => {
  const out = markup().mark(begin)
  if (text === undefined && options.tools.length === 0) return out.done()
  return tellTools(out.mark(userTurn).say(text ?? "You are a helpful assistant."), options.tools)
    .mark(endOfTurn)
    .done()
}

const written = (turn: AssistantTurn): ReadonlyArray<Segment> =>
  markup()
    .say(turnLines({ ...turn, content: strip(turn.content) }))
    .done()

const opening = [control("<start_of_turn>model\n")]
const closing = [control(endOfTurn)]

const render = (messages: ReadonlyArray<Message>, options: RenderOptions): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const out: Array<Segment> = [control(begin)]
  let first = true
  for (const group of grouped(lead === undefined ? messages : messages.slice(1))) {
    if (group.kind === "answers") out.push(...user(answerLines(group.answers)))
    else if (group.message.role === "assistant") out.push(...opening, ...written(group.message), ...closing)
    else {
      const turn = markup().mark(userTurn)
      if (first) head(turn, lead, options)
      out.push(...turn.say(strip(group.message.content)).mark(endOfTurn).done())
      first = false
    }
  }
  return options.generationPrompt === true ? [...out, ...opening] : out
}

export const gemma3: Codec = {
  id: "gemma3",
  stops: [],
  ends: ["<end_of_turn>", "<eos>"],
  system,
  user,
  answers: (list) => user(answerLines(list)),
  opening: () => opening,
  closing,
  written,
  render,
  parser: (options) => new CallScanner(dialect, options),
  grammar: lineGrammar
}
