/**
 * Writes a schema in the words that ajv understands as its dialect means them. Where ajv differs from the specification and a
 * rewording gives the same meaning, it is reworded; which schemas need to be read without ajv is said here too.
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
 * again in `then`.
 */
const conditionCounted = (schema: JsonObject): JsonObject => {
  const condition = schema["if"]
  if (condition === undefined) return schema
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

/** A condition with a condition inside. Read by its meaning, since to make ajv count it right each level would double the schema. */
const nestsConditions = (schema: Json): boolean =>
  isObject(schema) &&
  ((schema["if"] !== undefined && hasCondition(schema["if"])) ||
    inside(schema).some((one) => nestsConditions(one.schema)))

/**
 * Is it a schema that ajv is known to read otherwise than its dialect means it? Names inside, and references that depend on where
 * one comes from; items that are counted as looked at, or not; and what nests conditions.
 */
export const needsReading = (schema: JsonObject): boolean =>
  /"(?:\$id|\$anchor|\$dynamicAnchor|\$dynamicRef|unevaluatedItems)":/.test(JSON.stringify(schema)) ||
  nestsConditions(schema)

/** The same meaning in ajv's words, before objects are closed. */
export const reworded = (schema: JsonObject, dialect: Dialect): JsonObject => {
  const kept = dialect === "draft-07" && schema["$ref"] !== undefined ? referenceAlone(schema) : schema
  const inner = mapInside(kept, (one) => (isObject(one) ? reworded(one, dialect) : one))
  return emptyChoice(inner)
}

/** The same for a schema whose objects are closed: what is asked in a condition must stay open. */
export const withConditions = (schema: JsonObject): JsonObject =>
  conditionCounted(mapInside(schema, (one) => (isObject(one) ? withConditions(one) : one)))
