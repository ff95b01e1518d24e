/**
 * Closes the objects of a JSON Schema: a field nobody declared is a mistake unless the schema itself says otherwise.
 * Also local references: looking them up.
 */
import { isObject, type Json, type JsonObject } from "./JsonText.ts"

/** The schema behind a `#` or `#/…` reference; `undefined` for anchors and for places that do not exist. */
export const resolveReference = (root: JsonObject, reference: string): Json | undefined => {
  if (reference === "#") return root
  if (!reference.startsWith("#/")) return undefined
  let place: Json | undefined = root
  for (const step of reference.slice(2).split("/")) {
    if (typeof place !== "object" || place === null) return undefined
    const key = decodeStep(step)
    place = Object.hasOwn(place, key) ? (place as JsonObject)[key] : undefined
  }
  return place
}

const decodeStep = (step: string): string =>
  // A JSON pointer inside a URI fragment: percent-encoded first, then `~`-escaped. A stray percent sign is part of the name.
  step
    .replace(/(%[0-9a-f]{2})+/gi, (run) => new TextDecoder().decode(Buffer.from(run.replaceAll("%", ""), "hex")))
    .replaceAll("~1", "/")
    .replaceAll("~0", "~")

const listKeys = ["allOf", "anyOf", "oneOf"]
const mapKeys = ["properties", "patternProperties"]
const definitionKeys = ["$defs", "definitions"]
const placeKeys = [
  "items",
  "additionalItems",
  "additionalProperties",
  "unevaluatedItems",
  "unevaluatedProperties",
  "contains"
]

/**
 * The same schema with every object closed. Where an object is put together from several schemas the whole is closed
 * (`unevaluatedProperties`), never one of its parts. An object inside the arguments that declares no field at all stays
 * open, since there is nothing to be closed against; the arguments as a whole are closed even then.
 */
export const closed = (root: JsonObject): JsonObject => {
  const result = closePlace(root, root) as JsonObject
  const says = ["additionalProperties", "unevaluatedProperties"].some((key) => result[key] !== undefined)
  return says || isComposed(root) || declares(root, root, new Set())
    ? result
    : { ...result, additionalProperties: false }
}

const isComposed = (schema: JsonObject): boolean =>
  [...listKeys, "$ref", "$dynamicRef", "if", "dependentSchemas"].some((key) => schema[key] !== undefined)

/** A schema that stands where a value of its own stands. */
const closePlace = (schema: Json, root: JsonObject): Json => {
  if (!isObject(schema)) return schema
  const within = closeWithin(schema, root)
  if (schema["additionalProperties"] !== undefined || schema["unevaluatedProperties"] !== undefined) return within
  if (!declares(schema, root, new Set())) return within
  return { ...within, [isComposed(schema) ? "unevaluatedProperties" : "additionalProperties"]: false }
}

/** Closes what is inside a schema but not the schema itself: a part of a composition, or a definition. */
const closeWithin = (schema: Json, root: JsonObject): JsonObject => {
  if (!isObject(schema)) return schema as never
  const result: Record<string, Json> = {}
  for (const [key, value] of Object.entries(schema)) define(result, key, closeKeyword(key, value, root))
  return result
}

const closeKeyword = (key: string, value: Json, root: JsonObject): Json => {
  if (listKeys.includes(key) && Array.isArray(value)) return value.map((part) => closeWithin(part, root))
  // A condition or a negation is a question about the value, not a description of it.
  if (key === "then" || key === "else") return closeWithin(value, root)
  if (placeKeys.includes(key) || key === "prefixItems") {
    return Array.isArray(value) ? value.map((item) => closePlace(item, root)) : closePlace(value, root)
  }
  if (!isObject(value)) return value
  if (mapKeys.includes(key)) return mapValues(value, (inner) => closePlace(inner, root))
  if (definitionKeys.includes(key) || key === "dependentSchemas")
    return mapValues(value, (inner) => closeWithin(inner, root))
  return value
}

/** Does this schema, or a part of it, name fields? Unknown references count as if they did. */
const declares = (schema: Json, root: JsonObject, seen: Set<Json>): boolean => {
  if (!isObject(schema) || seen.has(schema)) return false
  seen.add(schema)
  if (schema["properties"] !== undefined || schema["patternProperties"] !== undefined) return true
  if (schema["additionalProperties"] !== undefined || schema["unevaluatedProperties"] !== undefined) return true
  const reference = schema["$ref"] ?? schema["$dynamicRef"]
  if (typeof reference === "string") {
    const target = resolveReference(root, reference)
    if (target === undefined || declares(target, root, seen)) return true
  }
  const parts = [
    ...listKeys.flatMap((key) => (schema[key] ?? []) as ReadonlyArray<Json>),
    schema["then"],
    schema["else"]
  ]
  return parts.some((part) => part !== undefined && declares(part, root, seen))
}

const mapValues = (map: JsonObject, f: (value: Json) => Json): JsonObject => {
  const result: Record<string, Json> = {}
  for (const [key, value] of Object.entries(map)) define(result, key, f(value))
  return result
}

/** `__proto__` is a name like any other. */
export const define = (target: object, key: string, value: Json): void => {
  Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true })
}
