/**
 * The Mistral models. Their templates differ by generation in how calls carry ids, where the tools stand and whether prose
 * before a call is kept. `mistral` is Small 3.2, `mistral-nemo`, `mistral-small-3` and `mistral-7b` are what their names say;
 * `mistral-v3` to `mistral-v15` are the forms of the reference library (v13: Devstral, no ids). The long system texts some of
 * them put in are left out. A live session shows tools and system text once, at the start.
 */
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { headedCalls, jsonCalls } from "../Grammar.ts"
import type { Message } from "../Message.ts"
import { control, type Segment } from "../Prompt.ts"
import { CallScanner } from "./CallScanner.ts"
import type { Codec, RenderOptions } from "./Codec.ts"
import { grouped } from "./Conversation.ts"
import type { Dialect } from "./Dialect.ts"
import { MistralFrame } from "./MistralFrame.ts"
import { answersOf, type Generation, leadText, listTools, question, systemText, writtenTurn } from "./MistralText.ts"

const reasoning = { open: "[THINK]", close: "[/THINK]" } as const

const dialect = (form: string): Dialect => ({
  form,
  openers: [{ text: "[TOOL_CALLS]", frame: () => new MistralFrame() }],
  strays: [
    { text: "[ARGS]", code: "missing_opener", what: "[ARGS] came without [TOOL_CALLS] before it" },
    ...["[TOOL_RESULTS]", "[TOOL_CONTENT]", "[/TOOL_RESULTS]"].map((text) => ({
      text,
      code: "forged_tool_response" as const,
      what: `only the runtime writes ${text}`
    })),
    ...["[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]"].map((text) => ({
      text,
      code: "forged_turn" as const,
      what: "a turn must not write another speaker's turn"
    }))
  ],
  ends: ["</s>"],
  textAfter: "keep",
  bare: "the call does not follow [TOOL_CALLS]",
  thinking: reasoning
})

const closing = [control("</s>")]

const renderAll = (
  messages: ReadonlyArray<Message>,
  options: RenderOptions,
  generation: Generation
): ReadonlyArray<Segment> => {
  const opens = messages[0]?.role === "system"
  const lead = leadText(messages[0]?.role === "system" ? messages[0].content : undefined, options.tools, generation)
  const rest = opens ? messages.slice(1) : messages
  const questions = rest.filter((message) => message.role === "user")
  const last = questions[questions.length - 1]
  const out: Array<Segment> = [control("<s>"), ...(generation.system === "tag" ? systemText(lead) : [])]
  for (const group of grouped(rest)) {
    if (group.kind === "answers") out.push(...answersOf(group.answers, generation))
    else if (group.message.role === "assistant") out.push(...writtenTurn(group.message, generation), ...closing)
    else if (group.message.role === "system") out.push(...systemText(group.message.content))
    else {
      // The templates compare questions by value, so the last one has the tools before it wherever it was asked.
      const isLast = group.message.content === last?.content
      const shows = generation.tools === "first-question" ? group.message === questions[0] : isLast
      if (shows) out.push(...listTools(options, generation))
      const carries = generation.system === "end" ? group.message === rest[rest.length - 1] : group.message === last
      const before = generation.system === "tag" || !carries ? undefined : lead
      const empty = before === undefined || (before === "" && generation.system === "last-question")
      out.push(...question((empty ? "" : `${before}\n\n`) + group.message.content, generation))
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
    ends: ["</s>"],
    reasoning,
    // Without a tag for it, the system text opens the conversation as a turn of its own.
    system: (text, options) => {
      const lead = leadText(text, options.tools, generation)
      return [
        control("<s>"),
        ...(tagged ? systemText(lead) : []),
        ...listTools(options, generation),
        ...(tagged || lead === undefined ? [] : question(lead, generation))
      ]
    },
    user: (content) => question(content, generation),
    answers: (list) => answersOf(list, generation),
    opening: () => [],
    closing,
    written: (turn) => writtenTurn(turn, generation),
    render: (messages, options) => renderAll(messages, options, generation),
    parser: (options) => new CallScanner(syntax, options),
    grammar: (tools) => grammarOf(tools, generation)
  }
}

/** Small 3.2. */
export const mistral: Codec = mistralCodec({
  id: "mistral",
  ids: "tag",
  answers: "tag",
  system: "tag",
  tools: "last-question",
  proseBeforeCalls: false
})

export const mistralNemo: Codec = mistralCodec({
  id: "mistral-nemo",
  ids: "json",
  answers: "raw-json",
  system: "end",
  tools: "last-question",
  rawTools: true,
  proseBeforeCalls: false
})

/** 7B v0.3, whose tokenizer put a space behind every mark. */
const seven = {
  id: "mistral-7b",
  ids: "json",
  answers: "raw-json",
  system: "end",
  tools: "last-question",
  rawTools: true,
  proseBeforeCalls: false,
  spaced: "all"
} as const

export const mistral7b: Codec = mistralCodec(seven)

/** The same with vLLM's words on several calls. */
export const mistral7bParallel: Codec = mistralCodec({ ...seven, id: "mistral-7b-parallel", asksForArrays: true })

/** Small 3 and 3.1, as vLLM and llama.cpp have them. */
export const mistralSmall3: Codec = mistralCodec({
  ...seven,
  id: "mistral-small-3",
  system: "tag",
  spaced: "json",
  asksForArrays: true
})

export const mistralV3: Codec = mistralCodec({
  id: "mistral-v3",
  ids: "json",
  answers: "json",
  system: "last-question",
  tools: "last-question",
  proseBeforeCalls: false
})

export const mistralV7: Codec = mistralCodec({
  id: "mistral-v7",
  ids: "json",
  answers: "tag",
  system: "tag",
  tools: "last-question",
  proseBeforeCalls: true
})

export const mistralV11: Codec = mistralCodec({
  id: "mistral-v11",
  ids: "tag",
  answers: "tag",
  system: "tag",
  tools: "last-question",
  proseBeforeCalls: true
})

const thirteen = {
  id: "mistral-v13",
  ids: "none",
  answers: "none",
  system: "tag",
  tools: "first-question",
  proseBeforeCalls: true
} as const

export const mistralV13: Codec = mistralCodec(thirteen)

/** v13 with the settings of the model before the first question. */
export const mistralV15: Codec = mistralCodec({ ...thirteen, id: "mistral-v15", settings: true })
