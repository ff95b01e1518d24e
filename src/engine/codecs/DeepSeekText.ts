/**
 * What DeepSeek's templates have in common: the marks, how calls and answers are printed, how tools are written behind the
 * system text, and how a turn is read. Which of it stands where is for the generations to say.
 */
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { headedCalls } from "../Grammar.ts"
import type { Message, MessageCall } from "../Message.ts"
import type { Segment } from "../Prompt.ts"
import type { AssistantTurn, RenderOptions, ToolAnswer } from "./Codec.ts"
import { DeepSeekFrame } from "./DeepSeekFrame.ts"
import type { Dialect } from "./Dialect.ts"
import { Markup } from "./Markup.ts"
import { pythonJson } from "./PythonJson.ts"

export const begin = "<｜begin▁of▁sentence｜>"
export const end = "<｜end▁of▁sentence｜>"
const callMarks = ["<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"]
const outputMarks = [
  "<｜tool▁outputs▁begin｜>",
  "<｜tool▁output▁begin｜>",
  "<｜tool▁output▁end｜>",
  "<｜tool▁outputs▁end｜>"
]
const speakers = ["<｜User｜>", "<｜Assistant｜>"]
export const reasoning = { open: "<think>", close: "</think>" } as const

export const markup = () =>
  new Markup([begin, end, "<｜tool▁calls▁begin｜>", ...callMarks, ...outputMarks, ...speakers, "<think>", "</think>"])

const example = {
  fenced:
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>TOOL\n```json\n{"KEY": VALUE}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  bare: '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>TOOL<｜tool▁sep｜>{"KEY": VALUE}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
}

export const dialect = (fenced: boolean): Dialect => ({
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
export const grammarOf = (fenced: boolean) => (tools: ReadonlyArray<ToolSpec>) =>
  headedCalls(tools, {
    opener: "<｜tool▁calls▁begin｜>",
    closer: "<｜tool▁calls▁end｜>",
    parts: fenced
      ? ['callbegin "function" sep', '"\\n```json\\n"', '"\\n```" callend']
      : ["callbegin", "sep", "callend"],
    marks: { callbegin: callMarks[0]!, sep: callMarks[1]!, callend: callMarks[2]! }
  })

/** The tools, as they follow the system text. */
export const listTools = (out: Markup, tools: ReadonlyArray<ToolSpec>, fenced: boolean): Markup => {
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
export const systemTexts = (messages: ReadonlyArray<Message>): string | undefined => {
  const texts = messages.filter((message) => message.role === "system").map((message) => message.content)
  return texts.length === 0 ? undefined : texts.join("\n\n")
}

export const system =
  (fenced: boolean) =>
  (text: string | undefined, { tools }: RenderOptions): ReadonlyArray<Segment> =>
    listTools(
      markup()
        .mark(begin)
        .say(text ?? ""),
      tools,
      fenced
    ).done()

export const user = (content: string) => markup().mark("<｜User｜>").say(content).done()

export const call = (out: Markup, { arguments: args, name }: MessageCall, fenced: boolean): Markup => {
  out.mark(`<｜tool▁call▁begin｜>${fenced ? "function<｜tool▁sep｜>" : ""}`).say(name)
  out.mark(fenced ? "\n```json\n" : "<｜tool▁sep｜>").say(pythonJson(args))
  return out.mark(`${fenced ? "\n```" : ""}<｜tool▁call▁end｜>`)
}

export const written =
  (fenced: boolean) =>
  (turn: AssistantTurn): ReadonlyArray<Segment> => {
    const out = markup().say(turn.content)
    const calls = turn.calls ?? []
    if (calls.length === 0) return out.done()
    out.mark("<｜tool▁calls▁begin｜>")
    for (const [index, one] of calls.entries()) call(index > 0 && fenced ? out.mark("\n") : out, one, fenced)
    return out.mark("<｜tool▁calls▁end｜>").done()
  }

export const output = (out: Markup, text: string): Markup =>
  out.mark("<｜tool▁output▁begin｜>").say(text).mark("<｜tool▁output▁end｜>")

export const answersV3 = (list: ReadonlyArray<ToolAnswer>): ReadonlyArray<Segment> => {
  const out = markup().mark("<｜tool▁outputs▁begin｜>")
  for (const [index, { text }] of list.entries()) output(index > 0 ? out.mark("\n") : out, text)
  return out.mark("<｜tool▁outputs▁end｜>").done()
}

export const answersV31 = (list: ReadonlyArray<ToolAnswer>): ReadonlyArray<Segment> => {
  const out = markup()
  for (const { text } of list) output(out, text)
  return out.done()
}
