/** Where schemas stand inside a schema. Literal values (`default`, `enum`, `const`, `examples`) are not schemas. */
import { define } from "./ClosedSchema.ts"
import { isObject, type Json, type JsonObject } from "./JsonText.ts"

const oneKeys: ReadonlySet<string> = new Set([
  "additionalItems",
  "additionalProperties",
  "contains",
  "contentSchema",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties"
])
const listKeys: ReadonlySet<string> = new Set(["allOf", "anyOf", "items", "oneOf", "prefixItems"])
const mapKeys: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
  "patternProperties",
  "properties"
])

export interface SchemaPlace {
  /** RFC 6901. */
  readonly pointer: string
  readonly schema: Json
}

const step = (key: string | number): string => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`

/** The schemas right inside a schema, in reading order. `pointer` is the schema's own. */
export const inside = (schema: JsonObject, pointer = ""): ReadonlyArray<SchemaPlace> => {
  const found: Array<SchemaPlace> = []
  for (const [key, value] of Object.entries(schema)) {
    const at = pointer + step(key)
    if (listKeys.has(key) && Array.isArray(value)) {
      for (const [index, one] of value.entries()) found.push({ pointer: at + step(index), schema: one as Json })
    } else if (oneKeys.has(key)) found.push({ pointer: at, schema: value })
    else if (mapKeys.has(key) && isObject(value)) {
      for (const [name, one] of Object.entries(value)) found.push({ pointer: at + step(name), schema: one })
    }
  }
  return found
}

/** The same schema with `f` of every schema right inside it. */
export const mapInside = (schema: JsonObject, f: (inner: Json) => Json): JsonObject => {
  const result: Record<string, Json> = {}
  for (const [key, value] of Object.entries(schema)) define(result, key, mapKeyword(key, value, f))
  return result
}

const mapKeyword = (key: string, value: Json, f: (inner: Json) => Json): Json => {
  if (listKeys.has(key) && Array.isArray(value)) return value.map((one) => f(one as Json))
  if (oneKeys.has(key)) return f(value)
  if (!mapKeys.has(key) || !isObject(value)) return value
  const map: Record<string, Json> = {}
  // A dependency may be a list of names.
  for (const [name, one] of Object.entries(value)) define(map, name, Array.isArray(one) ? one : f(one))
  return map
}
