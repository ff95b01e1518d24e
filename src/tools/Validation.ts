/**
 * The outcome of checking untrusted arguments: sealed arguments, or problems that say where, what and in which words.
 * The two checkers (`EffectSchema`, `JsonSchema`) share this file so that the same mistake reads the same.
 */
import { canonical, type Json, type JsonObject } from "./JsonText.ts"
import type { Problem, ProblemCode } from "./ToolCall.ts"

class Sealed {
  /** As the model sent them. */
  readonly raw: JsonObject
  /** What the tool receives, in JSON form: `raw` with defaults filled in. */
  readonly effective: JsonObject
  #canonical: string | undefined

  constructor(raw: JsonObject, effective: JsonObject) {
    this.raw = raw
    this.effective = effective
  }

  /** RFC 8785 text of the effective arguments. Computed once, when first asked for. */
  get canonical(): string {
    this.#canonical ??= canonical(this.effective)
    return this.#canonical
  }
}

/** Arguments that a tool's own check has passed. Nothing but a checker can make one: the class is not exported. */
export interface ValidatedArguments extends Sealed {}

/** For the checkers in this folder, and for nobody else. */
export const seal = (raw: JsonObject, effective: JsonObject): ValidatedArguments => new Sealed(raw, effective)

/** Was this value sealed by a checker (of this thread)? */
export const isSealed = (value: unknown): value is ValidatedArguments => value instanceof Sealed

export type PathSegment = string | number

const pointerOf = (path: ReadonlyArray<PathSegment>): string =>
  path.map((segment) => `/${String(segment).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("")

/** `rows[0].id`; keys that are not plain words are quoted: `headers["x-id"]`. */
const dottedOf = (path: ReadonlyArray<PathSegment>): string =>
  path.reduce<string>((text, segment) => {
    if (typeof segment === "number") return `${text}[${segment}]`
    if (!/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(segment)) return `${text}[${JSON.stringify(excerpt(segment))}]`
    return text === "" ? segment : `${text}.${segment}`
  }, "")

export const problem = (path: ReadonlyArray<PathSegment>, code: ProblemCode, reason: string): Problem => ({
  pointer: pointerOf(path),
  path: dottedOf(path),
  code,
  reason
})

/**
 * One order for both checkers: by place (array indices by number, keys by code unit, a value before what is inside it),
 * then by code and reason. Repetitions are dropped.
 */
export const ordered = (problems: ReadonlyArray<Problem>): ReadonlyArray<Problem> => {
  const sorted = [...problems].sort(
    (a, b) => comparePointers(a.pointer, b.pointer) || compare(a.code, b.code) || compare(a.reason, b.reason)
  )
  return sorted.filter((one, index) => {
    const before = sorted[index - 1]
    return before === undefined || before.pointer !== one.pointer || before.reason !== one.reason
  })
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const isIndex = /^(0|[1-9]\d*)$/

const comparePointers = (a: string, b: string): number => {
  const left = a.split("/")
  const right = b.split("/")
  for (let at = 1; at < left.length && at < right.length; at++) {
    const [one, other] = [left[at]!, right[at]!]
    if (one === other) continue
    return isIndex.test(one) && isIndex.test(other) ? Number(one) - Number(other) : compare(one, other)
  }
  return left.length - right.length
}

const excerptLength = 40

/** At most 40 characters of a text, never half a surrogate pair. */
const excerpt = (text: string): string =>
  text.length <= excerptLength
    ? text
    : `${text
        .slice(0, excerptLength)
        .toWellFormed()
        .replace(/\ufffd$/u, "")}…`

/** The JSON type of a value, in JSON Schema's words. */
export const typeOf = (value: Json | undefined): string =>
  value === null ? "null" : Array.isArray(value) ? "array" : value === undefined ? "nothing" : typeof value

/** A value small enough to be repeated to the model: scalars as they are (texts cut), containers by their type. */
const shown = (value: Json | undefined): string =>
  typeof value === "string" ? excerpt(value) : typeof value === "object" ? typeOf(value) : String(value)

const either = (names: ReadonlyArray<string>): string =>
  names.length < 2 ? (names[0] ?? "nothing") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`

/** The wording of every problem, in one place. */
export const wording = {
  missing: "missing required argument",
  unknownField: "unknown field",
  wrongType: (expected: ReadonlyArray<string>, got: Json | undefined) =>
    `expected ${either(expected)}, got ${typeOf(got)}`,
  notInEnum: (allowed: ReadonlyArray<Json>, got: Json | undefined) =>
    allowed.length === 1
      ? `expected ${shown(allowed[0])}, got ${shown(got)}`
      : `expected one of [${allowed.slice(0, 20).map(shown).join(", ")}${allowed.length > 20 ? ", …" : ""}], got ${shown(got)}`,
  none: "matches none of the allowed forms",
  several: "matches more than one of the allowed forms",
  forbidden: "matches a form that is not allowed"
} as const

const counted = (bound: "at least" | "at most", limit: unknown, unit: "character" | "item" | "field"): string =>
  `must have ${bound} ${limit} ${unit}${limit === 1 ? "" : "s"}`

/** A JSON Schema keyword that a value has failed, in words; `undefined` for a keyword without its own wording. */
export const keywordReason = (keyword: string, limit: unknown): string | undefined => {
  switch (keyword) {
    case "minimum":
      return `must be at least ${limit}`
    case "maximum":
      return `must be at most ${limit}`
    case "exclusiveMinimum":
      return `must be more than ${limit}`
    case "exclusiveMaximum":
      return `must be less than ${limit}`
    case "multipleOf":
      return `must be a multiple of ${limit}`
    case "minLength":
      return counted("at least", limit, "character")
    case "maxLength":
      return counted("at most", limit, "character")
    case "minItems":
      return counted("at least", limit, "item")
    case "maxItems":
      return counted("at most", limit, "item")
    case "minProperties":
      return counted("at least", limit, "field")
    case "maxProperties":
      return counted("at most", limit, "field")
    case "pattern":
      return `must match the pattern ${excerpt(String(limit))}`
    case "uniqueItems":
      return "must not contain the same item twice"
    default:
      return undefined
  }
}
