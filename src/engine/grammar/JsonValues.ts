/**
 * Grammar rules for JSON values that satisfy a schema, in the one spelling they are steered to: keys in one order, at
 * most one space where JSON allows white space, no number that loses digits, nothing nested deeper than is read. How
 * strings, keys and `null` are spelled is the spelling's.
 */
import { isObject, type JsonObject } from "../../tools/JsonText.ts"
import { integers, maxDigits, numbers } from "./Digits.ts"
import { choice, literal, type Rules } from "./Gbnf.ts"
import { type Missed, type ObjectShape, type Place, type Shape, Shapes } from "./Shapes.ts"
import { json, type Spelling } from "./Spelling.ts"

/** Levels that arguments may be nested; deeper values are not read. */
const maxDepth = 32
/** Rules of one tool; beyond that its inner schemas are left to validation. */
const maxRules = 4000

export class JsonValues {
  readonly #rules: Rules
  readonly #shapes: Shapes
  readonly #missed: Missed
  readonly #spelling: Spelling
  readonly #first: number
  readonly #known = new Map<JsonObject, Map<number, string | undefined>>()

  constructor(rules: Rules, root: JsonObject, missed: Missed, spelling: Spelling = json) {
    this.#rules = rules
    this.#spelling = spelling
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
        return literal(this.#spelling.nothing)
      case "boolean":
        return '("true" | "false")'
      case "integer":
        return this.#integer(shape)
      case "number":
        return this.#number(shape, pointer)
      case "string":
        return this.#string(shape, pointer)
      case "literals": {
        const written = shape.values.flatMap((value) => this.#spelling.literal(value) ?? [])
        return written.length === 0 ? undefined : choice(written)
      }
      case "array":
        return this.#array(shape, depth)
      case "object":
        return this.object(shape, depth)
    }
  }

  #any(depth: number): string {
    const { nothing, space } = this.#spelling
    const scalar = this.#rules.define(
      "scalar",
      () => `${this.#anyString()} | ${freeNumber} | "true" | "false" | ${literal(nothing)}`
    )
    if (depth > maxDepth) return scalar
    return this.#rules.define(`any-${depth}`, () => {
      const inner = this.#any(depth + 1)
      const member = `${this.#spelling.otherKey(this.#rules, [])} ":" ${space} ${inner}`
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

  /** Lengths that the spelling cannot keep are left to validation. */
  #string({ least, most }: Extract<Shape, { type: "string" }>, pointer: string): string {
    const exact = this.#spelling.string(this.#rules, least, most)
    if (exact !== undefined) return exact
    if (least > 0) this.#missed(pointer, "minLength")
    if (most !== undefined) this.#missed(pointer, "maxLength")
    return this.#anyString()
  }

  #anyString(): string {
    return this.#spelling.string(this.#rules, 0)!
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
    const { space } = this.#spelling
    return `"[" ${space} ${body} "]"`
  }

  /** The first entries one by one, as many of them as must be there; then the rest. */
  #items(fixed: ReadonlyArray<string>, item: string, least: number, most: number): string {
    const { space } = this.#spelling
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
    const { otherKey, space } = this.#spelling
    const members = this.#members(fields, depth)
    if (members === undefined) return undefined
    const free = others === undefined ? undefined : this.value(others, depth + 1)
    if (free !== undefined) this.#missed(others!.pointer, "(distinct keys)")
    const names = fields.map((field) => field.name)
    const extra =
      free === undefined ? undefined : this.#rules.add(`${otherKey(this.#rules, names)} ":" ${space} ${free}`)
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

  /** `undefined` where a required field cannot be written or holds nothing. */
  #members(
    fields: ObjectShape["fields"],
    depth: number
  ): ReadonlyArray<{ readonly rule: string; readonly required: boolean }> | undefined {
    const members: Array<{ readonly rule: string; readonly required: boolean }> = []
    for (const field of this.#spelling.sorted === true ? byName(fields) : fields) {
      const key = this.#spelling.key(field.name)
      if (key === undefined) this.#missed(field.pointer, "(its name cannot be written)")
      const inner = key === undefined ? undefined : this.value(field, depth + 1)
      if (inner === undefined && field.required) return undefined
      if (inner === undefined) continue
      const rule = this.#rules.add(`${key} ${this.#spelling.space} ${inner}`)
      members.push({ rule, required: field.required })
    }
    return members
  }
}

const byName = (fields: ObjectShape["fields"]): ObjectShape["fields"] =>
  fields
    .map((field) => ({ field, folded: field.name.toLowerCase() }))
    .sort((a, b) => (a.folded < b.folded ? -1 : a.folded > b.folded ? 1 : 0))
    .map(({ field }) => field)

const digits = `("0" | [1-9] [0-9]{0,${maxDigits - 1}})`
/** Sixteen digits that are still safe. */
const widest = "[1-8] [0-9]{15}"
const freeNumber = `"-"? ${digits} ("." [0-9]{1,16})? ([eE] [+-]? [0-9]{1,2})?`
