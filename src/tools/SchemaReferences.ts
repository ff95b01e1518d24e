/**
 * References that would need a network: those that lead neither into the schema itself (by pointer, by anchor, or by an `$id`
 * that is inside it) nor to the description of the dialect, which the validator brings along.
 */
import { isObject, type Json, type JsonObject } from "./JsonText.ts"
import { inside } from "./SchemaPlaces.ts"

/** Base of a schema that has no `$id`; it is compared with, never fetched. */
export const noBase = "schema://here/"

const dialects: ReadonlySet<string> = new Set([
  "https://json-schema.org/draft/2020-12/schema",
  "http://json-schema.org/draft-07/schema"
])

/** An absolute address without its fragment; nothing where there is none. */
export const resolved = (reference: string, base: string): string | undefined => {
  try {
    return new URL(reference, base).href.replace(/#.*$/s, "")
  } catch {
    return undefined
  }
}

interface Reference {
  readonly text: string
  readonly base: string
}

interface Found {
  readonly ids: Set<string>
  readonly references: Array<Reference>
}

const look = (schema: Json, base: string, found: Found): void => {
  if (!isObject(schema)) return
  const id = schema["$id"]
  // What begins with # is an anchor of draft-07, and does not change the base.
  const own = typeof id === "string" && !id.startsWith("#") ? (resolved(id, base) ?? base) : base
  found.ids.add(own)
  for (const key of ["$ref", "$dynamicRef"]) {
    const text = schema[key]
    if (typeof text === "string") found.references.push({ text, base: own })
  }
  for (const inner of inside(schema)) look(inner.schema, own, found)
}

/** The first reference that leads out of the schema. */
export const remoteReference = (schema: JsonObject): string | undefined => {
  const found: Found = { ids: new Set([noBase]), references: [] }
  look(schema, noBase, found)
  return found.references.find(({ base, text }) => {
    if (text.startsWith("#")) return false
    const place = resolved(text, base)
    return place === undefined || !(found.ids.has(place) || dialects.has(place))
  })?.text
}
