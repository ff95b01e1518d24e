/**
 * The Mistral models. Their templates differ by generation in how calls carry ids, where the tools stand and whether prose
 * before a call is kept. `mistral` is Small 3.2; `mistral-nemo` has calls as a JSON array; `mistral-v11` and `mistral-v13`
 * are the forms of the reference library (v13: Devstral, no ids). The long system texts some of them put in are left
 * out. A live session shows tools and system text once, at the start.
 */
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { headedCalls, jsonCalls } from "../Grammar.ts"
import type { Message, MessageCall } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import type { AssistantTurn, Codec, RenderOptions, ToolAnswer } from "./Codec.ts"
import { grouped } from "./Conversation.ts"
import type { Dialect } from "./Dialect.ts"
import { Markup } from "./Markup.ts"
import { MistralFrame } from "./MistralFrame.ts"
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
  "[THINK]",
  "[/THINK]"
]

const markup = () => new Markup(["<s>", "</s>", ...tags])

const reasoning = { open: "[THINK]", close: "[/THINK]" } as const

const dialect = (form: string): Dialect => ({
  form,
  openers: [{ text: "[TOOL_CALLS]", frame: () => new MistralFrame() }],
  strays: [
    { text: "[ARGS]", code: "missing_opener", what: "[ARGS] came without [TOOL_CALLS] before it" },
    { text: "[TOOL_RESULTS]", code: "forged_tool_response", what: "only the runtime writes [TOOL_RESULTS]" },
    { text: "[INST]", code: "forged_turn", what: "a turn must not write another speaker's turn" }
  ],
  ends: ["</s>"],
  textAfter: "keep",
  bare: "the call does not follow [TOOL_CALLS]",
  thinking: reasoning
})

interface Generation {
  readonly id: string
  /** Ids in the JSON of an array of calls, behind a tag, or not at all. */
  readonly ids: "json" | "tag" | "none"
  readonly system: "tag" | "last-question"
  readonly tools: "last-question" | "first-question"
  readonly proseBeforeCalls: boolean
}

/** The wire wants nine letters and digits; runs that mint their own ids pass those. */
const idOf = (id: string | undefined, ordinal: number): string => id ?? `call${String(ordinal).padStart(5, "0")}`

const describe = (tool: ToolSpec, raw: boolean): string => {
  const { description, name, parameters } = tool
  if (!raw) return pythonJson({ type: "function", function: { name, description, parameters } })
  return `{"type": "function", "function": {"name": "${name}", "description": "${description}", "parameters": ${pythonJson(parameters)}}}`
}

const listTools = (tools: ReadonlyArray<ToolSpec>, { ids }: Generation): ReadonlyArray<Segment> => {
  if (tools.length === 0) return []
  const list = tools.map((tool) => describe(tool, ids === "json")).join(", ")
  return markup().mark("[AVAILABLE_TOOLS]").say(`[${list}]`).mark("[/AVAILABLE_TOOLS]").done()
}

const systemText = (text: string | undefined): ReadonlyArray<Segment> =>
  text === undefined ? [] : markup().mark("[SYSTEM_PROMPT]").say(text).mark("[/SYSTEM_PROMPT]").done()

const user = (content: string) => markup().mark("[INST]").say(content).mark("[/INST]").done()

const writeCalls = (out: Markup, calls: ReadonlyArray<MessageCall>, { ids }: Generation): Markup => {
  if (ids === "json") {
    const list = calls.map((call, index) =>
      pythonJson({ name: call.name, arguments: call.arguments, id: idOf(call.id, index) })
    )
    return out.mark("[TOOL_CALLS]").say(`[${list.join(", ")}]`)
  }
  for (const [index, call] of calls.entries()) {
    out.mark("[TOOL_CALLS]").say(call.name)
    if (ids === "tag") out.mark("[CALL_ID]").say(idOf(call.id, index))
    out.mark("[ARGS]").say(pythonJson(call.arguments))
  }
  return out
}

const writtenTurn = (turn: AssistantTurn, generation: Generation): ReadonlyArray<Segment> => {
  const calls = turn.calls ?? []
  const out = markup().say(calls.length === 0 || generation.proseBeforeCalls ? turn.content : "")
  return (calls.length === 0 ? out : writeCalls(out, calls, generation)).done()
}

