/**
 * DeepSeek V3 (`deepseek-v3`), the R1 distillations, whose prompt opens the reasoning (`deepseek-r1`), and V3.1, which llama.cpp
 * edited so that a turn without reasoning has an empty block (`deepseek-v3.1-llamacpp`). The official templates
 * do not print tools at all: the codec writes them behind the system text, in the form the makers publish. V3's template
 * leaves out end marks after a single call and its own opening in later rounds; `render` does the same, live sessions do not.
 */
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import type { Codec, RenderOptions } from "./Codec.ts"
import {
  answersV3,
  answersV31,
  begin,
  call,
  dialect,
  end,
  grammarOf,
  listTools,
  markup,
  output,
  reasoning,
  system,
  systemTexts,
  user,
  written
} from "./DeepSeekText.ts"

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

const renderV31 = (
  messages: ReadonlyArray<Message>,
  options: RenderOptions,
  silent: string
): ReadonlyArray<Segment> => {
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
      if (afterUser) out.mark(`<｜Assistant｜>${silent}`)
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
    out.mark(`<｜Assistant｜>${options.thinking === true ? "<think>" : silent}`)
  return out.done()
}

const v3 = (id: string, thinks: boolean): Codec => ({
  id,
  stops: [],
  ends: [end],
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

/** `silent`: what stands for the reasoning of a turn that has none. */
const v31 = (id: string, silent: string): Codec => ({
  id,
  stops: [],
  ends: [end],
  reasoning,
  system: system(false),
  user,
  answers: answersV31,
  opening: ({ after, thinking }) =>
    after === "answers" ? [] : [control(`<｜Assistant｜>${thinking === true ? "<think>" : silent}`)],
  closing: [control(end)],
  written: written(false),
  render: (messages, options) => renderV31(messages, options, silent),
  parser: (options) => new CallScanner(dialect(false), options),
  grammar: grammarOf(false)
})

export const deepSeekV31: Codec = v31("deepseek-v3.1", "</think>")

export const deepSeekV31LlamaCpp: Codec = v31("deepseek-v3.1-llamacpp", "<think></think>")
