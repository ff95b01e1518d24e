/**
 * A JSON Schema as alternatives of one type each: references followed, compositions merged. What a grammar cannot say is
 * told to `missed` and left to validation, which is written without any of this.
 */
import { canonical, isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import type { Bound } from "./Digits.ts"
import { type Merged, merge } from "./Merge.ts"

export interface Place {
  /** RFC 6901 pointer into the tool's parameters. */
  readonly pointer: string
  readonly schema: Json
}

export type Shape =
  | { readonly type: "any" | "null" | "boolean" }
  | { readonly type: "integer" | "number"; readonly low?: Bound; readonly high?: Bound }
  | { readonly type: "string"; readonly least: number; readonly most?: number }
  | { readonly type: "literals"; readonly values: ReadonlyArray<Json> }
  | {
      readonly type: "array"
      readonly first: ReadonlyArray<Place>
      readonly items: Place | undefined
      readonly least: number
      readonly most?: number
    }
  | ObjectShape

export interface ObjectShape {
  readonly type: "object"
  /** In the order they are declared; `required` ones that nobody declared come last. */
  readonly fields: ReadonlyArray<Place & { readonly name: string; readonly required: boolean }>
  /** What other fields hold; `undefined`: there are none. */
  readonly others: Place | undefined
}

export type Missed = (pointer: string, keyword: string) => void

/** Repetitions beyond this are not carried: the notation writes each of them out. */
const maxRepeats = 2000
/** Alternatives a schema may be multiplied out to. */
const maxAlternatives = 64

const annotations = new Set(
  "title,description,default,examples,example,deprecated,readOnly,writeOnly,format,contentEncoding,contentMediaType,contentSchema,nullable".split(
    ","
  )
)
const structure = new Set(["$ref", "$defs", "definitions", "$schema", "$id", "$comment", "$anchor", "id"])
const carried: Readonly<Record<string, ReadonlyArray<string>>> = {
  object: ["properties", "required", "additionalProperties"],
  array: ["items", "prefixItems", "minItems", "maxItems", "additionalItems"],
  string: ["minLength", "maxLength"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
}
const belongsTo: Readonly<Record<string, string>> = Object.fromEntries([
  ...Object.entries(carried).flatMap(([type, keys]) => keys.map((key) => [key, type])),
  ...["patternProperties", "propertyNames", "minProperties", "maxProperties"].map((key) => [key, "object"]),
  ...["dependentRequired", "dependentSchemas", "dependencies", "unevaluatedProperties"].map((key) => [key, "object"]),
  ...["uniqueItems", "contains", "minContains", "maxContains", "unevaluatedItems"].map((key) => [key, "array"]),
  ["pattern", "string"],
  ["multipleOf", "number"]
])

export class Shapes {
  readonly #root: JsonObject
  readonly #missed: Missed

  constructor(root: JsonObject, missed: Missed) {
    this.#root = root
    this.#missed = missed
  }

  /** The reference a schema consists of, where it asserts nothing beside it. */
  referenceOf(schema: Json): string | undefined {
    if (!isObject(schema) || typeof schema["$ref"] !== "string") return undefined
    const beside = Object.keys(schema).some((key) => key !== "$ref" && !annotations.has(key) && !structure.has(key))
    return beside ? undefined : schema["$ref"]
  }

  /** The schema behind a reference inside the document. */
  resolve(reference: string): Place | undefined {
    if (reference === "#") return { pointer: "", schema: this.#root }
    if (!reference.startsWith("#/")) return undefined
    let at: Json | undefined = this.#root
    for (const step of decodeURIComponent(reference).slice(2).split("/")) {
      const key = step.replaceAll("~1", "/").replaceAll("~0", "~")
      at = typeof at === "object" && at !== null && Object.hasOwn(at, key) ? (at as JsonObject)[key] : undefined
    }
    return at === undefined ? undefined : { pointer: reference.slice(1), schema: at }
  }

  /** Every type of value the schema accepts. None: it accepts nothing. */
  of(place: Place): ReadonlyArray<Shape> {
    return this.#flat(place, new Set()).flatMap((merged) => this.#shapes(merged, place.pointer))
  }

  /** The schema with its references and compositions multiplied out. */
  #flat({ pointer, schema }: Place, seen: ReadonlySet<string>): ReadonlyArray<Merged> {
    if (schema === true) return [{}]
    if (!isObject(schema)) return []
    const { $ref, allOf, anyOf, oneOf, ...own } = schema
    let out: ReadonlyArray<Merged> = [own as Merged]
    const meet = (parts: ReadonlyArray<Merged>): void => {
      const met: Array<Merged> = []
      for (const one of out) {
        for (const part of parts) {
          const both = merge(one, part, (key) => this.#missed(pointer, key))
          if (both !== undefined) met.push(both)
        }
      }
      out = met
      if (out.length > maxAlternatives) {
        this.#missed(pointer, "anyOf")
        out = out.slice(0, maxAlternatives)
      }
    }
    if (typeof $ref === "string") {
      const target = this.resolve($ref)
      if (target === undefined || seen.has($ref)) this.#missed(pointer, "$ref")
      else meet(this.#flat(target, new Set([...seen, $ref])))
    }
    if (Array.isArray(allOf)) {
      for (const [index, part] of allOf.entries()) {
        meet(this.#flat({ pointer: `${pointer}/allOf/${index}`, schema: part }, seen))
      }
    }
    for (const [key, list] of [
      ["anyOf", anyOf],
      ["oneOf", oneOf]
    ] as const) {
      if (!Array.isArray(list)) continue
      const parts = list.map((part, index) => this.#flat({ pointer: `${pointer}/${key}/${index}`, schema: part }, seen))
      if (key === "oneOf" && !areApart(parts)) this.#missed(pointer, "oneOf")
      meet(parts.flat())
    }
    return out
  }

  #shapes(schema: Merged, pointer: string): ReadonlyArray<Shape> {
    const values = literalsOf(schema)
    const types = typesOf(schema)
    if (values !== undefined) {
      this.#unsaid(schema, pointer, [...Object.keys(belongsTo).filter((key) => !isLoose(key, values))])
      return [
        {
          type: "literals",
          values: values.filter((value) => types.length === 0 || types.some((type) => is(value, type)))
        }
      ]
    }
    if (types.length > 0) return types.flatMap((type) => this.#typed(schema, type, pointer))
    // Keywords of a type without the type: others would be accepted too, but these are meant.
    const meant = [...new Set(Object.keys(schema).flatMap((key) => belongsTo[key] ?? []))]
    this.#unsaid(schema, pointer, meant.length > 0 ? [] : Object.keys(belongsTo))
    return meant.length === 0 ? [{ type: "any" }] : meant.flatMap((type) => this.#typed(schema, type, pointer))
  }

  #typed(schema: Merged, type: string, pointer: string): ReadonlyArray<Shape> {
    const family = type === "integer" ? "number" : type
    this.#unsaid(schema, pointer, carried[family] ?? [], family)
    switch (type) {
      case "object":
        return [this.#object(schema, pointer)]
      case "array":
        return [this.#array(schema, pointer)]
      case "string":
        return [{ type, ...this.#counts(schema, "Length", pointer) }]
      case "integer":
      case "number":
        return [{ type, ...boundsOf(schema) }]
      case "boolean":
      case "null":
        return [{ type }]
      default:
        return []
    }
  }

  /** Tells which assertions about this type are not in `known`. */
  #unsaid(schema: Merged, pointer: string, known: ReadonlyArray<string>, family?: string): void {
    for (const key of Object.keys(schema)) {
      if (key === "type" || key === "enum" || key === "const" || annotations.has(key) || structure.has(key)) continue
      if (known.includes(key)) continue
      const about = belongsTo[key]
      if (about !== undefined && family !== undefined && about !== family) continue
      if (key === "uniqueItems" && schema[key] === false) continue
      if (key.startsWith("unevaluated")) continue
      if (key === "multipleOf" && schema[key] === 1 && schema["type"] === "integer") continue
      this.#missed(pointer, key)
    }
  }

  #object(schema: Merged, pointer: string): ObjectShape {
    const properties = isObject(schema["properties"] ?? null) ? (schema["properties"] as JsonObject) : {}
    const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : []
    const extra = schema["additionalProperties"] ?? schema["unevaluatedProperties"]
    const open = extra === undefined ? schema["properties"] === undefined && pointer !== "" : extra !== false
    const others = open
      ? { pointer: `${pointer}/additionalProperties`, schema: extra === undefined ? true : extra }
      : undefined
    const at = (name: string) => `${pointer}/properties/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`
    const undeclared = required.filter((name) => !Object.hasOwn(properties, name))
    return {
      type: "object",
      others,
      fields: [
        ...Object.entries(properties).map(([name, inner]) => ({
          name,
          required: required.includes(name),
          pointer: at(name),
          schema: inner
        })),
        ...undeclared.map((name) => ({ name, required: true, pointer: at(name), schema: others?.schema ?? false }))
      ]
    }
  }

  #array(schema: Merged, pointer: string): Shape {
    const list = schema["prefixItems"] ?? (Array.isArray(schema["items"]) ? schema["items"] : undefined)
    const rest = Array.isArray(schema["items"]) ? schema["additionalItems"] : schema["items"]
    const key = schema["prefixItems"] === undefined ? "items" : "prefixItems"
    const first = Array.isArray(list) ? list : []
    return {
      type: "array",
      first: first.map((item: Json, index: number) => ({ pointer: `${pointer}/${key}/${index}`, schema: item })),
      items: rest === false ? undefined : { pointer: `${pointer}/items`, schema: rest ?? true },
      ...this.#counts(schema, "Items", pointer)
    }
  }

  #counts(
    schema: Merged,
    what: "Length" | "Items",
    pointer: string
  ): { readonly least: number; readonly most?: number } {
    const read = (key: string): number | undefined => {
      const value = schema[key]
      if (typeof value !== "number") return undefined
      if (value <= maxRepeats) return Math.max(0, Math.ceil(value))
      this.#missed(pointer, key)
      return undefined
    }
    const most = read(`max${what}`)
    return { least: read(`min${what}`) ?? 0, ...(most === undefined ? {} : { most }) }
  }
}

const typesOf = (schema: Merged): ReadonlyArray<string> => {
  const type = schema["type"]
  const list = (Array.isArray(type) ? type : type === undefined ? [] : [type]).map(String)
  return list.includes("number") ? list.filter((one) => one !== "integer") : list
}

const literalsOf = (schema: Merged): ReadonlyArray<Json> | undefined => {
  const listed = Array.isArray(schema["enum"]) ? (schema["enum"] as ReadonlyArray<Json>) : undefined
  if (!Object.hasOwn(schema, "const")) return listed
  const only = canonical(schema["const"]!)
  return listed === undefined || listed.some((one) => canonical(one) === only) ? [schema["const"]!] : []
}

/** Could this assertion refuse one of the values? Types it is not about it accepts. */
const isLoose = (key: string, values: ReadonlyArray<Json>): boolean =>
  values.some((value) => is(value, belongsTo[key] ?? ""))

const is = (value: Json, type: string): boolean => {
  if (value === null) return type === "null"
  if (Array.isArray(value)) return type === "array"
  if (typeof value === "number") return type === "number" || (type === "integer" && Number.isInteger(value))
  return typeof value === type
}

const boundsOf = (schema: Merged): { readonly low?: Bound; readonly high?: Bound } => {
  const bound = (inclusive: string, exclusive: string, sign: 1 | -1): Bound | undefined => {
    const given: Array<Bound> = []
    if (typeof schema[inclusive] === "number") given.push({ value: schema[inclusive], exclusive: false })
    if (typeof schema[exclusive] === "number") given.push({ value: schema[exclusive], exclusive: true })
    return given.sort((a, b) => sign * (b.value - a.value) || (a.exclusive ? -1 : 1))[0]
  }
  const low = bound("minimum", "exclusiveMinimum", 1)
  const high = bound("maximum", "exclusiveMaximum", -1)
  return { ...(low === undefined ? {} : { low }), ...(high === undefined ? {} : { high }) }
}

/** Do no two of the branches accept the same value, as far as types and constants tell? */
const areApart = (branches: ReadonlyArray<ReadonlyArray<Merged>>): boolean =>
  branches.every((one, index) =>
    branches.slice(index + 1).every((other) => one.every((a) => other.every((b) => differ(a, b))))
  )

const differ = (a: Merged, b: Merged): boolean => {
  const [typesA, typesB] = [typesOf(a), typesOf(b)]
  const numeric = (type: string) => (type === "integer" ? "number" : type)
  if (typesA.length > 0 && typesB.length > 0 && !typesA.some((one) => typesB.map(numeric).includes(numeric(one))))
    return true
  const [valuesA, valuesB] = [literalsOf(a), literalsOf(b)]
  if (valuesA !== undefined && valuesB !== undefined) {
    const known = new Set(valuesA.map(canonical))
    return !valuesB.some((value) => known.has(canonical(value)))
  }
  const fields = [a, b].map((one) => (isObject(one["properties"] ?? null) ? (one["properties"] as JsonObject) : {}))
  const required = [a, b].map((one) => (Array.isArray(one["required"]) ? one["required"].map(String) : []))
  return required[0]!.some((name) => {
    if (!required[1]!.includes(name)) return false
    const [left, right] = [fields[0]![name], fields[1]![name]]
    return left !== undefined && right !== undefined && isObject(left) && isObject(right) && differ(left, right)
  })
}
