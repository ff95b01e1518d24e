/**
 * Checks a value against a schema by reading it as its specification (2020-12 or draft-07) is written: dynamic scope, and which
 * fields and items have been looked at. For the schemas that ajv reads differently; its errors are in ajv's terms.
 */
import type { ErrorObject } from "ajv"
import { isObject, type Json, type JsonObject } from "./JsonText.ts"
import { assertions, patternOf } from "./SchemaAssertions.ts"
import type { Dialect } from "./SchemaDialect.ts"
import { type Described, type Resource, SchemaResources } from "./SchemaResources.ts"

/** What parts of a schema have looked at. What a failed choice looked at does not count. */
class Seen {
  readonly names = new Set<string>()
  readonly items = new Set<number>()

  add({ items, names }: Seen): void {
    for (const name of names) this.names.add(name)
    for (const item of items) this.items.add(item)
  }
}

/** One schema that is being applied to one value. */
interface Step {
  readonly schema: JsonObject
  readonly value: Json
  /** RFC 6901, of the value. */
  readonly place: string
  /** The keywords that led here, as a pointer. */
  readonly path: string
  /** Schemas with a base of their own that were entered on the way, the outermost first. */
  readonly scope: ReadonlyArray<Resource>
  readonly errors: Array<ErrorObject>
  readonly seen: Seen
}

