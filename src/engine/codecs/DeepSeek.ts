/**
 * DeepSeek V3 (`deepseek-v3`), the R1 distillations, whose prompt opens the reasoning (`deepseek-r1`), and V3.1. The official templates
 * do not print tools at all: the codec writes them behind the system text, in the form the makers publish. V3's template
 * leaves out end marks after a single call and its own opening in later rounds; `render` does the same, live sessions do not.
 */
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { headedCalls } from "../Grammar.ts"
import type { Message, MessageCall } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import { DeepSeekFrame } from "./DeepSeekFrame.ts"
import type { Dialect } from "./Dialect.ts"
import { Markup } from "./Markup.ts"
import { pythonJson } from "./PythonJson.ts"

const begin = "<｜begin▁of▁sentence｜>"
const end = "<｜end▁of▁sentence｜>"
const callMarks = ["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"]
const outputMarks = [
  "<｜tool▁outputs▁begin｜>",
  "<｜tool▁output▁begin｜>",
  "<｜tool▁output▁end｜>",
  "<｜tool▁outputs▁end｜>"
]
const speakers = ["<｜User｜>", "<｜Assistant｜>"]
const reasoning = { open: "<think>", close: "</think>" } as const

const markup = () =>
  new Markup([begin, end, "<｜tool▁calls▁begin｜>", ...callMarks, ...outputMarks, ...speakers, "<think>", "</think>"])

const example = {
  fenced:
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>TOOL\n```json\n{"KEY": VALUE}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  bare: '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>TOOL<｜tool▁sep｜>{"KEY": VALUE}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
}

const dialect = (fenced: boolean): Dialect => ({
  form: `write calls as ${fenced ? example.fenced : example.bare}`,
  openers: [{ text: "<｜tool▁calls▁begin｜>", frame: () => new DeepSeekFrame(fenced) }],
  strays: [
    ...callMarks.map((text) => ({
      text,
      code: "missing_opener" as const,
      what: `${text} came without <｜tool▁calls▁begin｜> before it`
    })),
    ...outputMarks.map((text) => ({
      text,
      code: "forged_tool_response" as const,
      what: `only the runtime writes ${text}, so end your turn after the call`
    })),
    ...speakers.map((text) => ({
      text,
      code: "forged_turn" as const,
      what: "a turn must not write another speaker's turn"
    }))
  ],
  ends: [end],
  textAfter: "keep",
  bare: "the call is not inside its section",
  thinking: reasoning
})

/** Grammar of one whole section, which may hold several calls. */
const grammarOf = (fenced: boolean) => (tools: ReadonlyArray<ToolSpec>) =>
  headedCalls(tools, {
    opener: "<｜tool▁calls▁begin｜>",
    closer: "<｜tool▁calls▁end｜>",
    parts: fenced
      ? ['callbegin "function" sep', '"\\n```json\\n"', '"\\n```" callend']
      : ["callbegin", "sep", "callend"],
    marks: { callbegin: callMarks[0]!, sep: callMarks[1]!, callend: callMarks[2]! }
  })

/** The tools, as they follow the system text. */
const listTools = (out: Markup, tools: ReadonlyArray<ToolSpec>, fenced: boolean): Markup => {
  if (tools.length === 0) return out
  out.mark("\n\n## Tools\nYou have access to the following tools:\n")
  for (const { description, name, parameters } of tools) {
    out.say(`\n### ${name}\nDescription: ${description}\n\nParameters: ${pythonJson(parameters)}\n`)
  }
  return out.mark(
    `\nTo call tools, write exactly this, with one part per call and nothing between them:\n${fenced ? example.fenced : example.bare}\n`
  )
}

/** All system texts stand together at the beginning. */
const systemTexts = (messages: ReadonlyArray<Message>): string | undefined => {
  const texts = messages.filter((message) => message.role === "system").map((message) => message.content)
  return texts.length === 0 ? undefined : texts.join("\n\n")
}

const system =
  (fenced: boolean) =>
  (text: string | undefined, { tools }: RenderOptions): ReadonlyArray<Segment> =>
    listTools(
      markup()
        .mark(begin)
        .say(text ?? ""),
      tools,
      fenced
    ).done()

const user = (content: string) => markup().mark("<｜User｜>").say(content).done()

