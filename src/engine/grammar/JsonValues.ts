/**
 * Grammar rules for JSON values that satisfy a schema, in the one spelling they are steered to: keys in declared order, at
 * most one space where JSON allows white space, no number that loses digits, nothing nested deeper than is read.
 */
import { isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import { integers, maxDigits, numbers } from "./Digits.ts"
import { choice, literal, otherThan, type Rules } from "./Gbnf.ts"
import { type Missed, type ObjectShape, type Place, type Shape, Shapes } from "./Shapes.ts"

/** Levels that arguments may be nested; deeper values are not read. */
const maxDepth = 32
/** Rules of one tool; beyond that its inner schemas are left to validation. */
const maxRules = 4000

/** The space JSON allows almost everywhere. */
const space = '" "?'

export class JsonValues {
  readonly #rules: Rules
  readonly #shapes: Shapes
  readonly #missed: Missed
  readonly #first: number
  readonly #known = new Map<JsonObject, Map<number, string | undefined>>()

  constructor(rules: Rules, root: JsonObject, missed: Missed) {
    this.#rules = rules
    this.#missed = missed
    this.#shapes = new Shapes(root, missed)
    this.#first = rules.size
  }

  /** The alternatives of a place, for a syntax that writes the outermost level in its own way. */
  shapesOf(place: Place): ReadonlyArray<Shape> {
    return this.#shapes.of(place)
  }

  /** An expression for a value nested `depth` levels deep, or `undefined` where no value fits. */
  value(place: Place, depth: number): string | undefined {
    const reference = this.#shapes.referenceOf(place.schema)
    const target = reference === undefined ? place : this.#shapes.resolve(reference)
    if (target === undefined) {
      this.#missed(place.pointer, "$ref")
      return this.#any(depth)
    }
    const { schema } = target
    if (!isObject(schema)) return this.#value(target, depth)
    // One rule for each schema and level, so that what refers to itself ends where the reader's depth does.
    let levels = this.#known.get(schema)
    if (levels === undefined) this.#known.set(schema, (levels = new Map()))
    if (levels.has(depth)) return levels.get(depth)
    // A reference that leads back here without a level in between holds no value.
    levels.set(depth, undefined)
    const made = this.#value(target, depth)
    const rule = made === undefined ? undefined : this.#rules.add(made)
    levels.set(depth, rule)
    return rule
  }

  #value(place: Place, depth: number): string | undefined {
    if (this.#rules.size - this.#first > maxRules) {
      this.#missed(place.pointer, "(size)")
      return this.#any(depth)
    }
    const parts = this.#shapes.of(place).flatMap((shape) => this.shape(shape, place.pointer, depth) ?? [])
    return parts.length === 0 ? undefined : choice([...new Set(parts)])
  }

  /** An expression for one alternative. */
  shape(shape: Shape, pointer: string, depth: number): string | undefined {
    switch (shape.type) {
      case "any":
        return this.#any(depth)
      case "null":
        return '"null"'
      case "boolean":
        return '("true" | "false")'
      case "integer":
        return this.#integer(shape)
      case "number":
        return this.#number(shape, pointer)
      case "string":
        return `"\\"" ${this.#characters(shape.least, shape.most)} "\\""`
      case "literals":
        return shape.values.length === 0 ? undefined : choice(shape.values.map((value) => literal(jsonText(value))))
      case "array":
        return this.#array(shape, depth)
      case "object":
        return this.object(shape, depth)
    }
  }

  #any(depth: number): string {
    const scalar = this.#rules.define(
      "scalar",
      () => `"\\"" ${this.#characters(0)} "\\"" | ${freeNumber} | "true" | "false" | "null"`
    )
    if (depth > maxDepth) return scalar
    return this.#rules.define(`any-${depth}`, () => {
      const inner = this.#any(depth + 1)
      const member = `${this.#key()} ":" ${space} ${inner}`
      return (
        `${scalar} | "[" ${space} (${inner} ("," ${space} ${inner})*)? ${space} "]"` +
        ` | "{" ${space} (${member} ("," ${space} ${member})*)? ${space} "}"`
      )
    })
  }

  #integer({ high, low }: Extract<Shape, { type: "integer" | "number" }>): string | undefined {
    if (low === undefined && high === undefined)
      return this.#rules.define("integer", () => `"-"? ${digits} | "-"? ${widest}`)
    const top = BigInt(Number.MAX_SAFE_INTEGER)
    const whole = (value: number): bigint => BigInt(Math.min(Math.max(value, -Number(top)), Number(top)))
    const from = low === undefined ? -top : whole(low.exclusive ? Math.floor(low.value) + 1 : Math.ceil(low.value))
    const to = high === undefined ? top : whole(high.exclusive ? Math.ceil(high.value) - 1 : Math.floor(high.value))
    const parts = from > to ? [] : integers(from, to)
    return parts.length === 0 ? undefined : this.#rules.add(parts.join(" | "))
  }

  #number({ high, low }: Extract<Shape, { type: "integer" | "number" }>, pointer: string): string | undefined {
    if (low === undefined && high === undefined) return this.#rules.define("number", () => freeNumber)
    const parts = numbers(low, high)
    if (parts !== undefined) return parts.length === 0 ? undefined : this.#rules.add(parts.join(" | "))
    if (low !== undefined) this.#missed(pointer, low.exclusive ? "exclusiveMinimum" : "minimum")
    if (high !== undefined) this.#missed(pointer, high.exclusive ? "exclusiveMaximum" : "maximum")
    return this.#rules.define("number", () => freeNumber)
  }

  /** Characters of a string. Where they are counted, only such as count one wherever they are counted. */
  #characters(least: number, most?: number): string {
    const rule =
      most === undefined
        ? this.#rules.define("character", () => `[^"\\\\\\x00-\\x1f] | ${this.#escape()}`)
        : this.#rules.define(
            "counted",
            () => `[^"\\\\\\x00-\\x1f\\ud800-\\udfff\\U00010000-\\U0010ffff] | ${this.#escape()}`
          )
    if (most === undefined) return least === 0 ? `${rule}*` : `${rule}{${least},}`
    return most === 0 ? "" : `${rule}{${least},${most}}`
  }

  /** No surrogate is written as an escape: half a pair is no character. */
  #escape(): string {
    return this.#rules.define(
      "escape",
      () => `"\\\\" (["\\\\/bfnrt] | "u" ([0-9a-cefA-CEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2}))`
    )
  }

  /** A key nobody declared; without escapes, so that it can be told from the declared ones. */
  #key(declared: ReadonlyArray<string> = []): string {
    if (declared.length === 0) return this.#rules.define("key", () => `"\\"" [^"\\\\\\x00-\\x1f]* "\\""`)
    const rest = this.#rules.define("key-rest", () => `[^"\\\\\\x00-\\x1f]*`)
    return `"\\"" ${otherThan(this.#rules, declared, '"\\\\\\x00-\\x1f', rest, false)} "\\""`
  }

  #array({ first, items, least, most }: Extract<Shape, { type: "array" }>, depth: number): string | undefined {
    if (depth > maxDepth) return undefined
    const fixed: Array<string> = []
    for (const place of first.slice(0, most)) {
      const one = this.value(place, depth + 1)
      if (one === undefined) break
      fixed.push(this.#rules.add(one))
    }
    const complete = fixed.length === first.length
    const inner = complete && items !== undefined ? this.value(items, depth + 1) : undefined
    const limit = Math.min(most ?? Infinity, inner === undefined ? fixed.length : Infinity)
    if (least > limit) return undefined
    const item = inner === undefined ? "" : this.#rules.add(inner)
    const body = this.#items(fixed, item, least, limit)
    return `"[" ${space} ${body} "]"`
  }

  /** The first entries one by one, as many of them as must be there; then the rest. */
  #items(fixed: ReadonlyArray<string>, item: string, least: number, most: number): string {
    const comma = `"," ${space}`
    let tail = ""
    const left = most - fixed.length
    if (item !== "" && left > 0) {
      const needed = Math.max(0, least - fixed.length)
      const [from, to] = fixed.length === 0 ? [Math.max(0, needed - 1), left - 1] : [needed, left]
      const more = to <= 0 ? "" : `(${comma} ${item}){${from},${to === Infinity ? "" : to}}`
      tail = fixed.length > 0 ? more : `${item} ${more}`
    }
    if (fixed.length === 0) return tail === "" ? "" : least === 0 ? `(${tail} ${space})?` : `${tail} ${space}`
    let body = tail
    for (let index = fixed.length - 1; index >= 0; index--) {
      const one = `${index === 0 ? "" : comma} ${fixed[index]!} ${body}`
      body = index < least ? one : `(${one})?`
    }
    return `${body} ${space}`
  }

  /** Fields in order, those that may be left out in brackets; no comma before the first that is there. */
  object({ fields, others }: ObjectShape, depth: number): string | undefined {
    if (depth > maxDepth) return undefined
    const members: Array<{ readonly rule: string; readonly required: boolean }> = []
    for (const field of fields) {
      const inner = this.value(field, depth + 1)
      if (inner === undefined && field.required) return undefined
      if (inner === undefined) continue
      const rule = this.#rules.add(`${literal(`${jsonText(field.name)}:`)} ${space} ${inner}`)
      members.push({ rule, required: field.required })
    }
    const free = others === undefined ? undefined : this.value(others, depth + 1)
    if (free !== undefined) this.#missed(others!.pointer, "(distinct keys)")
    const names = fields.map((field) => field.name)
    const extra = free === undefined ? undefined : this.#rules.add(`${this.#key(names)} ":" ${space} ${free}`)
    const comma = `"," ${space}`
    let rest = extra === undefined ? '""' : this.#rules.add(`(${comma} ${extra})*`)
    let first = extra === undefined ? '""' : this.#rules.add(`(${extra} ${rest})?`)
    for (const { required, rule } of members.toReversed()) {
      const here = `${rule} ${rest}`
      first = this.#rules.add(required ? here : `${here} | ${first}`)
      rest = this.#rules.add(required ? `${comma} ${here}` : `(${comma} ${rule})? ${rest}`)
    }
    return `"{" ${space} ${first} ${space} "}"`
  }
}

const digits = `("0" | [1-9] [0-9]{0,${maxDigits - 1}})`
/** Sixteen digits that are still safe. */
const widest = "[1-8] [0-9]{15}"
const freeNumber = `"-"? ${digits} ("." [0-9]{1,16})? ([eE] [+-]? [0-9]{1,2})?`

/** JSON as models are shown it: a space after each comma and colon. */
const jsonText = (value: Json): string => {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(", ")}]`
  if (!isObject(value)) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([key, inner]) => `${JSON.stringify(key)}: ${jsonText(inner)}`)
    .join(", ")}}`
}
