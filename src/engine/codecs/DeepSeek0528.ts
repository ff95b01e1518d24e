/**
 * DeepSeek R1-0528 and the model distilled from it (`deepseek-r1-0528`): V3's calls, every one of them closed, a turn opened right
 * after each question, and no reasoning opened by the prompt. The official template prints no tools: the codec writes them
 * behind the system text. vLLM's template for the same model prints them in its own words (`deepseek-r1-0528-vllm`).
 */
import type { ToolSpec } from "../../tools/ToolCall.ts"
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import type { Codec, RenderOptions } from "./Codec.ts"
import {
  answersV3,
  begin,
  dialect,
  end,
  grammarOf,
  listTools,
  markup,
  output,
  reasoning,
  systemTexts,
  user,
  written
} from "./DeepSeekText.ts"
import type { Markup } from "./Markup.ts"
import { toolLine } from "./TaggedJson.ts"

type ListTools = (out: Markup, tools: ReadonlyArray<ToolSpec>) => Markup

const official: ListTools = (out, tools) => listTools(out, tools, true)

const vllm: ListTools = (out, tools) => {
  if (tools.length === 0) return out
  out.mark(
    "\n\nYou are a helpful assistant with tool calling capabilities. When a tool call is needed, you MUST use the following " +
      "format to issue the call:\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>FUNCTION_NAME\n```json\n" +
      '{"param1": "value1", "param2": "value2"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>\n\nMake sure the JSON is valid.' +
      "## Tools\n\n### Function\n\nYou have the following functions available:\n\n"
  )
  for (const tool of tools) out.mark("\n```json\n").say(toolLine(tool)).mark("\n```\n")
  return out
}

const system = (text: string | undefined, options: RenderOptions, list: ListTools): Markup =>
  list(
    markup()
      .mark(begin)
      .say(text ?? ""),
    options.tools
  )

/** The answers of one round end when somebody else speaks, but for a question, which leaves them open. */
const render = (messages: ReadonlyArray<Message>, options: RenderOptions, list: ListTools): ReadonlyArray<Segment> => {
  const out = system(systemTexts(messages), options, list)
  let speaker: "user" | "tool" | "assistant" | undefined
  let firstAnswer = true
  for (const message of messages) {
    if (message.role === "system") continue
    if (message.role === "user") out.mark("<｜User｜>").say(message.content).mark("<｜Assistant｜>")
    else if (message.role === "tool") {
      output(out.mark(firstAnswer ? "<｜tool▁outputs▁begin｜>" : "\n"), message.content)
      firstAnswer = false
    } else {
      if (speaker === "tool") out.mark("<｜tool▁outputs▁end｜>")
      const content = message.content.slice(lastThinkEnd(message.content))
      for (const segment of written(true)({ ...message, content })) {
        if (segment.kind === "text") out.say(segment.text)
        else out.mark(segment.text)
      }
      out.mark(end)
      if ((message.calls ?? []).length > 0) firstAnswer = true
    }
    speaker = message.role
  }
  if (speaker === "tool") out.mark("<｜tool▁outputs▁end｜>")
  else if (options.generationPrompt === true && speaker !== "user") out.mark("<｜Assistant｜>")
  return out.done()
}

const lastThinkEnd = (content: string): number => {
  const at = content.lastIndexOf("</think>")
  return at < 0 ? 0 : at + "</think>".length
}

const r1 = (id: string, list: ListTools): Codec => ({
  id,
  stops: [],
  ends: [end],
  reasoning,
  system: (text, options) => system(text, options, list).done(),
  user,
  answers: answersV3,
  opening: ({ after }) => (after === "answers" ? [] : [control("<｜Assistant｜>")]),
  closing: [control(end)],
  written: written(true),
  render: (messages, options) => render(messages, options, list),
  parser: (options) => new CallScanner(dialect(true), options),
  grammar: grammarOf(true)
})

export const deepSeekR10528: Codec = r1("deepseek-r1-0528", official)

export const deepSeekR10528Vllm: Codec = r1("deepseek-r1-0528-vllm", vllm)
