/**
 * Strict JSON text: everything RFC 8259 accepts minus what two readers could understand differently (duplicate keys,
 * integers a double cannot hold, lone surrogates, bottomless nesting). Also the canonical form of RFC 8785.
 * A scanner decides; `JSON.parse` only builds what the scanner has already accepted.
 */
import * as Result from "effect/Result"
import { JsonLevels } from "./JsonLevels.ts"

export type Json = null | boolean | number | string | ReadonlyArray<Json> | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

export type JsonFaultCode =
  | "invalid_json"
  | "duplicate_key"
  | "unsafe_integer"
  | "number_out_of_range"
  | "lone_surrogate"
  | "too_deep"
  | "trailing_characters"

/** What is wrong with a text, and where. */
export interface JsonFault {
  readonly code: JsonFaultCode
  /** UTF-16 offset into the text that was given. */
  readonly position: number
  readonly reason: string
  /** Present when the text ended inside the value: more text could still make it sound. The code is `invalid_json`. */
  readonly incomplete?: true
}

export interface JsonTextOptions {
  /** How many arrays and objects may be open at once: 32 (arguments) unless given; files use 100. */
  readonly maxDepth?: number
}

const defaultMaxDepth = 32

/** Reads a text that is one JSON value, with nothing around it but JSON white space. */
export const parse = (text: string, options?: JsonTextOptions): Result.Result<Json, JsonFault> => {
  const end = scanner.scan(text, 0, options?.maxDepth ?? defaultMaxDepth)
  if (end < 0) return Result.fail(scanner.fault!)
  const rest = skipSpace(text, end)
  if (rest < text.length) {
    return Result.fail({ code: "trailing_characters", position: rest, reason: "unexpected text after the JSON value" })
  }
  return Result.succeed(JSON.parse(text) as Json)
}

/**
 * Reads one value that starts at `start` (JSON white space before it is skipped) and leaves the rest alone.
 * `end` is exclusive. A number that touches the end of the text counts as complete.
 */
export const parsePrefix = (
  text: string,
  start: number,
  options?: JsonTextOptions
): Result.Result<{ readonly value: Json; readonly end: number }, JsonFault> => {
  const end = scanner.scan(text, start, options?.maxDepth ?? defaultMaxDepth)
  if (end < 0) return Result.fail(scanner.fault!)
  return Result.succeed({ value: JSON.parse(text.slice(start, end)) as Json, end })
}

/** Is the value nested at most `limit` deep? Without recursion: what is asked about may be deeper than the stack. */
export const isWithinDepth = (value: unknown, limit: number): boolean => {
  const open: Array<readonly [unknown, number]> = [[value, 0]]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [one, depth] = next
    if (typeof one !== "object" || one === null) continue
    if (depth >= limit) return false
    for (const inner of Object.values(one)) open.push([inner, depth + 1])
  }
  return true
}

/** A JSON object, as opposed to an array, null or a scalar. */
export const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * The canonical text of a value (RFC 8785): keys in UTF-16 order, no white space, ECMAScript number form. Equal values
 * have equal texts. NaN and the infinities have none: they throw a `RangeError`, since they are not JSON.
 */
