/**
 * Turns that are held from their first token: one JSON value and nothing else, or a turn that has to begin with a call.
 * Says what stands between a family's opening and such a turn, and how it is held; decides nothing about what was written.
 */
import { isObject, type Json, type JsonObject } from "../tools/JsonText.ts"
import type { ToolSpec } from "../tools/ToolCall.ts"
import type { AssistantTurn, Codec, RenderOptions } from "./codecs/Codec.ts"
import { opensReasoning } from "./codecs/Thinking.ts"
import type { CallGrammar, CallOpener, NotCarried } from "./Grammar.ts"
import { literal, Rules } from "./grammar/Gbnf.ts"
import { JsonValues } from "./grammar/JsonValues.ts"
import { control, flatten, type Segment } from "./Prompt.ts"

/** Where a schema sets no limit of its own: characters of a text, items of a list. */
export interface ValueBounds {
  readonly characters?: number
  readonly items?: number
}

/** One value that satisfies the schema. `undefined`: no value does. */
export const valueGrammar = (
  schema: JsonObject,
  bounds: ValueBounds = {}
): { readonly grammar: CallGrammar; readonly notCarried: ReadonlyArray<Omit<NotCarried, "tool">> } | undefined => {
  const rules = new Rules()
  const notCarried: Array<Omit<NotCarried, "tool">> = []
  const bounded = bound(schema, bounds) as JsonObject
  const values = new JsonValues(rules, bounded, (pointer, keyword) => notCarried.push({ pointer, keyword }))
  const body = values.value({ pointer: "", schema: bounded }, 1)
  if (body === undefined) return undefined
  const root = rules.add(body)
  const start = { root, toEnd: true }
  return { notCarried, grammar: { openers: [], rules: rules.text, marks: {}, closer: "", bracket: "{", start } }
}

/** One of a few words. */
export const wordsGrammar = (words: ReadonlyArray<string>): CallGrammar => {
  const rules = new Rules()
  const root = rules.add(words.map(literal).join(" | "))
  return { openers: [], rules: rules.text, marks: {}, closer: "", start: { root, toEnd: true } }
}

const maps = new Set(["properties", "patternProperties", "$defs", "definitions"])
const places = new Set(["items", "additionalProperties", "additionalItems"])
const lists = new Set(["anyOf", "oneOf", "allOf", "prefixItems"])

/** The schema with limits where it has none. */
const bound = (schema: Json, bounds: ValueBounds): Json => {
  if (!isObject(schema)) return schema
  const within = (inner: Json): Json => bound(inner, bounds)
  const out: Record<string, Json> = {}
  for (const [key, value] of Object.entries(schema)) {
    if (places.has(key)) out[key] = within(value)
    else if (lists.has(key) && Array.isArray(value)) out[key] = value.map(within)
    else if (maps.has(key) && isObject(value)) {
      out[key] = Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, within(inner)]))
    } else out[key] = value
  }
  const limit = (type: string, keyword: string, least: string, most: number | undefined): void => {
    if (most === undefined || schema["type"] !== type || schema[keyword] !== undefined) return
    out[keyword] = Math.max(most, Number(schema[least] ?? 0))
  }
  limit("string", "maxLength", "minLength", bounds.characters)
  limit("array", "maxItems", "minItems", bounds.items)
  return out
}

/** Not the beginning of any mark. */
const probe = "answer"

/** Closes a block of reasoning that the opening has begun. */
const reasoningEnd = (codec: Codec, options: RenderOptions): ReadonlyArray<Segment> => {
  if (!opensReasoning(codec, options)) return []
  const { close, closing = `\n${close}\n\n` } = codec.thinking?.(options) ?? { close: codec.reasoning!.close }
  return [control(closing)]
}

/** What leads from the opening to an answer without reasoning: marks that the model would write itself. */
export const answerLead = (codec: Codec, options: RenderOptions): ReadonlyArray<Segment> => {
  const turn: AssistantTurn = { role: "assistant", content: probe }
  const segments = codec.written(turn, options)
  const at = segments.findIndex(({ kind, text }) => kind === "text" && text === probe)
  const marks = segments.slice(0, Math.max(0, at))
  const closed = codec.reasoning !== undefined && flatten(marks).includes(codec.reasoning.close)
  return closed ? marks : [...reasoningEnd(codec, options), ...marks]
}

/** The same to a call. */
export const callLead = reasoningEnd

/** A call as it is written, without the end of a block of reasoning that may stand before it. */
const spellingOf = (written: string, { reasoning }: Codec): string => {
  const end = reasoning === undefined ? -1 : written.indexOf(reasoning.close)
  return end < 0 ? written : written.slice(end + reasoning!.close.length).trimStart()
}

/** A turn that begins with a call of one of the tools. `undefined`: this family's calls cannot be held. */
export const callFirst = (
  codec: Codec,
  tools: ReadonlyArray<ToolSpec>,
  options: RenderOptions
): CallGrammar | undefined => {
  const grammar = codec.grammar?.(tools)?.grammar
  if (grammar === undefined) return undefined
  const heads = new Map<string, { readonly space: string; readonly opener: CallOpener }>()
  for (const { name } of tools) {
    const turn: AssistantTurn = { role: "assistant", content: "", calls: [{ name, arguments: {} }] }
    const spelled = spellingOf(flatten(codec.written(turn, options)), codec)
    const bare = spelled.trimStart()
    const fits = grammar.openers.filter(({ text }) => bare.startsWith(text))
    const head = fits.sort((a, b) => b.text.length - a.text.length)[0]
    const space = spelled.slice(0, spelled.length - bare.length)
    if (head !== undefined) heads.set(head.text, { space, opener: head })
  }
  if (heads.size === 0) return undefined
  const marks: Record<string, string> = { ...grammar.marks }
  const ways = [...heads.values()].map(({ opener, space }, index) => {
    // Where it is one token of the vocabulary, that token stands for it.
    marks[`head-${index}`] = opener.text
    return `${literal(space)} head-${index} ${opener.root}`
  })
  const start = {
    root: "first-call",
    heads: [...heads.values()].map(({ opener: { depth = 0, text }, space }) => ({ text: space + text, depth }))
  }
  return { ...grammar, rules: `${grammar.rules}first-call ::= ${ways.join(" | ")}\n`, marks, start }
}
