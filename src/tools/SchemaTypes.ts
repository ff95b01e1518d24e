/** Types that JSON Schema does not have and other languages do: where a schema says one, and what it should say. */
import { isObject, type JsonObject } from "./JsonText.ts"
import { inside, type SchemaPlace } from "./SchemaPlaces.ts"

const known: ReadonlySet<string> = new Set(["array", "boolean", "integer", "null", "number", "object", "string"])

/** By the foreign name in small letters: what to write. `undefined`: no type at all, which allows every value. */
const meant: ReadonlyMap<string, string | undefined> = new Map<string, string | undefined>([
  ...["dict", "dictionary", "hashmap", "map", "mapping", "record", "struct"].map((name) => [name, "object"] as const),
  ...["float", "double", "decimal", "real"].map((name) => [name, "number"] as const),
  ...["int", "long", "short", "byte", "bigint"].map((name) => [name, "integer"] as const),
  ...["arraylist", "list", "set", "tuple", "sequence"].map((name) => [name, "array"] as const),
  ...["str", "text", "char", "date", "datetime", "uuid"].map((name) => [name, "string"] as const),
  ["bool", "boolean"],
  ...["none", "nonetype", "nil", "undefined"].map((name) => [name, "null"] as const),
  ...["any", "unknown", "mixed", ""].map((name) => [name, undefined] as const)
])

const remedyOf = (name: string): string => {
  const small = name.toLowerCase()
  if (known.has(small)) return `write "${small}"`
  if (!meant.has(small)) return `there are ${[...known].join(", ")}`
  const type = meant.get(small)
  if (type === undefined) return "leave the type out to allow every value"
  return small === "tuple" ? `write "array", with the types of its places in "prefixItems"` : `write "${type}"`
}

/** Everything that is called a type and is none, in words, each with its RFC 6901 pointer and what to write. */
export const foreignTypes = (root: JsonObject): ReadonlyArray<string> => {
  const problems: Array<string> = []
  const open: Array<SchemaPlace> = [{ pointer: "", schema: root }]
  // In reading order, and without recursion: what is looked at may be deeper than the stack.
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const { pointer, schema } = next
    if (!isObject(schema)) continue
    const type = schema["type"]
    for (const name of Array.isArray(type) ? type : [type]) {
      if (typeof name !== "string" || known.has(name)) continue
      problems.push(`${pointer === "" ? "the schema" : pointer} has the type "${name}": ${remedyOf(name)}`)
    }
    open.unshift(...inside(schema, pointer))
  }
  return problems
}

const shown = 8

/** The same as one sentence; nothing where every type is one. */
export const foreignTypesText = (root: JsonObject): string | undefined => {
  const problems = foreignTypes(root)
  if (problems.length === 0) return undefined
  const more = problems.length > shown ? `; and ${problems.length - shown} more` : ""
  return `JSON Schema has no such type: ${problems.slice(0, shown).join("; ")}${more}`
}