const call = (out: Markup, { arguments: args, name }: MessageCall, fenced: boolean): Markup => {
  out.mark(`<｜tool▁call▁begin｜>${fenced ? "function<｜tool▁sep｜>" : ""}`).say(name)
  out.mark(fenced ? "\n```json\n" : "<｜tool▁sep｜>").say(pythonJson(args))
  return out.mark(`${fenced ? "\n```" : ""}<｜tool▁call▁end｜>`)
}

const written =
  (fenced: boolean) =>
  (turn: AssistantTurn): ReadonlyArray<Segment> => {
    const out = markup().say(turn.content)
    const calls = turn.calls ?? []
    if (calls.length === 0) return out.done()
    out.mark("<｜tool▁calls▁begin｜>")
    for (const [index, one] of calls.entries()) call(index > 0 && fenced ? out.mark("\n") : out, one, fenced)
    return out.mark("<｜tool▁calls▁end｜>").done()
  }

const output = (out: Markup, text: string): Markup =>
  out.mark("<｜tool▁output▁begin｜>").say(text).mark("<｜tool▁output▁end｜>")

const answersV3 = (list: ReadonlyArray<ToolAnswer>): ReadonlyArray<Segment> => {
  const out = markup().mark("<｜tool▁outputs▁begin｜>")
  for (const [index, { text }] of list.entries()) output(index > 0 ? out.mark("\n") : out, text)
  return out.mark("<｜tool▁outputs▁end｜>").done()
}

const answersV31 = (list: ReadonlyArray<ToolAnswer>): ReadonlyArray<Segment> => {
  const out = markup()
  for (const { text } of list) output(out, text)
  return out.done()
}

/** V3's template, whose marks depend on whether anything was called or answered before, anywhere in the conversation. */
const renderV3 = (
  messages: ReadonlyArray<Message>,
  options: RenderOptions,
  thinks: boolean
): ReadonlyArray<Segment> => {
  const out = listTools(
    markup()
      .mark(begin)
      .say(systemTexts(messages) ?? ""),
    options.tools,
    true
  )
  let called = false
  let answered = false
  let afterAnswer = false
  for (const message of messages) {
    if (message.role === "user") {
      afterAnswer = false
      out.mark("<｜User｜>").say(message.content)
    } else if (message.role === "tool") {
      output(out.mark(answered ? "\n" : "<｜tool▁outputs▁begin｜>"), message.content)
      answered = true
      afterAnswer = true
    } else if (message.role === "assistant") {
      const calls = message.calls ?? []
      if (calls.length === 0 || message.content !== "") {
        out
          .mark(afterAnswer ? "<｜tool▁outputs▁end｜>" : "<｜Assistant｜>")
          .say(thinks && !afterAnswer ? afterThinking(message.content) : message.content)
          .mark(end)
      }
      for (const one of calls) {
        call(out.mark(called ? "\n" : "<｜Assistant｜><｜tool▁calls▁begin｜>"), one, true).mark(
          called ? `<｜tool▁calls▁end｜>${end}` : ""
        )
        called = true
      }
      afterAnswer = false
    }
  }
  if (afterAnswer) out.mark("<｜tool▁outputs▁end｜>")
  else if (options.generationPrompt === true) out.mark(thinks ? "<｜Assistant｜><think>\n" : "<｜Assistant｜>")
  return out.done()
}

/** An old answer without the reasoning it may still hold. */
const afterThinking = (content: string): string =>
  content.slice(content.lastIndexOf("</think>") < 0 ? 0 : content.lastIndexOf("</think>") + "</think>".length)

const renderV31 = (messages: ReadonlyArray<Message>, options: RenderOptions): ReadonlyArray<Segment> => {
  const out = listTools(
    markup()
      .mark(begin)
      .say(systemTexts(messages) ?? ""),
    options.tools,
    false
  )
  let afterUser = false
  let afterAnswer = false
  for (const message of messages) {
    if (message.role === "user") {
      out.mark("<｜User｜>").say(message.content)
      afterUser = true
      afterAnswer = false
    } else if (message.role === "tool") {
      output(out, message.content)
      afterUser = false
      afterAnswer = true
    } else if (message.role === "assistant") {
      if (afterUser) out.mark("<｜Assistant｜></think>")
      const calls = message.calls ?? []
      const cut = calls.length > 0 || afterAnswer ? -1 : message.content.indexOf("</think>")
      out.say(cut < 0 ? message.content : message.content.slice(cut + "</think>".length))
      if (calls.length > 0) {
        out.mark("<｜tool▁calls▁begin｜>")
        for (const one of calls) call(out, one, false)
        out.mark("<｜tool▁calls▁end｜>")
      }
      out.mark(end)
      afterUser = false
      afterAnswer = false
    }
  }
  if (options.generationPrompt === true && afterUser)
    out.mark(`<｜Assistant｜>${options.thinking === true ? "<think>" : "</think>"}`)
  return out.done()
}

const v3 = (id: string, thinks: boolean): Codec => ({
  id,
  stops: [],
  reasoning,
  system: system(true),
  user,
  answers: answersV3,
  opening: ({ after }) =>
    after === "answers" ? [] : [control(thinks ? "<｜Assistant｜><think>\n" : "<｜Assistant｜>")],
  closing: [control(end)],
  written: written(true),
  render: (messages, options) => renderV3(messages, options, thinks),
  parser: (options) => new CallScanner(dialect(true), options),
  grammar: grammarOf(true)
})

export const deepSeekV3: Codec = v3("deepseek-v3", false)

export const deepSeekR1: Codec = v3("deepseek-r1", true)

export const deepSeekV31: Codec = {
  id: "deepseek-v3.1",
  stops: [],
  reasoning,
  system: system(false),
  user,
  answers: answersV31,
  opening: ({ after, thinking }) =>
    after === "answers" ? [] : [control(`<｜Assistant｜>${thinking === true ? "<think>" : "</think>"}`)],
  closing: [control(end)],
  written: written(false),
  render: renderV31,
  parser: (options) => new CallScanner(dialect(false), options),
  grammar: grammarOf(false)
}
