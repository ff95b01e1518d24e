/**
 * The JSON Schema a model is shown for an Effect Schema: plain and short, since every character of it is prompt.
 * It never says less than the checker accepts; that objects are closed goes without saying.
 */
import * as Schema from "effect/Schema"
import { isObject, type Json, type JsonObject } from "./JsonText.ts"

/** `type` object; named schemas are written out where they stand unless they are recursive (then `$defs`). Throws if the schema has no JSON form. */
export const parametersOf = (schema: Schema.Constraint): JsonObject => {
  const document = Schema.toJsonSchemaDocument(schema as Schema.Codec<unknown, unknown>, { onExcessProperty: "error" })
  const definitions = document.definitions as { readonly [name: string]: JsonObject }
  const recursive = new Set<string>()
  const top = document.schema as JsonObject
  const name = definitionOf(top, definitions)
  // A named schema, such as a class, stands behind a reference even where it is the whole.
  const { $ref, ...beside } = top
  const root = name === undefined ? top : { ...definitions[name], ...beside }
  const shown = isObject(root["properties"] ?? null)
    ? root
    : { type: "object", properties: {}, required: [], ...withoutClosing(root) }
  const compact = compactSchema(shown, definitions, name === undefined ? [] : [name], recursive) as JsonObject
  if (compact["type"] !== "object") throw new Error("the parameters are not an object")
  const { type, properties, required, ...rest } = compact
  const defs = [...recursive].map(
    (name) => [name, compactSchema(definitions[name]!, definitions, [name], recursive)] as const
  )
  return {
    type: type!,
    properties: properties ?? {},
    required: required ?? [],
    ...rest,
    ...(defs.length === 0 ? {} : { $defs: Object.fromEntries(defs) })
  }
}

/** The definition that a schema refers to. */
const definitionOf = (
  { $ref }: JsonObject,
  definitions: { readonly [name: string]: JsonObject }
): string | undefined => {
  if (typeof $ref !== "string" || !$ref.startsWith("#/$defs/")) return undefined
  const name = $ref.slice("#/$defs/".length).replaceAll("~1", "/").replaceAll("~0", "~")
  return definitions[name] === undefined ? undefined : name
}

/** A schema with no properties of its own that takes no argument: `{}` in the library is "anything but null". */
const withoutClosing = (root: JsonObject): JsonObject => {
  const { additionalProperties, not, ...rest } = root
  return isObject(additionalProperties ?? null) ? { ...rest, additionalProperties: additionalProperties! } : rest
}

const schemaKeys = new Set(["items", "additionalProperties", "contains", "propertyNames", "not"])
const schemaListKeys = new Set(["anyOf", "oneOf", "allOf", "prefixItems"])
const schemaMapKeys = new Set(["properties", "patternProperties"])
/** A model reads the type first and its meaning next. */
const firstKeys = ["type", "description"]

const compactSchema = (
  schema: Json,
  definitions: { readonly [name: string]: JsonObject },
  open: ReadonlyArray<string>,
  recursive: Set<string>
): Json => {
  if (!isObject(schema)) return schema
  const within = (inner: Json): Json => compactSchema(inner, definitions, open, recursive)
  const reference = schema["$ref"]
  if (typeof reference === "string" && reference.startsWith("#/$defs/")) {
    const name = definitionOf(schema, definitions)
    if (name === undefined || open.includes(name)) {
      if (name !== undefined) recursive.add(name)
      return schema
    }
    const { $ref, ...beside } = schema
    return compactSchema({ ...definitions[name], ...beside }, definitions, [...open, name], recursive)
  }
  const entries: Array<[string, Json]> = []
  for (const key of [...firstKeys, ...Object.keys(schema).filter((key) => !firstKeys.includes(key))]) {
    const value = schema[key]
    if (value === undefined || isImplied(key, value)) continue
    if (schemaKeys.has(key)) entries.push([key, within(value)])
    else if (schemaListKeys.has(key) && Array.isArray(value)) entries.push([key, value.map(within)])
    else if (schemaMapKeys.has(key) && isObject(value)) {
      entries.push([key, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, within(inner)]))])
    } else entries.push([key, value])
  }
  return Object.fromEntries(entries)
}

/** Closed objects and the bounds of safe integers hold everywhere, so they are not repeated. */
const isImplied = (key: string, value: Json): boolean =>
  (key === "additionalProperties" && value === false) ||
  (key === "minimum" && value === Number.MIN_SAFE_INTEGER) ||
  (key === "maximum" && value === Number.MAX_SAFE_INTEGER)
