/**
 * Fills in the `default`s of a JSON Schema, after validation and without touching the given value. Defaults are looked
 * for along `properties`, `items`, `prefixItems`, `allOf` and local references: where it is certain that they apply.
 */
import { define, resolveReference } from "./ClosedSchema.ts"
import { isObject, type Json, type JsonObject } from "./JsonText.ts"

/** Every default with the schema it belongs to. */
export const defaultsOf = (
  schema: Json | undefined,
  root: JsonObject,
  seen: Set<Json>
): ReadonlyArray<{ readonly name: string; readonly schema: JsonObject; readonly value: Json }> => {
  if (schema === undefined || !isObject(schema) || seen.has(schema)) return []
  seen.add(schema)
  const own = Object.entries(propertiesOf(schema)).flatMap(([name, inner]) =>
    isObject(inner) && inner["default"] !== undefined ? [{ name, schema: inner, value: inner["default"] }] : []
  )
  const inner = [...partsOf(schema, root), ...Object.values(propertiesOf(schema)), ...itemsOf(schema)]
  return [...own, ...inner.flatMap((part) => defaultsOf(part, root, seen))]
}

/** Where to fill in, and what: the schemas whose `default` is a value they accept themselves. */
export interface Defaults {
  readonly root: JsonObject
  readonly usable: ReadonlySet<Json>
}

/** The value with defaults; the very same value where there is nothing to add. */
export const withDefaults = (value: Json, schema: Json | undefined, defaults: Defaults): Json => {
  if (schema === undefined || !isObject(schema) || typeof value !== "object" || value === null) return value
  let result: Json = value
  for (const part of partsOf(schema, defaults.root)) result = withDefaults(result, part, defaults)
  if (Array.isArray(result)) {
    const prefix = Array.isArray(schema["prefixItems"]) ? (schema["prefixItems"] as ReadonlyArray<Json>) : []
    const items = isObject(schema["items"] ?? null) ? schema["items"] : undefined
    const filled = result.map((item: Json, index) => withDefaults(item, prefix[index] ?? items, defaults))
    return filled.every((item, index) => item === (result as ReadonlyArray<Json>)[index]) ? result : filled
  }
  const object = result as JsonObject
  let copy: Record<string, Json> | undefined
  for (const [name, inner] of Object.entries(propertiesOf(schema))) {
    const present = Object.hasOwn(object, name)
    const before = present
      ? object[name]!
      : isObject(inner) && defaults.usable.has(inner)
        ? inner["default"]
        : undefined
    if (before === undefined) continue
    const after = present ? withDefaults(before, inner, defaults) : structuredClone(before)
    if (present && after === before) continue
    copy ??= cloneOwn(object)
    define(copy, name, after)
  }
  return copy ?? object
}

const cloneOwn = (object: JsonObject): Record<string, Json> => {
  const copy: Record<string, Json> = {}
  for (const [key, value] of Object.entries(object)) define(copy, key, value)
  return copy
}

const propertiesOf = (schema: JsonObject): JsonObject => {
  const properties = schema["properties"]
  return properties !== undefined && isObject(properties) ? properties : {}
}

const itemsOf = (schema: JsonObject): ReadonlyArray<Json> => [
  ...(Array.isArray(schema["prefixItems"]) ? (schema["prefixItems"] as ReadonlyArray<Json>) : []),
  ...(schema["items"] === undefined ? [] : [schema["items"]])
]

const partsOf = (schema: JsonObject, root: JsonObject): ReadonlyArray<Json> => {
  const reference = schema["$ref"]
  const target = typeof reference === "string" ? resolveReference(root, reference) : undefined
  const all = Array.isArray(schema["allOf"]) ? (schema["allOf"] as ReadonlyArray<Json>) : []
  return target === undefined || target === schema ? all : [target, ...all]
}