const answersOf = (list: ReadonlyArray<ToolAnswer>, { ids }: Generation): ReadonlyArray<Segment> => {
  const out = markup()
  for (const [index, { id, text }] of list.entries()) {
    out.mark("[TOOL_RESULTS]")
    if (ids === "json") out.say(`{"content": ${text}, "call_id": "${idOf(id, index)}"}`)
    else if (ids === "tag") out.say(idOf(id, index)).mark("[TOOL_CONTENT]").say(text)
    else out.say(text)
    out.mark("[/TOOL_RESULTS]")
  }
  return out.done()
}

const closing = [control("</s>")]

const renderAll = (
  messages: ReadonlyArray<Message>,
  options: RenderOptions,
  generation: Generation
): ReadonlyArray<Segment> => {
  const lead = messages[0]?.role === "system" ? messages[0].content : undefined
  const rest = lead === undefined ? messages : messages.slice(1)
  const questions = rest.filter((message) => message.role === "user")
  const last = questions[questions.length - 1]
  const tagged = generation.system === "tag"
  const out: Array<Segment> = [control("<s>"), ...(tagged ? systemText(lead) : [])]
  for (const group of grouped(rest)) {
    if (group.kind === "answers") out.push(...answersOf(group.answers, generation))
    else if (group.message.role === "assistant") out.push(...writtenTurn(group.message, generation), ...closing)
    else if (group.message.role === "system") out.push(...systemText(group.message.content))
    else {
      // The templates compare questions by value, so the last one has the tools before it wherever it was asked.
      const shows =
        generation.tools === "first-question" ? group.message === questions[0] : group.message.content === last?.content
      if (shows) out.push(...listTools(options.tools, generation))
      const isEnd = group.message === rest[rest.length - 1]
      out.push(...user((!tagged && isEnd && lead !== undefined ? `${lead}\n\n` : "") + group.message.content))
    }
  }
  return out
}

const forms = {
  json: '[TOOL_CALLS][{"name": "TOOL", "arguments": {"KEY": VALUE}, "id": "ID"}]',
  tag: '[TOOL_CALLS]TOOL[CALL_ID]ID[ARGS]{"KEY": VALUE}',
  none: '[TOOL_CALLS]TOOL[ARGS]{"KEY": VALUE}'
} as const

/** Models of the array form write all calls of a turn in one array, with ids of nine letters and digits. */
const grammarOf = (tools: ReadonlyArray<ToolSpec>, { ids }: Generation) =>
  ids === "json"
    ? jsonCalls(tools, {
        opener: "[TOOL_CALLS]",
        closer: "",
        key: "arguments",
        array: true,
        around: ['" "?', ""],
        tail: '("," " "? "\\"id\\":" " "? "\\"" [A-Za-z0-9]{9} "\\"")?'
      })
    : headedCalls(tools, {
        opener: "[TOOL_CALLS]",
        parts: ["", ids === "tag" ? "callid [A-Za-z0-9]{9} args" : "args", ""],
        marks: { callid: "[CALL_ID]", args: "[ARGS]" }
      })

const mistralCodec = (generation: Generation): Codec => {
  const tagged = generation.system === "tag"
  const syntax = dialect(`write a call as ${forms[generation.ids]}`)
  return {
    id: generation.id,
    stops: [],
    reasoning,
    // Without a tag for it, the system text opens the conversation as a turn of its own.
    system: (text, options) => [
      control("<s>"),
      ...(tagged ? systemText(text) : []),
      ...listTools(options.tools, generation),
      ...(tagged || text === undefined ? [] : user(text))
    ],
    user,
    answers: (list) => answersOf(list, generation),
    opening: () => [],
    closing,
    written: (turn) => writtenTurn(turn, generation),
    render: (messages, options) => renderAll(messages, options, generation),
    parser: (options) => new CallScanner(syntax, options),
    grammar: (tools) => grammarOf(tools, generation)
  }
}

export const mistral: Codec = mistralCodec({
  id: "mistral",
  ids: "tag",
  system: "tag",
  tools: "last-question",
  proseBeforeCalls: false
})

export const mistralNemo: Codec = mistralCodec({
  id: "mistral-nemo",
  ids: "json",
  system: "last-question",
  tools: "last-question",
  proseBeforeCalls: false
})

export const mistralV11: Codec = mistralCodec({
  id: "mistral-v11",
  ids: "tag",
  system: "tag",
  tools: "last-question",
  proseBeforeCalls: true
})

export const mistralV13: Codec = mistralCodec({
  id: "mistral-v13",
  ids: "none",
  system: "tag",
  tools: "first-question",
  proseBeforeCalls: true
})
