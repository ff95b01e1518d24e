/** One message of a conversation file, from a document's value: roles, blocks, the trace of a turn. Throws `Refusal`s. */
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import type { Block, Message, Role, TurnTrace } from "./Conversation.ts"
import { anyMap, countOf, isTrue, listOf, mapOf, nameOf, seen, textOf, wordOf } from "./Fields.ts"
import { type Path, Refusal } from "./YamlDocuments.ts"

const roles = ["system", "user", "assistant", "tool"] as const

const kinds = ["text", "tool_use", "tool_result", "thinking", "image"] as const

/** Which blocks a role can have; anything not named here goes with every role but `tool`. */
const homes: Readonly<Record<string, Role>> = { tool_use: "assistant", thinking: "assistant", tool_result: "tool" }

const blockOf = (value: Json, role: Role, path: Path): Block => {
  const type = wordOf(anyMap(value, path), "type", kinds, path)
  const home = homes[type]
  if (role === "tool" ? home !== "tool" : home !== undefined && home !== role) {
    const belongs = home === undefined ? "in a message with another role" : `in a message with role ${home}`
    throw new Refusal([...path, "type"], `a ${type} block belongs ${belongs}, this is role ${role}`)
  }
  switch (type) {
    case "text":
      return { type, text: textOf(mapOf(value, path, ["type", "text"]), "text", path) }
    case "tool_use": {
      const map = mapOf(value, path, ["type", "id", "name", "input"])
      if (map["input"] === undefined)
        throw new Refusal(path, "input is missing: a call without arguments has input: {}")
      const input = anyMap(map["input"], [...path, "input"])
      return { type, id: nameOf(map, "id", path), name: nameOf(map, "name", path), input }
    }
    case "tool_result": {
      const map = mapOf(value, path, ["type", "tool_use_id", "content", "is_error"])
      const answer = { type, tool_use_id: nameOf(map, "tool_use_id", path), content: textOf(map, "content", path) }
      return isTrue(map, "is_error", path) ? { ...answer, is_error: true } : answer
    }
    case "thinking": {
      const map = mapOf(value, path, ["type", "thinking", "signature"])
      const thinking = textOf(map, "thinking", path)
      return map["signature"] === undefined
        ? { type, thinking }
        : { type, thinking, signature: textOf(map, "signature", path) }
    }
    case "image":
      return { type, source: anyMap(mapOf(value, path, ["type", "source"])["source"], [...path, "source"]) }
  }
}

const tokensOf = (value: Json | undefined, path: Path): TurnTrace["tokens"] => {
  const map = mapOf(value, path, ["input", "output", "cache_hit", "cache_write"])
  const cached = (key: "cache_hit" | "cache_write") =>
    map[key] === undefined ? {} : { [key]: countOf(map, key, path) }
  return {
    input: countOf(map, "input", path),
    output: countOf(map, "output", path),
    ...cached("cache_hit"),
    ...cached("cache_write")
  }
}

const traceOf = (value: Json): TurnTrace => {
  const path = ["trace"]
  const map = mapOf(value, path, ["span_id", "model", "tokens", "latency_ms", "events"])
  return {
    span_id: textOf(map, "span_id", path),
    model: textOf(map, "model", path),
    tokens: tokensOf(map["tokens"], [...path, "tokens"]),
    latency_ms: countOf(map, "latency_ms", path, false),
    events: listOf(map["events"], [...path, "events"]).map((event, index) => {
      const at = [...path, "events", index]
      const fields = mapOf(event, at, ["name", "attributes"])
      return { name: nameOf(fields, "name", at), attributes: anyMap(fields["attributes"], [...at, "attributes"]) }
    })
  }
}

/** `content:` with nothing behind it is an absent one. */
const contentOf = (map: JsonObject, role: Role): Message["content"] => {
  const content = map["content"] ?? undefined
  const path = ["content"]
  if (content === undefined) {
    if (role === "assistant") return undefined
    throw new Refusal([], `content is missing: only a message with role assistant may be blank, this is role ${role}`)
  }
  if (Array.isArray(content)) return content.map((block, index) => blockOf(block, role, [...path, index]))
  if (role === "tool") throw new Refusal(path, `expected a list of tool_result blocks, found ${seen(content)}`)
  if (typeof content === "string") return content
  const remedy = typeof content === "object" ? "" : ": put it in quotes"
  throw new Refusal(path, `expected a text or a list of blocks, found ${seen(content)}${remedy}`)
}

export const messageOf = (value: Json): Message => {
  if (value === null)
    throw new Refusal([], "there is nothing between this --- and the next: write a message or remove it")
  const map = mapOf(value, [], ["role", "content", "cache", "trace"])
  const role = wordOf(map, "role", roles, [])
  const content = contentOf(map, role)
  const trace = map["trace"]
  if (trace !== undefined && role !== "assistant")
    throw new Refusal(["trace"], `role ${role} has no trace, only assistant has`)
  if (trace !== undefined && content === undefined) {
    throw new Refusal(["trace"], "a blank slot has no trace: remove it to have the slot filled, or restore the content")
  }
  return {
    role,
    ...(content === undefined ? {} : { content }),
    ...(isTrue(map, "cache", []) ? { cache: true } : {}),
    ...(trace === undefined ? {} : { trace: traceOf(trace) })
  }
}
