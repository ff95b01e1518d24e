/**
 * How a syntax spells values, for rules that are otherwise the same in each. JSON is here, also in the form in which some
 * texts must not occur because the reader around it would take them for its own marks.
 */
import { isObject, type Json } from "../../tools/JsonText.ts"
import { inClass, literal, otherThan, type Rules, without } from "./Gbnf.ts"

export interface Spelling {
  /** What may stand behind brackets, commas and colons, as an expression. */
  readonly space: string
  /** `null`. */
  readonly nothing: string
  /** A string of so many characters with what stands around it; `undefined`: such lengths cannot be carried. */
  readonly string: (rules: Rules, least: number, most?: number) => string | undefined
  /** Exactly this value, or `undefined` where it cannot be written. */
  readonly literal: (value: Json) => string | undefined
  /** A declared key with its colon, or `undefined` where it cannot be written. */
  readonly key: (name: string) => string | undefined
  /** A key that is none of these, without its colon. */
  readonly otherKey: (rules: Rules, declared: ReadonlyArray<string>) => string
  /** Do fields stand in the order of their names, whatever their case? Otherwise as they were declared. */
  readonly sorted?: boolean
}

/** Lengths of text that are carried where each place is a rule of its own. */
const maxCounted = 500
/** Characters that count two in one place and one in another. */
const uncounted = "\\ud800-\\udfff\\U00010000-\\U0010ffff"

/**
 * Text without these words, of so many characters. Where characters are counted, text does not even hold how a word
 * begins: every letter of every word would be multiplied by every length.
 */
export const textWithout = (
  rules: Rules,
  words: ReadonlyArray<string>,
  { instead, outside }: { readonly outside: string; readonly instead?: string },
  least: number,
  most?: number
): string | undefined => {
  const given = instead === undefined ? {} : { instead }
  if (most === undefined && least === 0) return without(rules, words, { name: "text", outside, ...given })
  if (Math.max(least, most ?? 0) > maxCounted) return undefined
  const heads = [...new Set(words.map((word) => word.slice(0, 2)))]
  const lengths = { least, ...(most === undefined ? {} : { most }) }
  const name = `text-${least}-${most ?? "n"}`
  return without(rules, heads, { name, outside: outside + uncounted, ...given, ...lengths })
}

/** JSON as models are shown it: a space after each comma and colon. */
const jsonText = (value: Json): string => {
  if (Array.isArray(value)) return `[${value.map(jsonText).join(", ")}]`
  if (!isObject(value)) return JSON.stringify(value)
  return `{${Object.entries(value)
    .map(([key, inner]) => `${JSON.stringify(key)}: ${jsonText(inner)}`)
    .join(", ")}}`
}

/** What no JSON string holds as it is. */
const unquoted = '"\\\\\\x00-\\x1f'

/** No surrogate is written as an escape: half a pair is no character. */
const escape = (rules: Rules): string =>
  rules.define(
    "escape",
    () => `"\\\\" (["\\\\/bfnrt] | "u" ([0-9a-cefA-CEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2}))`
  )

/** Characters of a string. Where they are counted, only such as count one wherever they are counted. */
const characters = (rules: Rules, least: number, most?: number): string => {
  const rule =
    most === undefined
      ? rules.define("character", () => `[^${unquoted}] | ${escape(rules)}`)
      : rules.define("counted", () => `[^${unquoted}${uncounted}] | ${escape(rules)}`)
  if (most === undefined) return least === 0 ? `${rule}*` : `${rule}{${least},}`
  return most === 0 ? "" : `${rule}{${least},${most}}`
}

export const json: Spelling = {
  space: '" "?',
  nothing: "null",
  string: (rules, least, most) => `"\\"" ${characters(rules, least, most)} "\\""`,
  literal: (value) => literal(jsonText(value)),
  key: (name) => literal(`${jsonText(name)}:`),
  // Without escapes, so that it can be told from the declared ones.
  otherKey: (rules, declared) => {
    if (declared.length === 0) return rules.define("key", () => `"\\"" [^${unquoted}]* "\\""`)
    const rest = rules.define("key-rest", () => `[^${unquoted}]*`)
    return `"\\"" ${otherThan(rules, declared, unquoted, rest, false)} "\\""`
  }
}

/** JSON in which none of these words stands as it is; a string may hold them with their first letter escaped. */
export const jsonWithout = (words: ReadonlyArray<string>): Spelling => {
  const seconds = [...new Set(words.map((word) => word[1]!))]
  const outside = unquoted + inClass(seconds)
  const escaped = (text: string): string =>
    words.reduce((out, word) => {
      const first = `\\u${word.charCodeAt(0).toString(16).padStart(4, "0")}`
      return out.replaceAll(word, first + word.slice(1))
    }, text)
  return {
    ...json,
    string: (rules, least, most) => {
      const text = textWithout(rules, words, { outside: unquoted, instead: escape(rules) }, least, most)
      return text === undefined ? undefined : `"\\"" ${text} "\\""`
    },
    literal: (value) => literal(escaped(jsonText(value))),
    key: (name) => literal(`${escaped(jsonText(name))}:`),
    // Keys hold no second letter of a word at all, and so neither a word nor a declared key with such a letter.
    otherKey: (rules, declared) => {
      const like = declared.filter((name) => !seconds.some((letter) => name.includes(letter)))
      const rest = rules.define("key-rest", () => `[^${outside}]*`)
      return `"\\"" ${otherThan(rules, like, outside, rest, false)} "\\""`
    }
  }
}
