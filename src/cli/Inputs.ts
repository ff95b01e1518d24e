/** Files and standard input that the commands about codecs and tools read: texts, JSON, conversations, tools. */

import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import type { Message, MessageCall } from "../engine/Message.ts"
import { isObject, type Json, type JsonObject, parse } from "../tools/JsonText.ts"
import type { ToolSpec } from "../tools/ToolCall.ts"
import { type UsageError, usage } from "./Ending.ts"

/** The text of a file; of standard input where there is no name, or `-`. */
export const readText = (what: string, path: string | undefined): Effect.Effect<string, UsageError, Stdio.Stdio> => {
  if (path === undefined || path === "-") {
    return Effect.flatMap(Stdio.Stdio, ({ stdin }) => Stream.mkString(Stream.decodeText(stdin))).pipe(
      Effect.catch((error) => usage(`${what}: ${error.message}`))
    )
  }
  return Effect.try({
    try: () => readFileSync(path, "utf8"),
    catch: (cause) => (cause as { readonly code?: string }).code
  }).pipe(
    Effect.catch((code) =>
      usage(`${what} ${path}: ${code === "ENOENT" ? "there is no such file" : `it cannot be read (${code})`}`)
    )
  )
}

/** Strict JSON of a file or of standard input. */
export const readJson = Effect.fnUntraced(function* (
  what: string,
  path: string | undefined
): Effect.fn.Return<Json, UsageError, Stdio.Stdio> {
  const text = yield* readText(what, path)
  const read = parse(text.trim(), { maxDepth: 100 })
  if (Result.isSuccess(read)) return read.success
  const { position, reason } = read.failure
  return yield* usage(`${what} ${path ?? "-"}: it is not JSON: ${reason} (at character ${position})`)
})

const textOf = (value: Json | undefined): string => {
  if (typeof value === "string") return value
  if (!Array.isArray(value)) return value === undefined || value === null ? "" : JSON.stringify(value)
  return value.map((part: Json) => (isObject(part) && typeof part["text"] === "string" ? part["text"] : "")).join("")
}

const idOf = (value: Json | undefined): { readonly id?: string } => (typeof value === "string" ? { id: value } : {})

/** A call as other programs write it, with arguments as an object or as its JSON text. */
const callOf = (value: Json): MessageCall | undefined => {
  if (!isObject(value)) return undefined
  const inner = isObject(value["function"] ?? null) ? (value["function"] as JsonObject) : value
  const given = inner["arguments"] ?? {}
  const args = typeof given === "string" ? Result.getOrElse(parse(given), () => null) : given
  return typeof inner["name"] === "string" && isObject(args)
    ? { name: inner["name"], arguments: args, ...idOf(value["id"]) }
    : undefined
}

const messageOf = (value: Json): Message | undefined => {
  if (!isObject(value)) return undefined
  const { role } = value
  const content = textOf(value["content"])
  if (role === "system" || role === "developer") return { role: "system", content }
  if (role === "user") return { role, content }
  if (role === "tool")
    return { role, content, name: textOf(value["name"]), ...idOf(value["tool_call_id"] ?? value["id"]) }
  if (role !== "assistant") return undefined
  const listed = value["tool_calls"] ?? value["calls"]
  const calls = Array.isArray(listed) ? listed.map(callOf) : []
  const reasoning = value["reasoning"] ?? value["reasoning_content"]
  if (calls.some((call) => call === undefined)) return undefined
  return {
    role,
    content,
    ...(typeof reasoning === "string" ? { reasoning } : {}),
    ...(calls.length === 0 ? {} : { calls: calls as ReadonlyArray<MessageCall> })
  }
}

/** A conversation: a list of messages as chat programs write them, or an object with such a list as `messages`. */
export const readMessages = Effect.fnUntraced(function* (
  path: string | undefined
): Effect.fn.Return<ReadonlyArray<Message>, UsageError, Stdio.Stdio> {
  const json = yield* readJson("--messages", path)
  const list = isObject(json) ? json["messages"] : json
  if (!Array.isArray(list)) return yield* usage(`--messages ${path ?? "-"}: expected a list of messages`)
  const messages = list.map(messageOf)
  const wrong = messages.indexOf(undefined)
  if (wrong >= 0) {
    return yield* usage(
      `--messages ${path ?? "-"}: message ${wrong + 1} is none: expected a role (system, user, assistant, tool), a content, and calls with a name and arguments`
    )
  }
  return messages as ReadonlyArray<Message>
})

const toolOf = (value: Json): ToolSpec | undefined => {
  if (!isObject(value)) return undefined
  const inner = isObject(value["function"] ?? null) ? (value["function"] as JsonObject) : value
  const parameters = inner["parameters"] ?? { type: "object", properties: {} }
  return typeof inner["name"] === "string" && isObject(parameters)
    ? { name: inner["name"], description: textOf(inner["description"]), parameters }
    : undefined
}

/** Tools: a list of objects with `name`, `description` and `parameters`, bare or as `function`. */
export const readTools = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<ReadonlyArray<ToolSpec>, UsageError, Stdio.Stdio> {
  const json = yield* readJson("--tools", path)
  const list = isObject(json) && json["tools"] !== undefined ? json["tools"] : json
  if (!Array.isArray(list)) return yield* usage(`--tools ${path}: expected a list of tools`)
  const tools = list.map(toolOf)
  const wrong = tools.indexOf(undefined)
  if (wrong >= 0) {
    return yield* usage(
      `--tools ${path}: tool ${wrong + 1} is none: expected a name and parameters that are a JSON Schema`
    )
  }
  return tools as ReadonlyArray<ToolSpec>
})
