/** A conversation, its meta and its messages as YAML documents, keys in the order of the format. `ConversationText` is the way in. */
import * as Result from "effect/Result"
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import type { Block, Conversation, Message, Meta, TurnTrace } from "./Conversation.ts"
import { ConversationError } from "./ConversationError.ts"
import { placeOf } from "./Place.ts"
import { Refusal } from "./YamlDocuments.ts"
import { field, records } from "./YamlText.ts"

type Fields = ReadonlyArray<readonly [string, Json | undefined]>

const fieldsOf = (block: Block): Fields => {
  switch (block.type) {
    case "text":
      return Object.entries({ type: block.type, text: block.text })
    case "tool_use":
      return Object.entries({ type: block.type, id: block.id, name: block.name, input: block.input })
    case "tool_result":
      return [
        ["type", block.type],
        ["tool_use_id", block.tool_use_id],
        ["content", block.content],
        ["is_error", block.is_error === true ? true : undefined]
      ]
    case "thinking":
      return [
        ["type", block.type],
        ["thinking", block.thinking],
        ["signature", block.signature]
      ]
    case "image":
      return Object.entries({ type: block.type, source: block.source })
  }
}

const tokensOf = ({ cache_hit, cache_write, input, output }: TurnTrace["tokens"]): JsonObject => ({
  input,
  output,
  ...(cache_hit === undefined ? {} : { cache_hit }),
  ...(cache_write === undefined ? {} : { cache_write })
})

const traceText = (trace: TurnTrace): string => {
  const at = ["trace"]
  const inside = [
    field("span_id", trace.span_id, [...at, "span_id"], 2),
    field("model", trace.model, [...at, "model"], 2),
    field("tokens", tokensOf(trace.tokens), [...at, "tokens"], 2),
    field("latency_ms", trace.latency_ms, [...at, "latency_ms"], 2),
    trace.events.length === 0
      ? "events: []\n"
      : records(
          "events",
          trace.events.map(({ attributes, name }) => Object.entries({ name, attributes })),
          [...at, "events"],
          2
        )
  ]
  return `trace:\n${inside.map((line) => `  ${line}`).join("")}`
}

const contentText = (content: Exclude<Message["content"], undefined>): string => {
  if (typeof content === "string") return field("content", content, ["content"])
  return content.length === 0 ? "content: []\n" : records("content", content.map(fieldsOf), ["content"])
}

const messageText = ({ cache, content, role, trace }: Message): string =>
  [
    "---\n",
    field("role", role, ["role"]),
    content === undefined ? "" : contentText(content),
    cache === true ? "cache: true\n" : "",
    trace === undefined ? "" : traceText(trace)
  ].join("")

const isEmpty = (value: Json | undefined): boolean =>
  value === undefined ||
  value === null ||
  value === false ||
  (typeof value === "object" && Object.keys(value).length === 0)

const metaText = ({ assembly, binding, debug, model, tools }: Meta): string =>
  [
    "---\n",
    field("model", model, ["model"]),
    isEmpty(debug) ? "" : field("debug", debug!, ["debug"]),
    assembly === undefined ? "" : field("assembly", assembly, ["assembly"]),
    isEmpty(binding) ? "" : field("binding", binding!, ["binding"]),
    tools === undefined || tools.length === 0
      ? ""
      : records(
          "tools",
          tools.map(({ description, input_schema, name }) => Object.entries({ name, description, input_schema })),
          ["tools"]
        )
  ].join("")

const refused = (write: () => string, path: string, index: number): Result.Result<string, ConversationError> => {
  try {
    return Result.succeed(write())
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return Result.fail(new ConversationError({ path, place: placeOf(index, error.path), reason: error.message }))
  }
}

/** The meta's document. `path` names the file in errors. */
const metaDocument = (meta: Meta, path: string): Result.Result<string, ConversationError> =>
  refused(() => metaText(meta), path, -1)

/** A message's document. `index` counts from 0. */
const messageDocument = (message: Message, index: number, path: string): Result.Result<string, ConversationError> =>
  refused(() => messageText(message), path, index)

/** All documents, the meta first. */
export const documents = (
  { meta, session }: Conversation,
  path: string
): Result.Result<ReadonlyArray<string>, ConversationError> =>
  Result.all([metaDocument(meta, path), ...session.map((message, index) => messageDocument(message, index, path))])
