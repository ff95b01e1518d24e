/**
 * Writes a schema in the words that ajv understands as its dialect means them. Where ajv differs from the specification and a
 * rewording gives the same meaning, it is reworded; where nothing does, the schema is refused. A model is shown the original.
 */
import { isObject, type Json, type JsonObject } from "./JsonText.ts"
import { inside, mapInside } from "./SchemaPlaces.ts"

export type Dialect = "2020-12" | "draft-07"

/** Accepts everything, and ajv counts it as a branch of its own, which it does not do for `true`. */
const anything: JsonObject = { allOf: [{}] }

const definitionKeys: ReadonlySet<string> = new Set(["$schema", "$defs", "definitions"])

const without = (schema: JsonObject, key: string): JsonObject =>
  Object.fromEntries(Object.entries(schema).filter(([one]) => one !== key))

/** What is beside a `$ref` does not count in draft-07; definitions are only looked up there. */
const referenceAlone = (schema: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => key === "$ref" || definitionKeys.has(key)))

const hasCondition = (schema: Json): boolean =>
  isObject(schema) && (schema["if"] !== undefined || inside(schema).some((one) => hasCondition(one.schema)))

/**
 * What a condition looked at counts only if it holds; ajv counts it always. So it is asked without being counted, and looked at
 * again in `then`. A condition inside a condition is left as it is, since each level would double the schema.
 */
const conditionCounted = (schema: JsonObject): JsonObject => {
  const condition = schema["if"]
  // Nor is one that has a name of its own, since a name may be there once only.
  if (
    condition === undefined ||
    hasCondition(condition) ||
    /"\$(?:id|anchor|dynamicAnchor)":/.test(JSON.stringify(condition))
  )
    return schema
  return {
    ...schema,
    if: { not: { not: condition } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword, nobody awaits a schema
    then: { allOf: [condition, schema["then"] ?? {}] },
    else: schema["else"] ?? anything
  }
}

/** A choice among nothing fits nothing; ajv refuses to compile it. */
const emptyChoice = (schema: JsonObject): JsonObject => {
  const values = schema["enum"]
  if (!Array.isArray(values) || values.length > 0) return schema
  const { allOf } = schema
  return { ...without(schema, "enum"), allOf: [...(Array.isArray(allOf) ? (allOf as ReadonlyArray<Json>) : []), false] }
}

const partsOf = (schema: JsonObject): ReadonlyArray<Json> => {
  const { allOf } = schema
  return Array.isArray(allOf) ? (allOf as ReadonlyArray<Json>) : []
}

/** What `contains` accepts here, or in a part that always counts. */
const contained = (schema: Json): ReadonlyArray<Json> => {
  if (!isObject(schema)) return []
  const { contains } = schema
  const parts = partsOf(schema).flatMap(contained)
  return contains === undefined ? parts : [contains, ...parts]
}

const containKeys: ReadonlySet<string> = new Set(["contains", "minContains", "maxContains"])

/** Asks for what is contained without ajv counting every item as looked at. */
const uncounted = (schema: Json): Json => {
  if (!isObject(schema)) return schema
  const parts = partsOf(schema).map(uncounted)
  const entries = Object.entries(schema)
  const asked = Object.fromEntries(entries.filter(([key]) => containKeys.has(key)))
  const rest = Object.fromEntries(entries.filter(([key]) => !containKeys.has(key)))
  const all = schema["contains"] === undefined ? parts : [...parts, { not: { not: asked } }]
  return all.length === 0 ? rest : { ...rest, allOf: all }
}

/** In 2020-12 an item that `contains` accepts has been looked at, and no other; to ajv all of them have. */
const containedItems = (schema: JsonObject): JsonObject => {
  const rest = schema["unevaluatedItems"]
  const seen = rest === undefined ? [] : contained(schema)
  return seen.length === 0
    ? schema
    : { ...(uncounted(schema) as JsonObject), unevaluatedItems: { anyOf: [...seen, rest!] } }
}

const conditionalKeys = ["anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas"]

/** Does the keyword count for the same list, but only sometimes? */
const sometimes = (keyword: string, schema: Json, inCondition = false): boolean => {
  if (!isObject(schema)) return false
  if (inCondition && schema[keyword] !== undefined) return true
  if (partsOf(schema).some((part) => sometimes(keyword, part, inCondition))) return true
  return conditionalKeys.some((key) => {
    const value = schema[key]
    if (value === undefined) return false
    const schemas = Array.isArray(value) ? value : key === "dependentSchemas" ? Object.values(value as object) : [value]
    return schemas.some((one) => sometimes(keyword, one as Json, true))
  })
}

/** ajv loses count where a tuple in a condition is the only one. */
const losesItems = (schema: JsonObject): boolean =>
  schema["unevaluatedItems"] !== undefined &&
  (sometimes("contains", schema) || (schema["prefixItems"] === undefined && sometimes("prefixItems", schema)))

/** The schema and all schemas inside it. */
const everySchema = (schema: Json): ReadonlyArray<JsonObject> =>
  isObject(schema) ? [schema, ...inside(schema).flatMap((one) => everySchema(one.schema))] : []

/** Why the schema would not be checked as its dialect means it; nothing if it will be. */
export const unfaithful = (root: JsonObject, dialect: Dialect): string | undefined => {
  if (dialect === "draft-07") return undefined
  const schemas = everySchema(root)
  if (schemas.some(losesItems)) {
    return 'its "unevaluatedItems" depends on items that are only looked at under a condition, which cannot be checked'
  }
  const dynamic = schemas.some((one) => one["$dynamicRef"] !== undefined)
  return dynamic && schemas.slice(1).some((one) => one["$id"] !== undefined)
    ? 'its "$dynamicRef" depends on which of several schemas inside it is the outermost, which cannot be checked'
    : undefined
}

/** The same meaning in ajv's words, before objects are closed. */
export const reworded = (schema: JsonObject, dialect: Dialect): JsonObject => {
  const kept = dialect === "draft-07" && schema["$ref"] !== undefined ? referenceAlone(schema) : schema
  const inner = mapInside(kept, (one) => (isObject(one) ? reworded(one, dialect) : one))
  const chosen = emptyChoice(inner)
  return dialect === "draft-07" ? chosen : containedItems(chosen)
}

/** The same for a schema whose objects are closed: what is asked in a condition must stay open. */
export const withConditions = (schema: JsonObject): JsonObject =>
  conditionCounted(mapInside(schema, (one) => (isObject(one) ? withConditions(one) : one)))
