/**
 * One request for a chat completion, read strictly: what asks for something is honoured or refused by name, what asks for
 * nothing is let through, and what nobody knows is refused.
 */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject, parse } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { type ChatError, invalid, unsupported } from "./ChatError.ts"
import { between, flag, listAt, objectAt, onlyKnown, optional, type Read, textAt, toolNameAt } from "./ChatFields.ts"
import { type ChatConversation, read as readMessages } from "./ChatMessages.ts"

/** What the answer has to be. */
export type AnswerForm =
  | { readonly _tag: "Text" }
  | { readonly _tag: "Object"; readonly name: string; readonly schema: JsonObject }

export interface ChatRequest {
  readonly model: string
  readonly conversation: ChatConversation
  readonly stream: boolean
  /** A last chunk says what was used. */
  readonly includeUsage: boolean
  readonly sampling: {
    readonly temperature?: number
    readonly topP?: number
    readonly topK?: number
    readonly seed?: number
  }
  /** Tokens the model may write in one turn. */
  readonly maxTokens: number | undefined
  /** Texts at which the answer ends, without them. */
  readonly stop: ReadonlyArray<string>
  /** Tools of the client; `undefined`: it brings none. */
  readonly tools: ReadonlyArray<ToolSpec> | undefined
  /** No tool at all, not even one of the server's. */
  readonly withoutTools: boolean
  /** Several calls in one turn. */
  readonly parallel: boolean | undefined
  readonly thinking: boolean | undefined
  readonly form: AnswerForm
}

export interface RequestBounds {
  readonly messages: number
  readonly tools: number
}

/** Say nothing about the answer. */
const harmless = [
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "metadata",
  "service_tier",
  "store",
  "prediction"
]

const refusedWith = {
  functions: "It was replaced by 'tools'",
  function_call: "It was replaced by 'tool_choice'",
  audio: "There is no audio here",
  web_search_options: "There is no search of that kind; offer the server a tool",
  best_of: "One answer is made",
  echo: "The prompt is not repeated",
  suffix: "Text is not filled in",
  min_p: "It cannot be set",
  repeat_penalty: "It cannot be set",
  repetition_penalty: "It cannot be set",
  moderation: "There is none"
} as const

const isEmpty = (value: Json): boolean => typeof value === "object" && Object.keys(value ?? {}).length === 0

/** Fields that may be there as long as they ask for nothing: the value that does, and what to say otherwise. */
const neutral: ReadonlyArray<readonly [key: string, asksNothing: (value: Json) => boolean, why: string]> = [
  ["n", (value) => value === 1, "one answer is made"],
  ["logprobs", (value) => value === false, "probabilities of tokens are not told"],
  ["top_logprobs", (value) => value === 0, "probabilities of tokens are not told"],
  ["frequency_penalty", (value) => value === 0, "sampling has no penalties"],
  ["presence_penalty", (value) => value === 0, "sampling has no penalties"],
  ["logit_bias", isEmpty, "tokens cannot be favoured"],
  ["modalities", (value) => JSON.stringify(value) === '["text"]', "there is text only"],
  ["verbosity", (value) => value === "medium", "it cannot be set"]
]

const known = new Set([
  ...harmless,
  "model",
  "messages",
  "stream",
  "stream_options",
  "temperature",
  "top_p",
  "top_k",
  "seed",
  "max_tokens",
  "max_completion_tokens",
  "stop",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "reasoning_effort",
  "response_format",
  ...neutral.map(([key]) => key),
  ...Object.keys(refusedWith)
])

const checkNeutral = (body: JsonObject): Read<void> => {
  for (const [key, why] of Object.entries(refusedWith)) {
    const value = body[key]
    if (value !== undefined && value !== null)
      return Result.fail(unsupported(key, `'${key}' is not supported. ${why}.`))
  }
  for (const [key, asksNothing, why] of neutral) {
    const value = body[key]
    if (value === undefined || value === null || asksNothing(value)) continue
    return Result.fail(unsupported(key, `'${key}' is not supported with this value: ${why}.`))
  }
  return Result.succeed(undefined)
}

