/**
 * What the generations of Mistral's templates print, turn by turn: tools, system text, questions, calls and answers. The
 * generations differ in a handful of choices, which `Generation` names. It does not know where in a conversation a part stands.
 */
import type { ToolSpec } from "../../tools/ToolCall.ts"
import type { MessageCall } from "../Message.ts"
import type { Segment } from "../Prompt.ts"
import type { AssistantTurn, RenderOptions, ToolAnswer } from "./Codec.ts"
import { Markup } from "./Markup.ts"
import { pythonJson } from "./PythonJson.ts"

const tags = [
  "[INST]",
  "[/INST]",
  "[SYSTEM_PROMPT]",
  "[/SYSTEM_PROMPT]",
  "[AVAILABLE_TOOLS]",
  "[/AVAILABLE_TOOLS]",
  "[TOOL_CALLS]",
  "[CALL_ID]",
  "[ARGS]",
  "[TOOL_RESULTS]",
  "[TOOL_CONTENT]",
  "[/TOOL_RESULTS]",
  "[MODEL_SETTINGS]",
  "[/MODEL_SETTINGS]",
  "[THINK]",
  "[/THINK]"
]

const markup = () => new Markup(["<s>", "</s>", ...tags])

export interface Generation {
  readonly id: string
  /** Ids in the JSON of an array of calls, behind a tag, or not at all. */
  readonly ids: "json" | "tag" | "none"
  /** An answer as JSON with its text as it is or quoted, behind its id, or alone. */
  readonly answers: "raw-json" | "json" | "tag" | "none"
  /** The system text in tags of its own, or inside the last question: wherever that stands, or only if it ends the conversation. */
  readonly system: "tag" | "last-question" | "end"
  readonly tools: "last-question" | "first-question"
  /** Tools whose texts are put between quotes as they are. */
  readonly rawTools?: boolean
  readonly proseBeforeCalls: boolean
  /** A space behind each mark that lists and objects follow, or behind every mark. */
  readonly spaced?: "json" | "all"
  /** The system text is preceded by words on several calls where there are tools. */
  readonly asksForArrays?: boolean
  /** The prompt says how much to think. */
  readonly settings?: boolean
}

/** The wire wants nine letters and digits; runs that mint their own ids pass those. */
const idOf = (id: string | undefined, ordinal: number): string => id ?? `call${String(ordinal).padStart(5, "0")}`

const jsonGap = ({ spaced }: Generation): string => (spaced === undefined ? "" : " ")

const textGap = ({ spaced }: Generation): string => (spaced === "all" ? " " : "")

const describe = (tool: ToolSpec, raw: boolean): string => {
  const { description, name, parameters } = tool
  if (!raw) return pythonJson({ type: "function", function: { name, description, parameters } })
  return `{"type": "function", "function": {"name": "${name}", "description": "${description}", "parameters": ${pythonJson(parameters)}}}`
}

/** What stands before the question that shows the tools. */
export const listTools = (options: RenderOptions, generation: Generation): ReadonlyArray<Segment> => {
  const { thinking, tools } = options
  const out = markup()
  if (tools.length > 0) {
    const list = tools.map((tool) => describe(tool, generation.rawTools === true)).join(", ")
    out
      .mark("[AVAILABLE_TOOLS]")
      .say(`${jsonGap(generation)}[${list}]`)
      .mark("[/AVAILABLE_TOOLS]")
  }
  if (generation.settings === true) {
    const effort = thinking === true ? "high" : "none"
    out.mark(`[MODEL_SETTINGS]{"reasoning_effort": "${effort}"}[/MODEL_SETTINGS]`)
  }
  return out.done()
}

const severalCalls =
  "You are a helpful assistant that can call tools. If you call one or more tools, format them in a single JSON array or " +
  "objects, where each object is a tool call, not as separate objects outside of an array or multiple arrays. Use the " +
  'format [{"name": tool call name, "arguments": tool call arguments}, additional tool calls] if you call more than one ' +
  "tool. If you call tools, do not attempt to interpret them or otherwise provide a response until you receive a tool call " +
  "result that you can interpret for the user."

/** The system text as the prompt has it. */
export const leadText = (
  text: string | undefined,
  tools: ReadonlyArray<ToolSpec>,
  generation: Generation
): string | undefined => {
  if (generation.asksForArrays !== true || tools.length === 0) return text
  return text === undefined ? severalCalls : `${severalCalls}\n\n${text}`
}

export const systemText = (text: string | undefined): ReadonlyArray<Segment> =>
  text === undefined ? [] : markup().mark("[SYSTEM_PROMPT]").say(text).mark("[/SYSTEM_PROMPT]").done()

export const question = (content: string, generation: Generation): ReadonlyArray<Segment> =>
  markup()
    .mark("[INST]")
    .say(textGap(generation) + content)
    .mark("[/INST]")
    .done()

const writeCalls = (out: Markup, calls: ReadonlyArray<MessageCall>, generation: Generation): Markup => {
  if (generation.ids === "json") {
    const list = calls.map((call, index) =>
      pythonJson({ name: call.name, arguments: call.arguments, id: idOf(call.id, index) })
    )
    return out.mark("[TOOL_CALLS]").say(`${jsonGap(generation)}[${list.join(", ")}]`)
  }
  for (const [index, call] of calls.entries()) {
    out.mark("[TOOL_CALLS]").say(call.name)
    if (generation.ids === "tag") out.mark("[CALL_ID]").say(idOf(call.id, index))
    out.mark("[ARGS]").say(pythonJson(call.arguments))
  }
  return out
}

export const writtenTurn = (turn: AssistantTurn, generation: Generation): ReadonlyArray<Segment> => {
  const calls = turn.calls ?? []
  if (calls.length === 0)
    return markup()
      .say(textGap(generation) + turn.content)
      .done()
  const out = markup().say(generation.proseBeforeCalls ? turn.content : "")
  return writeCalls(out, calls, generation).done()
}

/** Text that spells a number as Python would print it is that number. */
const numberOrText = (text: string): string => {
  const whole = /^(?:0|-?[1-9]\d*)$/
  const broken = /^-?(?:0|[1-9]\d{0,15})\.\d+$/
  if (whole.test(text)) return text
  const short = text.endsWith(".0") ? text.slice(0, -2) : text
  return broken.test(text) && String(Number(text)) === short ? text : pythonJson(text)
}

export const answersOf = (list: ReadonlyArray<ToolAnswer>, generation: Generation): ReadonlyArray<Segment> => {
  const out = markup()
  for (const [index, { id, text }] of list.entries()) {
    out.mark("[TOOL_RESULTS]")
    if (generation.answers === "tag") out.say(idOf(id, index)).mark("[TOOL_CONTENT]").say(text)
    else if (generation.answers === "none") out.say(text)
    else {
      const content = generation.answers === "json" ? numberOrText(text) : text
      out.say(`${jsonGap(generation)}{"content": ${content}, "call_id": "${idOf(id, index)}"}`)
    }
    out.mark("[/TOOL_RESULTS]")
  }
  return out.done()
}
