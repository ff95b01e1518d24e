/**
 * The brace form of the Gemma families: like JSON, but keys are bare and strings stand between two quote tokens without
 * any escape. Writing follows the templates; reading is strict and bounded like JSON's.
 */
import * as Result from "effect/Result"
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import { argumentsDepth, type EnvelopeFault, parsePayloadPrefix } from "./Envelope.ts"
import { pythonNumber } from "./PythonJson.ts"

export interface BraceStyle {
  /** Stands before and after a string. */
  readonly quote: string
  readonly null: string
}

/** Members in the order templates sort them: by key, without regard to case. */
export const sorted = (object: JsonObject): ReadonlyArray<readonly [string, Json]> =>
  Object.entries(object)
    .map(([key, value]) => ({ key, value, folded: key.toLowerCase() }))
    .sort((a, b) => (a.folded < b.folded ? -1 : a.folded > b.folded ? 1 : 0))
    .map(({ key, value }) => [key, value])

export const writeValue = (value: Json, style: BraceStyle): string => {
  if (typeof value === "string") return style.quote + value + style.quote
  if (typeof value === "number") return pythonNumber(value)
  if (value === null) return style.null
  if (typeof value !== "object") return String(value)
  if (Array.isArray(value)) return `[${value.map((item) => writeValue(item, style)).join(",")}]`
  return `{${writeMembers(value as JsonObject, style)}}`
}

/** The inside of an object. */
export const writeMembers = (object: JsonObject, style: BraceStyle): string =>
  sorted(object)
    .map(([key, value]) => `${key}:${writeValue(value, style)}`)
    .join(",")

export interface BraceFault extends EnvelopeFault {
  /** Offset in the text that was read. */
  readonly at: number
}

/** Reads an object that is the whole text from `start`. */
export const readObject = (text: string, start: number, quote: string): Result.Result<JsonObject, BraceFault> => {
  const reader = new Reader(text, start, quote)
  const value = reader.object(1)
  if (reader.fault === undefined && reader.skipSpace() < text.length)
    reader.fail("trailing_characters", "only the closing mark may follow the arguments")
  return reader.fault === undefined ? Result.succeed(value) : Result.fail(reader.fault)
}

class Reader {
  readonly #text: string
  readonly #quote: string
  #at: number
  fault: BraceFault | undefined

  constructor(text: string, start: number, quote: string) {
    this.#text = text
    this.#at = start
    this.#quote = quote
  }

  fail(code: BraceFault["code"], what: string): null {
    this.fault ??= { code, what, at: this.#at }
    return null
  }

  skipSpace(): number {
    while (this.#at < this.#text.length && " \n\r\t".includes(this.#text[this.#at]!)) this.#at += 1
    return this.#at
  }

  #take(token: string): boolean {
    this.skipSpace()
    if (!this.#text.startsWith(token, this.#at)) return false
    this.#at += token.length
    return true
  }

  object(depth: number): JsonObject {
    const members = new Map<string, Json>()
    if (depth > argumentsDepth) this.fail("too_deep", `the arguments are nested deeper than ${argumentsDepth} levels`)
    else if (!this.#take("{")) this.fail("invalid_json", "the arguments must stand in braces")
    else if (!this.#take("}")) {
      do this.#member(members, depth)
      while (this.fault === undefined && this.#take(","))
      if (this.fault === undefined && !this.#take("}"))
        this.fail("invalid_json", "a comma or a closing brace must follow a value")
    }
    return Object.fromEntries(members)
  }

  #member(members: Map<string, Json>, depth: number): void {
    const key = this.#key()
    if (this.fault !== undefined) return
    if (members.has(key)) this.fail("duplicate_key", "a key is given twice")
    else if (!this.#take(":")) this.fail("invalid_json", "a colon must follow a key")
    else members.set(key, this.#value(depth))
  }

  #key(): string {
    if (this.#take(this.#quote)) return this.#quoted()
    const bare = /^[^{}[\],:<>"'=\s][^{}[\],:<>"'=\n]*/.exec(this.#text.slice(this.#at, this.#at + 128))
    if (bare === null) {
      this.fail("invalid_json", "a key must be a bare word before a colon")
      return ""
    }
    this.#at += bare[0].length
    return bare[0].trimEnd()
  }

  #quoted(): string {
    const end = this.#text.indexOf(this.#quote, this.#at)
    if (end < 0) {
      this.fail("invalid_json", `a string is not closed with ${this.#quote}`)
      return ""
    }
    const text = this.#text.slice(this.#at, end)
    this.#at = end + this.#quote.length
    return text
  }

  #value(depth: number): Json {
    if (this.#take(this.#quote)) return this.#quoted()
    this.skipSpace()
    const first = this.#text[this.#at]
    if (first === "{") return this.object(depth + 1)
    if (first === "[") return this.#array(depth + 1)
    if (this.#take("None")) return null
    const read = parsePayloadPrefix(this.#text, this.#at)
    if (Result.isFailure(read)) {
      return this.fail(
        read.failure.code,
        `a value is neither a string between ${this.#quote} nor a number, true, false or null`
      )
    }
    this.#at = read.success.end
    return read.success.value
  }

  #array(depth: number): Json {
    const items: Array<Json> = []
    if (depth > argumentsDepth)
      return this.fail("too_deep", `the arguments are nested deeper than ${argumentsDepth} levels`)
    this.#take("[")
    if (this.#take("]")) return items
    do items.push(this.#value(depth))
    while (this.fault === undefined && this.#take(","))
    if (this.fault === undefined && !this.#take("]"))
      this.fail("invalid_json", "a comma or a closing bracket must follow an item")
    return items
  }
}