/**
 * Characters of the schema of one tool, and of all: making a checker of one takes its time, in which nobody else is answered.
 * A model that could be shown more is not served here.
 */
const maxSchema = 32_768
const maxSchemas = 262_144

const schemaAt = (value: Json | undefined, param: string): Read<JsonObject> =>
  Result.flatMap(objectAt(value, param), (schema) =>
    JSON.stringify(schema).length <= maxSchema
      ? Result.succeed(schema)
      : Result.fail(invalid(param, `'${param}' is longer than ${maxSchema} characters`, "string_above_max_length"))
  )

const toolOf = (value: Json, at: string): Read<ToolSpec> =>
  Result.gen(function* () {
    const tool = yield* objectAt(value, at)
    if (tool["type"] !== "function") {
      return yield* Result.fail(unsupported(`${at}.type`, `'${at}.type' has to be 'function'`))
    }
    const about = yield* objectAt(tool["function"], `${at}.function`)
    yield* onlyKnown(about, new Set(["name", "description", "parameters", "strict"]), `${at}.function`)
    const name = yield* toolNameAt(about["name"], `${at}.function.name`)
    const parameters = about["parameters"] ?? { type: "object", properties: {} }
    return {
      name,
      description: (yield* optional(about, "description", textAt)) ?? "",
      parameters: yield* schemaAt(parameters, `${at}.function.parameters`)
    }
  })

/** An empty list brings no tools, as some clients say it. */
const toolsOf = (body: JsonObject, most: number): Read<ReadonlyArray<ToolSpec> | undefined> =>
  Result.gen(function* () {
    const list = yield* optional(body, "tools", listAt)
    if (list === undefined || list.length === 0) return undefined
    if (list.length > most)
      return yield* Result.fail(invalid("tools", `'tools' holds ${list.length}; at most ${most} are read`))
    const tools: Array<ToolSpec> = []
    for (const [index, one] of list.entries()) tools.push(yield* toolOf(one, `tools[${index}]`))
    if (JSON.stringify(tools).length > maxSchemas) {
      return yield* Result.fail(invalid("tools", `'tools' is longer than ${maxSchemas} characters`))
    }
    const twice = tools.find(({ name }, index) => tools.findIndex((other) => other.name === name) < index)
    return twice === undefined ? tools : yield* Result.fail(invalid("tools", `There are two tools '${twice.name}'`))
  })

const choiceOf = (body: JsonObject): Read<"auto" | "none"> => {
  const choice = body["tool_choice"] ?? "auto"
  if (choice === "auto" || choice === "none") return Result.succeed(choice)
  const what = typeof choice === "string" ? `'${choice}'` : "of one tool"
  const why = "a run decides by itself whether a call or an answer comes next. There are 'auto' and 'none'"
  return Result.fail(unsupported("tool_choice", `A 'tool_choice' ${what} is not supported: ${why}`))
}

const stopsOf = (body: JsonObject): Read<ReadonlyArray<string>> =>
  Result.gen(function* () {
    const value = body["stop"] ?? []
    const list = typeof value === "string" ? [value] : yield* listAt(value, "stop")
    if (list.length > 4)
      return yield* Result.fail(invalid("stop", `'stop' holds ${list.length} texts; at most 4 are read`))
    const stops: Array<string> = []
    for (const [index, one] of list.entries()) stops.push(yield* textAt(one, `stop[${index}]`))
    return stops.some((stop) => stop === "") ? yield* Result.fail(invalid("stop", "A text of 'stop' is empty")) : stops
  })

const formOf = (body: JsonObject): Read<AnswerForm> =>
  Result.gen(function* () {
    const format = yield* optional(body, "response_format", objectAt)
    const type = format === undefined ? "text" : yield* textAt(format["type"], "response_format.type")
    if (format === undefined || type === "text") return { _tag: "Text" } as const
    if (type === "json_object") return { _tag: "Object", name: "object", schema: { type: "object" } } as const
    if (type !== "json_schema") {
      return yield* Result.fail(unsupported("response_format.type", `There is no response format '${type}'`))
    }
    const about = yield* objectAt(format["json_schema"], "response_format.json_schema")
    return {
      _tag: "Object",
      name: yield* toolNameAt(about["name"], "response_format.json_schema.name"),
      schema: yield* schemaAt(about["schema"], "response_format.json_schema.schema")
    } as const
  })

