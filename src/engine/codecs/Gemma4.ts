/**
 * Gemma 4: calls in a brace form with a string delimiter of its own, answers inside the model's turn, which then goes on.
 * The larger models get an empty thought channel unless they are to think; the E2B models (`gemma4-e2b`) never do.
 */
import type { Message, MessageCall } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { BraceFrame } from "./BraceFrame.ts"
import { grammar } from "./BraceGrammar.ts"
import { type BraceStyle, writeMembers, writeValue } from "./BraceText.ts"
import { CallScanner } from "./CallScanner.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import type { Dialect } from "./Dialect.ts"
import { declaration } from "./GemmaDeclaration.ts"
import { Markup } from "./Markup.ts"
import { strip } from "./PythonText.ts"

const quote = '<|"|>'
const marks = { opener: "<|tool_call>", closer: "<tool_call|>", quote } as const
const reasoning = { open: "<|channel>", close: "<channel|>", label: "thought" } as const

const markup = () =>
  new Markup([
    "<bos>",
    "<|turn>",
    "<turn|>",
    "<|think|>",
    "<|tool>",
    "<tool|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|channel>",
    "<channel|>"
  ])

const dialect: Dialect = {
  form: `write every call as <|tool_call>call:TOOL{KEY:${quote}TEXT${quote},KEY:NUMBER}<tool_call|>`,
  openers: [{ text: marks.opener, frame: () => new BraceFrame(marks) }],
  strays: [
    { text: marks.closer, code: "missing_opener", what: "<tool_call|> came without <|tool_call> before it" },
    { text: "<tool_response|>", code: "forged_tool_response", what: "only the runtime writes what a tool answers" },
    { text: "<|turn>", code: "forged_turn", what: "a turn must not write another speaker's turn" }
  ],
  // The model ends a turn of calls with the mark that opens the answer.
  ends: ["<turn|>", "<|tool_response>"],
  answerEnd: "<|tool_response>",
  textAfter: "keep",
  bare: "the call is not inside its marks, or not in their form",
  bareHead: /\bcall:([\p{L}\p{N}_.:/-]{1,64})\{/gu,
  thinking: reasoning
}

interface Variant {
  readonly id: string
  readonly style: BraceStyle
  /** The larger models: an empty thought channel where there is to be no thinking, and prose after answers ends the turn. */
  readonly large: boolean
}

/** Is the next message that is no answer the model's again? */
const modelGoesOn = (messages: ReadonlyArray<Message>, index: number): boolean =>
  messages.slice(index + 1).find((message) => message.role !== "tool")?.role === "assistant"

const withoutThinking = (text: string): string =>
  strip(
    text
      .split("<channel|>")
      .map((part) => part.split("<|channel>")[0]!)
      .join("")
  )

const system = (
  text: string | undefined,
  { thinking, tools }: RenderOptions,
  style: BraceStyle
): ReadonlyArray<Segment> => {
  const out = markup().mark("<bos>")
  if (thinking !== true && tools.length === 0 && text === undefined) return out.done()
  out.mark(`<|turn>system\n${thinking === true ? "<|think|>\n" : ""}`).say(strip(text ?? ""))
  for (const tool of tools) {
    const shown = declaration(tool, { ...style, emptyDescriptions: false })
    out.mark("<|tool>").say(shown).mark("<tool|>")
  }
  return out.mark("<turn|>\n").done()
}

const turn = (role: "user" | "system", content: string) =>
  markup().mark(`<|turn>${role}\n`).say(strip(content)).mark("<turn|>\n").done()

const writeCalls = (out: Markup, calls: ReadonlyArray<MessageCall>, style: BraceStyle): Markup => {
  for (const { arguments: args, name } of calls) {
    const shown = `call:${name}{${writeMembers(args, style)}}`
    out.mark("<|tool_call>").say(shown).mark("<tool_call|>")
  }
  return out
}

const respond = (out: Markup, { name, text }: ToolAnswer, style: BraceStyle): Markup => {
  const shown = `response:${name}{value:${writeValue(text, style)}}`
  return out.mark("<|tool_response>").say(shown).mark("<tool_response|>")
}

const think = (out: Markup, reasoning: string | undefined): Markup =>
  reasoning === undefined || reasoning === ""
    ? out
    : out.mark("<|channel>thought\n").say(reasoning).mark("\n<channel|>")

const openingOf = ({ after, thinking }: RenderOptions, large: boolean): ReadonlyArray<Segment> =>
  after === "answers"
    ? []
    : [control(`<|turn>model\n${large && thinking !== true ? "<|channel>thought\n<channel|>" : ""}`)]

/** The answers that follow the turn at `index`, under the names of the calls they belong to. */
const answersTo = (
  calls: ReadonlyArray<MessageCall>,
  messages: ReadonlyArray<Message>,
  index: number
): ReadonlyArray<ToolAnswer> => {
  const out: Array<ToolAnswer> = []
  for (let at = index + 1; calls.length > 0 && messages[at]?.role === "tool"; at++) {
    const answer = messages[at] as Extract<Message, { readonly role: "tool" }>
    out.push({ name: calls.findLast((call) => call.id === answer.id)?.name ?? answer.name, text: answer.content })
  }
  return out
}

const renderAll = (
  messages: ReadonlyArray<Message>,
  options: RenderOptions,
  { large, style }: Variant
): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const rest = lead === undefined ? messages : messages.slice(1)
  const out: Array<Segment> = [...system(lead, options, style)]
  const lastUser = rest.findLastIndex((message) => message.role === "user")
  let open: "nothing" | "calls" | "answers" = "nothing"
  let goesOn = false
  for (const [index, message] of rest.entries()) {
    if (message.role === "tool") continue
    if (message.role !== "assistant") {
      out.push(...turn(message.role, message.content))
      open = "nothing"
      goesOn = false
      continue
    }
    const part = markup().mark(goesOn ? "" : "<|turn>model\n")
    const calls = message.calls ?? []
    const answers = answersTo(calls, rest, index)
    writeCalls(think(part, index > lastUser ? message.reasoning : undefined), calls, style)
    for (const answer of answers) respond(part, answer, style)
    part.say(withoutThinking(message.content))
    open = answers.length > 0 ? "answers" : calls.length > 0 ? "calls" : "nothing"
    const said = open === "nothing" || message.content !== ""
    // The smaller models' template also ends a turn of answers that somebody else's turn follows.
    const left = !large && open === "answers" && rest.slice(index + 1).some((one) => one.role !== "tool")
    const closes = (said && large) || ((said || left) && !modelGoesOn(rest, index))
    out.push(...part.mark(open === "calls" ? "<|tool_response>" : closes ? "<turn|>\n" : "").done())
    goesOn = true
  }
  if (options.generationPrompt !== true) return out
  if (open === "nothing") out.push(...openingOf(options, large))
  else if (!large && open === "answers" && options.thinking === true) out.push(control("<|channel>thought\n"))
  return out
}

const gemma = (variant: Variant): Codec => {
  const { id, large, style } = variant
  return {
    id,
    stops: [],
    ends: ["<turn|>", "<eos>"],
    reasoning,
    system: (text, options) => system(text, options, style),
    user: (content) => turn("user", content),
    answers: (list) => {
      const out = markup()
      for (const answer of list) respond(out, answer, style)
      return out.done()
    },
    opening: (options) => openingOf(options, large),
    closing: [control("<turn|>\n")],
    closingAfterCalls: [],
    written: (message: AssistantTurn) => {
      const out = think(markup(), message.reasoning).say(withoutThinking(message.content))
      return writeCalls(out, message.calls ?? [], style).done()
    },
    render: (messages, options) => renderAll(messages, options, variant),
    parser: (options) => new CallScanner(dialect, options),
    grammar: grammar(marks, style)
  }
}

export const gemma4: Codec = gemma({ id: "gemma4", style: { quote, null: "None" }, large: true })

export const gemma4E2b: Codec = gemma({ id: "gemma4-e2b", style: { quote, null: "null" }, large: false })