const pointer = (key: string | number): string => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`

/** Keywords of 2020-12 that mean nothing in draft-07. `unevaluatedProperties` is not one: objects are closed with it. */
const unknownToDraft07: ReadonlySet<string> = new Set([
  "$dynamicRef",
  "dependentRequired",
  "dependentSchemas",
  "maxContains",
  "minContains",
  "prefixItems"
])

const schemasOf = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])
const entriesOf = (value: Json | undefined): ReadonlyArray<[string, Json]> =>
  value !== undefined && isObject(value) ? Object.entries(value) : []

class Interpreter {
  readonly #resources: SchemaResources
  readonly #root: JsonObject

  constructor(root: JsonObject, dialect: Dialect, described: Described) {
    this.#root = root
    this.#resources = new SchemaResources(root, dialect, described)
    for (const schema of this.#resources.schemas) this.#prepare(schema)
  }

  check(value: Json): ReadonlyArray<ErrorObject> {
    const errors: Array<ErrorObject> = []
    this.#apply(this.#root, value, { place: "", path: "#", scope: [], errors })
    return errors
  }

  /** What cannot be followed or matched is known before the first value comes. */
  #prepare(schema: JsonObject): void {
    for (const key of ["$ref", "$dynamicRef"]) {
      const reference = this.#keyword(schema, key)
      if (typeof reference === "string") this.#resources.locate(schema, reference)
    }
    const { pattern } = schema
    if (typeof pattern === "string") patternOf(pattern)
    for (const [text] of entriesOf(schema["patternProperties"])) patternOf(text)
  }

  /** A keyword of the dialect the schema is written in. */
  #keyword(schema: JsonObject, key: string): Json | undefined {
    if (!Object.hasOwn(schema, key)) return undefined
    const { dialect } = this.#resources.homeOf(schema)
    return dialect === "draft-07" && unknownToDraft07.has(key) ? undefined : schema[key]
  }

  #apply(schema: Json, value: Json, at: Pick<Step, "place" | "path" | "scope" | "errors">): Seen {
    const seen = new Seen()
    if (!isObject(schema)) {
      if (schema === false) at.errors.push(errorOf({ ...at, schema: {}, value, seen }, "false schema", false))
      return seen
    }
    const home = this.#resources.homeOf(schema)
    const scope = at.scope.at(-1) === home ? at.scope : [...at.scope, home]
    const step: Step = { ...at, schema, value, scope, seen }
    for (const key of Object.keys(schema)) {
      const failed = this.#keyword(schema, key) === undefined ? undefined : assertions.get(key)?.(value, schema[key]!)
      for (const { message, params } of failed ?? [])
        step.errors.push(errorOf(step, key, schema[key]!, params, message))
    }
    this.#references(step)
    this.#logic(step)
    this.#condition(step)
    if (isObject(value)) this.#fields(step, value)
    if (Array.isArray(value)) this.#items(step, value)
    return seen
  }

  /** Applies a schema inside, as part of this one: what it finds wrong is wrong. */
  #part(step: Step, schema: Json, keys: string): void {
    step.seen.add(this.#apply(schema, step.value, { ...step, path: `${step.path}${keys}` }))
  }

  /** Asks a schema inside, without consequences. */
  #ask(step: Step, schema: Json, keys: string, value = step.value) {
    const errors: Array<ErrorObject> = []
    const seen = this.#apply(schema, value, { ...step, path: `${step.path}${keys}`, errors })
    return { errors, seen, fits: errors.length === 0 }
  }

  #references(step: Step): void {
    const { schema, scope } = step
    const reference = this.#keyword(schema, "$ref")
    if (typeof reference === "string") this.#part(step, this.#resources.locate(schema, reference).schema, "/$ref")
    const dynamic = this.#keyword(schema, "$dynamicRef")
    if (typeof dynamic !== "string") return
    const { anchor, resource, schema: target } = this.#resources.locate(schema, dynamic)
    // Only what is itself named by `$dynamicAnchor` gives way to the outermost of that name.
    const gives = anchor !== undefined && resource.dynamic.has(anchor)
    const outermost = gives ? scope.find(({ dynamic }) => dynamic.has(anchor))?.dynamic.get(anchor) : undefined
    this.#part(step, outermost ?? target, "/$dynamicRef")
  }

  #logic(step: Step): void {
    const { errors, schema, seen } = step
    for (const [index, one] of schemasOf(schema["allOf"]).entries()) this.#part(step, one, `/allOf/${index}`)
    for (const key of ["anyOf", "oneOf"]) {
      if (schema[key] === undefined) continue
      const asked = schemasOf(schema[key]).map((one, index) => this.#ask(step, one, `/${key}/${index}`))
      const fitting = asked.flatMap(({ fits }, index) => (fits ? [index] : []))
      for (const index of fitting) seen.add(asked[index]!.seen)
      if (fitting.length === 1 || (key === "anyOf" && fitting.length > 0)) continue
      if (fitting.length === 0) errors.push(...asked.flatMap((one) => one.errors))
      errors.push(errorOf(step, key, schema[key], { passingSchemas: fitting.length === 0 ? null : fitting }))
    }
    const { not } = schema
    if (not !== undefined && this.#ask(step, not, "/not").fits) errors.push(errorOf(step, "not", not))
  }

  #condition(step: Step): void {
    const { errors, schema, seen } = step
    if (schema["if"] === undefined) return
    const asked = this.#ask(step, schema["if"], "/if")
    if (asked.fits) seen.add(asked.seen)
    const key = asked.fits ? "then" : "else"
    const branch = schema[key]
    if (branch === undefined) return
    const before = errors.length
    this.#part(step, branch, `/${key}`)
    if (errors.length > before) errors.push(errorOf(step, "if", schema["if"], { failingKeyword: key }))
  }

  #fields(step: Step, value: JsonObject): void {
    const { errors, schema, seen } = step
    for (const key of ["dependentSchemas", "dependencies"]) {
      for (const [name, one] of entriesOf(this.#keyword(schema, key))) {
        if (!Object.hasOwn(value, name)) continue
        if (!Array.isArray(one)) this.#part(step, one, `/${key}${pointer(name)}`)
        else {
          const missing = one.filter((other) => !Object.hasOwn(value, other as string))
          errors.push(...missing.map((other) => errorOf(step, key, schema[key]!, { missingProperty: other })))
        }
      }
    }
    const own = new Set<string>()
    for (const [name, one] of entriesOf(schema["properties"])) {
      if (Object.hasOwn(value, name)) this.#field(step, name, one, `/properties${pointer(name)}`, own)
    }
    for (const [text, one] of entriesOf(schema["patternProperties"])) {
      for (const name of Object.keys(value).filter((key) => patternOf(text).test(key)))
        this.#field(step, name, one, `/patternProperties${pointer(text)}`, own)
    }
    const { additionalProperties, propertyNames, unevaluatedProperties } = schema
    if (additionalProperties !== undefined) {
      this.#rest(step, "additionalProperty", additionalProperties, (name) => own.has(name))
    }
    if (propertyNames !== undefined) {
      for (const propertyName of Object.keys(value)) {
        const asked = this.#ask(step, propertyNames, "/propertyNames", propertyName)
        if (asked.fits) continue
        const message = "property name must be valid"
        errors.push(...asked.errors, errorOf(step, "propertyNames", propertyNames, { propertyName }, message))
      }
    }
    if (unevaluatedProperties !== undefined)
      this.#rest(step, "unevaluatedProperty", unevaluatedProperties, (name) => seen.names.has(name))
  }

  #field(step: Step, name: string, schema: Json, keys: string, own?: Set<string>): void {
    const place = `${step.place}${pointer(name)}`
    this.#apply(schema, (step.value as JsonObject)[name]!, { ...step, place, path: `${step.path}${keys}` })
    own?.add(name)
    step.seen.names.add(name)
  }

  /** Fields that nothing else speaks of. */
  #rest(step: Step, param: string, schema: Json, isKnown: (name: string) => boolean): void {
    const keyword = param === "additionalProperty" ? "additionalProperties" : "unevaluatedProperties"
    for (const name of Object.keys(step.value as JsonObject).filter((one) => !isKnown(one))) {
      if (schema === false) step.errors.push(errorOf(step, keyword, false, { [param]: name }))
      else this.#field(step, name, schema, `/${keyword}`)
    }
  }

  #items(step: Step, value: ReadonlyArray<Json>): void {
    const { schema, seen } = step
    const { additionalItems, items, unevaluatedItems } = schema
    const tuple = Array.isArray(items) ? "items" : "prefixItems"
    const first = schemasOf(this.#keyword(schema, tuple))
    for (const [index, one] of first.slice(0, value.length).entries())
      this.#item(step, index, one, `/${tuple}/${index}`)
    const [key, rest] = Array.isArray(items) ? ["additionalItems", additionalItems] : ["items", items]
    if (rest !== undefined) this.#others(step, key as string, rest as Json, [...value.keys()].slice(first.length))
    this.#contains(step, value)
    if (unevaluatedItems === undefined) return
    const left = [...value.keys()].filter((index) => !seen.items.has(index))
    this.#others(step, "unevaluatedItems", unevaluatedItems, left)
  }

  #item(step: Step, index: number, schema: Json, keys: string): void {
    const place = `${step.place}/${index}`
    this.#apply(schema, (step.value as ReadonlyArray<Json>)[index]!, { ...step, place, path: `${step.path}${keys}` })
    step.seen.items.add(index)
  }

  #others(step: Step, key: string, schema: Json, indices: ReadonlyArray<number>): void {
    for (const index of indices) {
      if (schema !== false) this.#item(step, index, schema, `/${key}`)
      else {
        const error = errorOf(step, key, false, {}, "must not be there: no such item is described")
        step.errors.push({ ...error, instancePath: `${step.place}/${index}` })
      }
    }
  }

  #contains(step: Step, value: ReadonlyArray<Json>): void {
    const { errors, schema, seen } = step
    const { contains } = schema
    if (contains === undefined) return
    const found = value.flatMap((item, index) => (this.#ask(step, contains, "/contains", item).fits ? [index] : []))
    // Draft-07 says nothing of what has been looked at.
    if (this.#resources.homeOf(schema).dialect === "2020-12") for (const index of found) seen.items.add(index)
    const least = (this.#keyword(schema, "minContains") ?? 1) as number
    const most = (this.#keyword(schema, "maxContains") ?? Number.POSITIVE_INFINITY) as number
    if (found.length >= least && found.length <= most) return
    const bound = most === Number.POSITIVE_INFINITY ? "" : ` and no more than ${most}`
    errors.push(errorOf(step, "contains", contains, {}, `must contain at least ${least}${bound} valid item(s)`))
  }
}

const errorOf = (
  { path, place, schema, value }: Step,
  keyword: string,
  limit: Json,
  params: Readonly<Record<string, unknown>> = {},
  message = keyword === "false schema" ? "boolean schema is false" : `must pass "${keyword}"`
): ErrorObject => ({
  keyword,
  instancePath: place,
  schemaPath: `${path}/${keyword}`,
  params,
  schema: limit,
  parentSchema: schema as Record<string, unknown>,
  data: value,
  message
})

/** Throws an `Error` where the schema refers to what is not there, names something twice, or has a pattern that is none. */
export const interpret = (
  root: JsonObject,
  dialect: Dialect,
  described: Described
): ((value: Json) => ReadonlyArray<ErrorObject>) => {
  const interpreter = new Interpreter(root, dialect, described)
  return (value) => interpreter.check(value)
}