export const canonical = (value: Json): string => {
  if (typeof value === "string") return JSON.stringify(value)
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new RangeError(`${value} has no JSON form`)
    return JSON.stringify(value)
  }
  if (typeof value !== "object" || value === null) return String(value)
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  const object = value as JsonObject
  let text = ""
  for (const key of Object.keys(object).sort()) {
    text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${canonical(object[key]!)}`
  }
  return `{${text}}`
}

const skipSpace = (text: string, start: number): number => {
  let at = start
  for (;;) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at
    at += 1
  }
}

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39
const isHex = (code: number): boolean =>
  isDigit(code) || (code >= 0x41 && code <= 0x46) || (code >= 0x61 && code <= 0x66)
const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff
const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

type Expected = "value" | "key" | "separator"

/** One pass over one value. Every step returns the offset after what it read, or -1 with `fault` set. No recursion. */
class Scanner {
  text = ""
  maxDepth = 0
  readonly levels = new JsonLevels()
  fault: JsonFault | undefined

  /** The offset behind the value that starts at `start`, or -1. */
  scan(text: string, start: number, maxDepth: number): number {
    this.text = text
    this.maxDepth = maxDepth
    this.fault = undefined
    try {
      return this.value(start)
    } finally {
      this.text = ""
      this.levels.clear()
    }
  }

  value(start: number): number {
    let expected: Expected = "value"
    let at = start
    for (;;) {
      at = skipSpace(this.text, at)
      const code = this.text.charCodeAt(at)
      if (expected === "separator") {
        const { inObject } = this.levels
        if (code === 0x2c) expected = inObject ? "key" : "value"
        else if (code === (inObject ? 0x7d : 0x5d)) this.levels.close()
        else return this.unexpected(at, inObject ? '"," or "}"' : '"," or "]"')
        at += 1
      } else if (expected === "key") {
        at = this.key(at, code)
        expected = "value"
      } else if (code === 0x7b || code === 0x5b) {
        if (this.levels.depth >= this.maxDepth) {
          return this.fail("too_deep", at, `nested deeper than ${this.maxDepth} levels`)
        }
        at = skipSpace(this.text, at + 1)
        expected = code === 0x7b ? "key" : "value"
        if (this.text.charCodeAt(at) === code + 2) {
          at += 1
          expected = "separator"
        } else this.levels.open(code === 0x7b)
      } else {
        at = this.scalar(at, code)
        expected = "separator"
      }
      if (at < 0) return -1
      if (expected === "separator" && this.levels.depth === 0) return at
    }
  }

  /** A key with its colon. */
  key(start: number, code: number): number {
    if (code !== 0x22) return this.unexpected(start, "a key in double quotes")
    const end = this.string(start)
    if (end < 0) return -1
    const raw = this.text.slice(start + 1, end - 1)
    const key = raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw
    if (!this.levels.add(key)) {
      return this.fail("duplicate_key", start, `duplicate key ${JSON.stringify(key.slice(0, 40))}`)
    }
    const colon = skipSpace(this.text, end)
    return this.text.charCodeAt(colon) === 0x3a ? colon + 1 : this.unexpected(colon, '":"')
  }

  scalar(start: number, code: number): number {
    if (code === 0x22) return this.string(start)
    if (code === 0x2d || isDigit(code)) return this.number(start)
    const word = code === 0x74 ? "true" : code === 0x66 ? "false" : code === 0x6e ? "null" : ""
    if (word === "") return this.unexpected(start, "a value")
    if (this.text.startsWith(word, start)) return start + word.length
    let at = start + 1
    while (this.text.charCodeAt(at) === word.charCodeAt(at - start)) at += 1
    return this.unexpected(at, word)
  }

  string(start: number): number {
    const text = this.text
    let at = start + 1
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === 0x22) return at + 1
      if (code === 0x5c) at = this.escape(at)
      else if (code < 0x20) return this.fail("invalid_json", at, "control character in a string: escape it")
      else if (code < 0xd800 || code > 0xdfff) at += 1
      else if (at >= text.length) break
      else if (isHighSurrogate(code) && isLowSurrogate(text.charCodeAt(at + 1))) at += 2
      else if (isHighSurrogate(code) && at + 1 === text.length) break
      else return this.fail("lone_surrogate", at, "lone surrogate in a string")
      if (at < 0) return -1
    }
    return this.fail("invalid_json", text.length, "the text ends inside a string", true)
  }

  escape(start: number): number {
    const code = this.text.charCodeAt(start + 1)
    if (code !== 0x75) {
      if (start + 1 >= this.text.length) return this.unexpected(start + 1, "an escape")
      return '"\\/bfnrt'.includes(this.text[start + 1]!) ? start + 2 : this.unexpected(start + 1, "a JSON escape")
    }
    const unit = this.hex4(start)
    if (unit < 0) return -1
    if (unit < 0xd800 || unit > 0xdfff) return start + 6
    const next = start + 6
    // Only the end of the text leaves it open whether the other half follows.
    if (
      isHighSurrogate(unit) &&
      (next >= this.text.length || (this.text[next] === "\\" && next + 1 >= this.text.length))
    ) {
      return this.fail("invalid_json", this.text.length, "the text ends inside a string", true)
    }
    if (isHighSurrogate(unit) && this.text.startsWith("\\u", next)) {
      const low = this.hex4(next)
      if (low < 0) return -1
      if (isLowSurrogate(low)) return next + 6
    }
    return this.fail("lone_surrogate", start, "lone surrogate in a string")
  }

  /** The code unit of the `\uXXXX` at `start`, or -1. */
  hex4(start: number): number {
    for (let at = start + 2; at < start + 6; at++) {
      if (!isHex(this.text.charCodeAt(at))) return this.unexpected(at, "four hexadecimal digits")
    }
    return Number.parseInt(this.text.slice(start + 2, start + 6), 16)
  }

  number(start: number): number {
    const text = this.text
    let at = text.charCodeAt(start) === 0x2d ? start + 1 : start
    const first = text.charCodeAt(at)
    if (!isDigit(first)) return this.unexpected(at, "a digit")
    at += 1
    if (first !== 0x30) while (isDigit(text.charCodeAt(at))) at += 1
    else if (isDigit(text.charCodeAt(at))) return this.fail("invalid_json", at, "a number must not start with 0")
    if (text.charCodeAt(at) === 0x2e) {
      at = this.digits(at + 1)
      if (at < 0) return -1
    }
    const exponent = (text.charCodeAt(at) | 0x20) === 0x65
    if (exponent) {
      const sign = text.charCodeAt(at + 1)
      at = this.digits(sign === 0x2b || sign === 0x2d ? at + 2 : at + 1)
      if (at < 0) return -1
    } else if (at - start <= 15) return at
    const value = Math.abs(Number(text.slice(start, at)))
    if (value === Number.POSITIVE_INFINITY)
      return this.fail("number_out_of_range", start, "the number is too large for a double")
    // With an exponent a number is meant as a magnitude; without one every digit was meant.
    if (!exponent && value > Number.MAX_SAFE_INTEGER) {
      return this.fail("unsafe_integer", start, "integers beyond 9007199254740991 lose digits: send it as a string")
    }
    return at
  }

  digits(start: number): number {
    if (!isDigit(this.text.charCodeAt(start))) return this.unexpected(start, "a digit")
    let at = start + 1
    while (isDigit(this.text.charCodeAt(at))) at += 1
    return at
  }

  unexpected(at: number, wanted: string): number {
    if (at >= this.text.length) {
      return this.fail("invalid_json", this.text.length, `the text ends where ${wanted} was expected`, true)
    }
    const seen = JSON.stringify(String.fromCodePoint(this.text.codePointAt(at)!))
    return this.fail("invalid_json", at, `expected ${wanted}, found ${seen}`)
  }

  fail(code: JsonFaultCode, position: number, reason: string, incomplete = false): number {
    this.fault = incomplete ? { code, position, reason, incomplete } : { code, position, reason }
    return -1
  }
}

/** One for all texts, since reading one is never interrupted: most are short, and their calls many. */
const scanner = new Scanner()
