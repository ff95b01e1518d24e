/** Keywords of JSON Schema that judge a value by itself, without looking at a schema inside. What fails is said in ajv's terms. */
import { canonical, isObject, type Json, type JsonObject } from "./JsonText.ts"

/** One failure: ajv's `params`, and its message where no other part of the program has better words. */
export interface Failed {
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string
}

type Assertion = (value: Json, limit: Json) => ReadonlyArray<Failed>

/** JSON's equality: numbers by value, objects whatever their order. */
const same = (left: Json, right: Json): boolean => left === right || canonical(left) === canonical(right)

const holds =
  (test: (value: Json, limit: Json) => boolean): Assertion =>
  (value, limit) =>
    test(value, limit) ? [] : [{ params: { limit } }]

const numbers = (test: (value: number, limit: number) => boolean): Assertion =>
  holds((value, limit) => typeof value !== "number" || test(value, limit as number))

const lengths = (test: (length: number, limit: number) => boolean): Assertion =>
  holds((value, limit) => typeof value !== "string" || test([...value].length, limit as number))

const sizes = (test: (length: number, limit: number) => boolean): Assertion =>
  holds((value, limit) => !Array.isArray(value) || test(value.length, limit as number))

const fields = (test: (length: number, limit: number) => boolean): Assertion =>
  holds((value, limit) => !isObject(value) || test(Object.keys(value).length, limit as number))

const atLeast = (value: number, limit: number): boolean => value >= limit
const atMost = (value: number, limit: number): boolean => value <= limit

const isOf = (value: Json, type: string): boolean => {
  switch (type) {
    case "null":
      return value === null
    case "array":
      return Array.isArray(value)
    case "object":
      return isObject(value)
    case "integer":
      return Number.isInteger(value)
    default:
      return typeof value === type
  }
}

const absent = (value: JsonObject, names: ReadonlyArray<string>): ReadonlyArray<Failed> =>
  names.filter((name) => !Object.hasOwn(value, name)).map((name) => ({ params: { missingProperty: name } }))

const patterns = new Map<string, RegExp>()

/** Compiled once. Throws a `SyntaxError` where it is none. */
export const patternOf = (text: string): RegExp => {
  let found = patterns.get(text)
  if (found === undefined) {
    found = new RegExp(text, "u")
    if (patterns.size >= 1000) patterns.clear()
    patterns.set(text, found)
  }
  return found
}

/** By keyword. */
export const assertions: ReadonlyMap<string, Assertion> = new Map<string, Assertion>([
  [
    "type",
    (value, type) =>
      [type].flat().some((one) => isOf(value, one as string)) ? [] : [{ params: { type: type as string } }]
  ],
  [
    "enum",
    (value, allowed) =>
      (allowed as ReadonlyArray<Json>).some((one) => same(one, value)) ? [] : [{ params: { allowedValues: allowed } }]
  ],
  ["const", (value, allowed) => (same(value, allowed) ? [] : [{ params: { allowedValue: allowed } }])],
  ["minimum", numbers(atLeast)],
  ["maximum", numbers(atMost)],
  ["exclusiveMinimum", numbers((value, limit) => value > limit)],
  ["exclusiveMaximum", numbers((value, limit) => value < limit)],
  ["multipleOf", numbers((value, limit) => Number.isInteger(value / limit))],
  ["minLength", lengths(atLeast)],
  ["maxLength", lengths(atMost)],
  ["pattern", holds((value, text) => typeof value !== "string" || patternOf(text as string).test(value))],
  ["minItems", sizes(atLeast)],
  ["maxItems", sizes(atMost)],
  [
    "uniqueItems",
    holds(
      (value, asked) => asked !== true || !Array.isArray(value) || new Set(value.map(canonical)).size === value.length
    )
  ],
  ["minProperties", fields(atLeast)],
  ["maxProperties", fields(atMost)],
  ["required", (value, names) => (isObject(value) ? absent(value, names as ReadonlyArray<string>) : [])],
  [
    "dependentRequired",
    (value, map) =>
      isObject(value)
        ? Object.entries(map as JsonObject)
            .filter(([name]) => Object.hasOwn(value, name))
            .flatMap(([, names]) => absent(value, names as ReadonlyArray<string>))
        : []
  ]
])
