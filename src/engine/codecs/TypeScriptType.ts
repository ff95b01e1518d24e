/** A JSON Schema as the TypeScript-like type that the gpt-oss template makes of it, its odd line breaks included. */
import { isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import { str } from "./PythonText.ts"

/** Longer element types are not spelt out. */
const longestElement = 50

export const typeScriptType = (schema: Json | undefined): string => {
  if (schema === undefined || !isObject(schema)) return "any"
  const type = schema["type"]
  const nullable = schema["nullable"] === true ? " | null" : ""
  if (type === "array") return arrayType(schema["items"]) + nullable
  if (Array.isArray(type) && type.length > 0) return type.map(str).join(" | ")
  if (Array.isArray(schema["oneOf"]) && schema["oneOf"].length > 0) return oneOfType(schema["oneOf"])
  if (type === "string") {
    const choices = schema["enum"]
    return Array.isArray(choices) && choices.length > 0 ? `"${choices.map(str).join('" | "')}"` : `string${nullable}`
  }
  if (type === "number" || type === "integer") return "number"
  if (type === "boolean") return "boolean"
  return type === "object" ? objectType(schema) : "any"
}

const arrayType = (items: Json | undefined): string => {
  if (items === undefined || !isObject(items) || Object.keys(items).length === 0) return "any[]"
  const inner = typeScriptType({ ...items, enum: [] })
  const simple = ["string", "number", "integer", "boolean"].includes(String(items["type"]))
  if (simple) return `${inner.replace(" | null", "")}[]`
  const full = typeScriptType(items)
  return full === "object | object" || full.length > longestElement ? "any[]" : `${full}[]`
}

const oneOfType = (variants: ReadonlyArray<Json>): string => {
  const objects = variants.some((variant) => isObject(variant) && variant["type"] === "object")
  if (objects && variants.length > 1) return "any"
  return variants
    .map((variant) => {
      const description =
        isObject(variant) && typeof variant["description"] === "string" ? `// ${variant["description"]}` : ""
      return typeScriptType(variant) + description
    })
    .join(" | ")
}

const objectType = (schema: JsonObject): string => {
  const properties = schema["properties"]
  if (properties === undefined || !isObject(properties) || Object.keys(properties).length === 0) return "object"
  const required = Array.isArray(schema["required"]) ? schema["required"] : []
  const members = Object.entries(properties).map(
    ([name, member]) => `${name}${required.includes(name) ? "" : "?"}: \n                ${typeScriptType(member)}`
  )
  return `{\n${members.join(", ")}}`
}
