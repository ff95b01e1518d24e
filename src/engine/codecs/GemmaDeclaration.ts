/** A tool as the Gemma templates declare it: braces, keys sorted, type names in capitals. */
import { isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { type BraceStyle, sorted, writeValue } from "./BraceText.ts"
import { str } from "./PythonText.ts"

export interface DeclarationStyle extends BraceStyle {
  /** FunctionGemma prints a description even where there is none. */
  readonly emptyDescriptions: boolean
}

// The templates leave out parameters of these names, which they take for keywords of a schema.
const keywords = new Set(["description", "type", "properties", "required", "nullable"])

const object = (value: Json | undefined): JsonObject => (value !== undefined && isObject(value) ? value : {})

const typeName = (schema: JsonObject): string => (schema["type"] === undefined ? "" : str(schema["type"]).toUpperCase())

const quoted = (text: string, style: BraceStyle): string => style.quote + text + style.quote

const names = (list: Json | undefined, style: BraceStyle): string =>
  `[${(Array.isArray(list) ? list : []).map((item) => quoted(str(item), style)).join(",")}]`

const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value) && value.length > 0

const members = (properties: JsonObject, style: DeclarationStyle): string =>
  sorted(properties)
    .filter(([name]) => !keywords.has(name))
    .map(([name, value]) => `${name}:{${fields(object(value), style)}}`)
    .join(",")

/** The fields of one parameter, in the template's order. */
const fields = (schema: JsonObject, style: DeclarationStyle): string => {
  const type = typeName(schema)
  const out: Array<string> = []
  const description = typeof schema["description"] === "string" ? schema["description"] : ""
  if (description !== "" || style.emptyDescriptions) out.push(`description:${quoted(description, style)}`)
  if (type === "STRING" && isList(schema["enum"])) out.push(`enum:${writeValue(schema["enum"], style)}`)
  if (type === "ARRAY" && Object.keys(object(schema["items"])).length > 0)
    out.push(`items:{${items(object(schema["items"]), style)}}`)
  if (schema["nullable"] === true) out.push("nullable:true")
  if (type === "OBJECT") {
    const properties = schema["properties"]
    out.push(`properties:{${members(properties !== undefined && isObject(properties) ? properties : schema, style)}}`)
    if (isList(schema["required"])) out.push(`required:${names(schema["required"], style)}`)
  }
  out.push(`type:${quoted(type, style)}`)
  return out.join(",")
}

const items = (schema: JsonObject, style: DeclarationStyle): string =>
  sorted(schema)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => {
      if (key === "properties") return `properties:{${members(object(value), style)}}`
      if (key === "required") return `required:${names(value, style)}`
      if (key !== "type") return `${key}:${writeValue(value, style)}`
      const upper = Array.isArray(value) ? value.map((one) => str(one).toUpperCase()) : str(value).toUpperCase()
      return `type:${writeValue(upper, style)}`
    })
    .join(",")

export const declaration = (tool: ToolSpec, style: DeclarationStyle): string => {
  const { description, name, parameters } = tool
  const properties = object(parameters["properties"])
  const parts: Array<string> = []
  if (Object.keys(properties).length > 0) parts.push(`properties:{${members(properties, style)}}`)
  if (isList(parameters["required"])) parts.push(`required:${names(parameters["required"], style)}`)
  parts.push(`type:${quoted(parameters["type"] === undefined ? "OBJECT" : typeName(parameters), style)}`)
  return `declaration:${name}{description:${quoted(description, style)},parameters:{${parts.join(",")}}}`
}
