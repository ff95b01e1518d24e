/**
 * The schemas of the Berkeley Function Calling Leaderboard as JSON Schema: its names of types are those of Python, Java and
 * JavaScript. What has no counterpart (`any`) becomes no type at all, which permits everything.
 */
import { isObject, type Json, type JsonObject } from "../../../tools/JsonText.ts"

const standard: ReadonlySet<string> = new Set(["string", "integer", "number", "boolean", "array", "object", "null"])

const named: Readonly<Record<string, string>> = {
  // Python
  dict: "object",
  float: "number",
  list: "array",
  tuple: "array",
  bool: "boolean",
  // Java
  String: "string",
  char: "string",
  byte: "integer",
  short: "integer",
  long: "integer",
  double: "number",
  Array: "array",
  ArrayList: "array",
  Set: "array",
  Queue: "array",
  Stack: "array",
  HashMap: "object",
  Hashtable: "object",
  // JavaScript
  Boolean: "boolean",
  Bigint: "integer"
}

const typeOf = (type: string): string | undefined =>
  standard.has(type) ? type : Object.hasOwn(named, type) ? named[type] : undefined

const mapped = (properties: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, schemaOf(schema)]))

const keyword = (key: string, value: Json): ReadonlyArray<readonly [string, Json]> => {
  if (key === "type" && typeof value === "string") {
    const type = typeOf(value)
    return type === undefined ? [] : [[key, type]]
  }
  // A mark of its own beside `required`, which says the same.
  if (key === "optional") return []
  if (key === "properties" && isObject(value)) return [[key, mapped(value)]]
  return key === "items" ? [[key, schemaOf(value)]] : [[key, value]]
}

/** A schema as published to one that validators read. Everything but the names of types, and one mark that is no keyword, stays as it is. */
export const schemaOf = <A extends Json>(schema: A): A =>
  isObject(schema)
    ? (Object.fromEntries(Object.entries(schema).flatMap(([key, value]) => keyword(key, value))) as A)
    : schema
