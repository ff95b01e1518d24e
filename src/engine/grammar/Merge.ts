/** Two schemas about the same value as one, as far as their keywords can be put together. */
import { canonical, isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"

/** A schema without references and compositions. */
export type Merged = JsonObject

/** `undefined`: no value fits both. Keywords that cannot be put together are told to `missed`; the first one's stay. */
export const merge = (one: Merged, other: Merged, missed: (keyword: string) => void): Merged | undefined => {
  const out: Record<string, Json> = { ...one }
  for (const [key, value] of Object.entries(other)) {
    const mine = Object.hasOwn(one, key) ? one[key]! : undefined
    if (mine === undefined || canonical(mine) === canonical(value)) out[key] = value
    else {
      const joined = joiners[key]?.(mine, value)
      if (joined === undefined) {
        if (!descriptive.has(key)) missed(key)
      } else if (joined === never) return undefined
      else out[key] = joined
    }
  }
  return out
}

const descriptive = new Set([
  "title",
  "description",
  "default",
  "examples",
  "$comment",
  "$schema",
  "$defs",
  "definitions"
])
const never = Symbol("never")

type Joiner = (a: Json, b: Json) => Json | typeof never | undefined

const asList = (value: Json): ReadonlyArray<Json> => (Array.isArray(value) ? value : [value])

const types: Joiner = (a, b) => {
  const [left, right] = [asList(a), asList(b)]
  const both = [...left, ...right].filter((type, index, all) => {
    const inBoth = (list: ReadonlyArray<Json>) => list.includes(type) || (type === "integer" && list.includes("number"))
    return all.indexOf(type) === index && inBoth(left) && inBoth(right)
  })
  return both.length === 0 ? never : both.length === 1 ? both[0]! : both
}

const enums: Joiner = (a, b) => {
  const known = new Set(asList(b).map(canonical))
  const both = asList(a).filter((value) => known.has(canonical(value)))
  return both.length === 0 ? never : both
}

const properties: Joiner = (a, b) => {
  if (!isObject(a) || !isObject(b)) return undefined
  const out = new Map<string, Json>(Object.entries(a))
  for (const [name, schema] of Object.entries(b)) {
    const mine = out.get(name)
    out.set(name, mine === undefined ? schema : { allOf: [mine, schema] })
  }
  return Object.fromEntries(out)
}

const least: Joiner = (a, b) => Math.max(Number(a), Number(b))
const most: Joiner = (a, b) => Math.min(Number(a), Number(b))

const joiners: Readonly<Record<string, Joiner>> = {
  type: types,
  enum: enums,
  const: () => never,
  properties,
  required: (a, b) => [...new Set([...asList(a), ...asList(b)])],
  items: (a, b) => ({ allOf: [a, b] }),
  minimum: least,
  exclusiveMinimum: least,
  minLength: least,
  minItems: least,
  maximum: most,
  exclusiveMaximum: most,
  maxLength: most,
  maxItems: most
}
