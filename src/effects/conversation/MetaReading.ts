/** The first document of a conversation file: the model, the binding, and the tools as schemas (R-AILLY-6). Throws `Refusal`s. */
import { isObject, type Json } from "../../tools/JsonText.ts"
import type { Meta, ToolDefinition } from "./Conversation.ts"
import { anyMap, listOf, mapOf, nameOf, seen, textOf } from "./Fields.ts"
import { type Path, Refusal } from "./YamlDocuments.ts"

const keys = ["model", "debug", "assembly", "binding", "tools"]

/** What a tool may be called, in files as in the registry. */
const toolName = /^[A-Za-z0-9_-]{1,64}$/

/**
 * A tool as a file has it. Whether the schema compiles is the registry's business, and asked for when files are assembled
 * and when they are run.
 */
export const toolOf = (value: Json, path: Path): ToolDefinition => {
  const map = mapOf(value, path, ["name", "description", "input_schema"])
  const name = textOf(map, "name", path)
  if (!toolName.test(name)) {
    throw new Refusal([...path, "name"], `${JSON.stringify(name)}: a tool's name is 1 to 64 of A-Z a-z 0-9 _ -`)
  }
  const at = [...path, "input_schema"]
  const schema = anyMap(map["input_schema"], at)
  const { type } = schema
  // As the registry has it: a schema that does not say what it is is meant for arguments, and those are an object.
  if (type !== undefined && type !== "object" && !(Array.isArray(type) && type.includes("object"))) {
    throw new Refusal(
      at,
      `the arguments of a tool are an object: expected type: object, found ${typeof type === "string" ? type : seen(type)}`
    )
  }
  return { name, description: textOf(map, "description", path), input_schema: schema }
}

const toolsOf = (value: Json): ReadonlyArray<ToolDefinition> => {
  const places = new Map<string, number>()
  return listOf(value, ["tools"]).map((item, index) => {
    const tool = toolOf(item, ["tools", index])
    const before = places.get(tool.name)
    if (before !== undefined) {
      throw new Refusal(
        ["tools", index, "name"],
        `${tool.name} is also the name of tools[${before}]: a name stands for one tool`
      )
    }
    places.set(tool.name, index)
    return tool
  })
}

const bindingOf = (value: Json): Readonly<Record<string, string>> => {
  const map = anyMap(value, ["binding"])
  for (const key of Object.keys(map)) textOf(map, key, ["binding"])
  return map as Readonly<Record<string, string>>
}

const isEmpty = (value: Json): boolean =>
  value === null || value === false || (typeof value === "object" && Object.keys(value).length === 0)

export const metaOf = (value: Json): Meta => {
  if (isObject(value) && Object.hasOwn(value, "role") && !Object.hasOwn(value, "model")) {
    throw new Refusal(
      [],
      "this is a message: the first document is the meta, with the model (model: noop is the scripted engine)"
    )
  }
  if (!isObject(value))
    throw new Refusal([], `the first document is the meta, a map with the model; found ${seen(value)}`)
  const { assembly, binding, debug, tools } = mapOf(value, [], keys)
  const model = nameOf(value, "model", [])
  return {
    model,
    ...(debug === undefined || isEmpty(debug) ? {} : { debug }),
    ...(assembly === undefined ? {} : { assembly: textOf(value, "assembly", []) }),
    ...(binding === undefined || isEmpty(binding) ? {} : { binding: bindingOf(binding) }),
    ...(tools === undefined || isEmpty(tools) ? {} : { tools: toolsOf(tools) })
  }
}