const efforts = new Map([
  ["none", false],
  ["minimal", false],
  ["low", true],
  ["medium", true],
  ["high", true],
  ["xhigh", true]
])

const thinkingOf = (body: JsonObject): Read<boolean | undefined> =>
  Result.gen(function* () {
    const effort = yield* optional(body, "reasoning_effort", textAt)
    if (effort === undefined) return undefined
    const thinking = efforts.get(effort)
    if (thinking !== undefined) return thinking
    return yield* Result.fail(invalid("reasoning_effort", `There is no effort '${effort}'`, "invalid_value"))
  })

const tokensOf = (body: JsonObject): Read<number | undefined> =>
  Result.gen(function* () {
    const read = between(1, 2 ** 31, true)
    const newer = yield* optional(body, "max_completion_tokens", read)
    const older = yield* optional(body, "max_tokens", read)
    if (newer === undefined || older === undefined) return newer ?? older
    return yield* Result.fail(
      invalid("max_tokens", "'max_tokens' and 'max_completion_tokens' are the same thing: say one")
    )
  })

const samplingOf = (body: JsonObject): Read<ChatRequest["sampling"]> =>
  Result.gen(function* () {
    const temperature = yield* optional(body, "temperature", between(0, 2))
    const topP = yield* optional(body, "top_p", between(0, 1))
    const topK = yield* optional(body, "top_k", between(1, 2 ** 31, true))
    const seed = yield* optional(body, "seed", between(-(2 ** 53) + 1, 2 ** 53 - 1, true))
    return {
      ...(temperature === undefined ? {} : { temperature }),
      ...(topP === undefined ? {} : { topP }),
      ...(topK === undefined ? {} : { topK }),
      // Engines take 32 bits, and equal seeds stay equal.
      ...(seed === undefined ? {} : { seed: Math.abs(seed) % 2 ** 32 })
    }
  })

const usageOf = (body: JsonObject, stream: boolean): Read<boolean> =>
  Result.gen(function* () {
    const options = yield* optional(body, "stream_options", objectAt)
    if (options === undefined) return false
    if (!stream) return yield* Result.fail(invalid("stream_options", "'stream_options' is for streams: set 'stream'"))
    yield* onlyKnown(options, new Set(["include_usage", "include_obfuscation"]), "stream_options")
    return (yield* optional(options, "include_usage", flag)) ?? false
  })

const decode = (body: JsonObject, bounds: RequestBounds): Read<ChatRequest> =>
  Result.gen(function* () {
    yield* onlyKnown(body, known, "")
    yield* checkNeutral(body)
    const stream = (yield* optional(body, "stream", flag)) ?? false
    const choice = yield* choiceOf(body)
    const tools = yield* toolsOf(body, bounds.tools)
    return {
      model: yield* textAt(body["model"], "model"),
      conversation: yield* readMessages(body["messages"], bounds.messages),
      stream,
      includeUsage: yield* usageOf(body, stream),
      sampling: yield* samplingOf(body),
      maxTokens: yield* tokensOf(body),
      stop: yield* stopsOf(body),
      tools: choice === "none" ? undefined : tools,
      withoutTools: choice === "none",
      parallel: yield* optional(body, "parallel_tool_calls", flag),
      thinking: yield* thinkingOf(body),
      form: yield* formOf(body)
    }
  })

/** Nesting of a request: schemas of tools are the deepest thing in it. */
const maxDepth = 64

/** Reads the body of a request. */
export const read = (text: string, bounds: RequestBounds): Result.Result<ChatRequest, ChatError> => {
  const value = parse(text, { maxDepth })
  if (Result.isFailure(value)) {
    const { position, reason } = value.failure
    return Result.fail(
      invalid(null, `The body is no JSON that can be read: ${reason} (at ${position})`, "invalid_json")
    )
  }
  return isObject(value.success)
    ? decode(value.success, bounds)
    : Result.fail(invalid(null, "The body has to be a JSON object", "invalid_type"))
}
