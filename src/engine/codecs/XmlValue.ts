/**
 * Parameter text to a value, by the type its schema declares. The wire is untyped text: a string stays the text it is, other
 * types are read strictly, and what fits no declared type stays text, so that validation names the place and the type.
 */
import * as Result from "effect/Result"
import { canonical, isObject, type Json, type JsonObject, parse } from "../../tools/JsonText.ts"

export const decodeValue = (text: string, schema: Json | undefined, root: JsonObject): Json => {
  const types = new Set<string>()
  const literals: Array<Json> = []
  collect(schema, root, types, literals, 0)
  // Types other than text come first: where both are allowed, text that is exactly such a value is one.
  for (const type of ["null", "boolean", "integer", "number", "array", "object"]) {
    const value = types.has(type) ? readAs(text, type) : undefined
    if (value !== undefined) return value
  }
  if (types.size === 0 && !literals.includes(text)) {
    const literal = literals
      .map((one) => readAs(text, typeOf(one)))
      .find((value) => value !== undefined && literals.some((one) => canonical(one) === canonical(value)))
    if (literal !== undefined) return literal
  }
  return text
}

/** What a tool's schema declares a parameter to be, also in the parts it is put together from. */
export const declaredAs = (name: string, root: JsonObject): Json | undefined => {
  const found: Array<Json> = []
  const look = (schema: Json | undefined, depth: number): void => {
    if (schema === undefined || !isObject(schema) || depth > maxDepth) return
    const properties = schema["properties"]
    if (properties !== undefined && isObject(properties) && Object.hasOwn(properties, name))
      found.push(properties[name]!)
    for (const key of ["anyOf", "oneOf", "allOf"]) {
      const parts = schema[key]
      if (Array.isArray(parts)) for (const part of parts) look(part, depth + 1)
    }
    if (typeof schema["$ref"] === "string") look(resolve(schema["$ref"], root), depth + 1)
  }
  look(root, 0)
  return found.length < 2 ? found[0] : { anyOf: found }
}

/** How deep `$ref` and composition are followed. */
const maxDepth = 8

/** The types some branch of a schema allows, and the literals it lists. */
const collect = (
  schema: Json | undefined,
  root: JsonObject,
  types: Set<string>,
  literals: Array<Json>,
  depth: number
): void => {
  if (schema === undefined || !isObject(schema) || depth > maxDepth) return
  const type = schema["type"]
  for (const one of Array.isArray(type) ? type : [type]) if (typeof one === "string") types.add(one)
  if (Object.hasOwn(schema, "const")) literals.push(schema["const"]!)
  if (Array.isArray(schema["enum"])) literals.push(...schema["enum"])
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    const branches = schema[key]
    if (Array.isArray(branches)) for (const branch of branches) collect(branch, root, types, literals, depth + 1)
  }
  if (typeof schema["$ref"] === "string") collect(resolve(schema["$ref"], root), root, types, literals, depth + 1)
}

/** A reference inside the tool's own schema. */
const resolve = (reference: string, root: JsonObject): Json | undefined => {
  if (!reference.startsWith("#/")) return undefined
  let at: Json | undefined = root
  for (const step of reference.slice(2).split("/")) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~")
    at = at !== undefined && isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined
  }
  return at
}

const typeOf = (value: Json): string => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value)

/** The value of a type other than string, or `undefined` where the text is none. Python's spellings are what templates print. */
const readAs = (text: string, type: string): Json | undefined => {
  if (type === "null") return text === "null" || text === "None" ? null : undefined
  if (type === "boolean") {
    if (text === "true" || text === "True") return true
    return text === "false" || text === "False" ? false : undefined
  }
  const read = parse(text)
  if (Result.isFailure(read)) return undefined
  const value = read.success
  const found = typeOf(value)
  if (type === "integer") return found === "number" && Number.isInteger(value) ? value : undefined
  return found === type ? value : undefined
}
