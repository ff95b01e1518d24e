/**
 * Grammar of calls in the Gemma families' brace form: `call:NAME{key:<|"|>text<|"|>,n:1}`, keys sorted and nothing between
 * the parts, as the templates write them. A string has no escapes: it is any text in which its own quote does not occur.
 */
import * as Result from "effect/Result"
import { canonical, type Json } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import { argumentsOf, type CompiledGrammar } from "../Grammar.ts"
import { literal, otherThan } from "../grammar/Gbnf.ts"
import { type Spelling, textWithout } from "../grammar/Spelling.ts"
import type { BraceMarks } from "./BraceFrame.ts"
import { type BraceStyle, readObject, writeValue } from "./BraceText.ts"

/** What no bare key holds here: what ends one, and white space, which would be trimmed. */
const outsideKeys =
  "{}\\x5b\\x5d,:<>\"'=\\x00-\\x20\\x7f-\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
/** Declared keys that a free one could be confused with: longer ones are longer than a free one is. */
const likeFree = 64

/** Is the value the same when it is read again? */
const survives = (value: Json, text: string, key: string, quote: string): boolean => {
  const read = readObject(`{${key}:${text}}`, 0, quote)
  return Result.isSuccess(read) && canonical(read.success) === canonical(Object.fromEntries([[key, value]]))
}

const spellingOf = (style: BraceStyle): Spelling => ({
  space: "",
  nothing: style.null,
  sorted: true,
  string: (rules, least, most) => {
    const text = textWithout(rules, [style.quote], { outside: "" }, least, most)
    return text === undefined ? undefined : `quote ${text} quote`
  },
  literal: (value) => {
    const text = writeValue(value, style)
    return survives(value, text, "k", style.quote) ? text.split(style.quote).map(literal).join(" quote ") : undefined
  },
  key: (name) => (survives(1, "1", name, style.quote) ? literal(`${name}:`) : undefined),
  otherKey: (rules, declared) => {
    const rest = rules.define("key-rest", () => `[^${outsideKeys}]{0,40}`)
    const like = declared.filter((name) => name.length <= likeFree && name.trim() !== "")
    return otherThan(rules, like, outsideKeys, rest, false, false)
  }
})

export const grammar =
  (marks: BraceMarks, style: BraceStyle) =>
  (tools: ReadonlyArray<ToolSpec>): CompiledGrammar | undefined => {
    const { notCarried, rules, tools: callable } = argumentsOf(tools, spellingOf(style))
    if (callable.length === 0) return undefined
    const calls = callable.map(({ body, name }) => `${literal(`call:${name}`)} ${body} closer`)
    return {
      notCarried,
      grammar: {
        openers: [{ text: marks.opener, root: rules.add(calls.join(" | ")) }],
        rules: rules.text,
        marks: { closer: marks.closer, quote: marks.quote },
        closer: marks.closer,
        quote: marks.quote
      }
    }
  }
