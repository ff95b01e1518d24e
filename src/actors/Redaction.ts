/**
 * Rules for what must never be written down, and the search for it in texts and JSON values. The patterns run on an engine
 * whose time is linear in the text (re2js, loaded with the first rule), so no text can make one hang. Decides nothing about
 * what is searched: see `RedactedEvent`.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Matcher, RE2JS } from "re2js"
import { isObject, type Json } from "../tools/JsonText.ts"
import { decodedViews, type View } from "./DecodedViews.ts"

/** What must not be written down: a name that may be, and a regular expression in the syntax of JavaScript. */
export interface RedactionRule {
  readonly name: string
  readonly pattern: string
}

/** A rule that cannot be used, and why. */
export class RedactionError extends Schema.TaggedError<RedactionError>()("RedactionError", {
  rule: Schema.String,
  reason: Schema.String
}) {
  override get message(): string {
    return `redaction rule ${this.rule}: ${this.reason}`
  }
}

export interface Redacted<A> {
  /** The value itself where nothing was replaced. */
  readonly value: A
  /** Replacements, each of which left one mark. */
  readonly count: number
}

/** Rules that are ready for use. */
export interface Redactor {
  readonly names: ReadonlyArray<string>
  readonly text: (text: string) => Redacted<string>
  /** Keys, texts and numbers, and then the value as JSON, for patterns that span several. */
  readonly json: (value: Json) => Redacted<Json>
}

/** What stands where something was. */
export const markOf = (name: string): string => `[redacted: ${name}]`

/** Every mark in a text, the rule's name as group 1. */
export const marked = /\[redacted: ([A-Za-z][A-Za-z0-9_-]{0,39})\]/g

const nameForm = /^[A-Za-z][A-Za-z0-9_-]{0,39}$/

const longestPattern = 1000
/** Steps that a character of text costs at most. */
const largestProgram = 1000
const mostRules = 100

/**
 * Processor time that one rule has for one text. A search is linear in the text, but one whose matches are short while it has
 * to look far ahead starts that search anew for each of them.
 */
const cpuMillis = 2000

interface Compiled {
  readonly name: string
  readonly expression: RE2JS
}

interface Span {
  readonly start: number
  readonly end: number
  /** Place of the rule. */
  readonly rule: number
}

const cpuNow = (): number => {
  const { system, user } = process.threadCpuUsage?.() ?? process.cpuUsage()
  return (system + user) / 1000
}

/** All matches, or `undefined` when their number is more than there is time for. */
const matchesIn = (matcher: Matcher, millis: number): ReadonlyArray<readonly [number, number]> | undefined => {
  const found: Array<readonly [number, number]> = []
  const until = cpuNow() + millis
  for (let finds = 1; matcher.find(); finds++) {
    if (matcher.end() > matcher.start()) found.push([matcher.start(), matcher.end()])
    if (finds % 16 === 0 && cpuNow() > until) return undefined
  }
  return found
}

/** Spans in order, those that overlap made one under the name of the first. */
const joined = (spans: ReadonlyArray<Span>): ReadonlyArray<Span> => {
  const out: Array<Span> = []
  for (const span of spans.toSorted((a, b) => a.start - b.start || a.rule - b.rule)) {
    const last = out.at(-1)
    if (last === undefined || span.start >= last.end) out.push(span)
    else if (span.end > last.end) out[out.length - 1] = { ...last, end: span.end }
  }
  return out
}

class Rules implements Redactor {
  readonly #rules: ReadonlyArray<Compiled>
  readonly #millis: number
  readonly names: ReadonlyArray<string>

  constructor(rules: ReadonlyArray<Compiled>, millis: number) {
    this.#rules = rules
    this.#millis = millis
    this.names = rules.map(({ name }) => name)
  }

  readonly #spansIn = ({ originalAt, text }: View): ReadonlyArray<Span> =>
    this.#rules.flatMap(({ expression }, rule): ReadonlyArray<Span> => {
      // Without groups to find, most texts are done with in one cheap pass.
      if (!expression.test(text)) return []
      const found = matchesIn(expression.matcher(text), this.#millis) ?? [[0, text.length] as const]
      return found.map(([start, end]) => ({ start: originalAt(start), end: originalAt(end), rule }))
    })

  readonly #spans = (text: string): ReadonlyArray<Span> => joined(decodedViews(text).flatMap(this.#spansIn))

  readonly text = (text: string): Redacted<string> => {
    if (text === "") return { value: text, count: 0 }
    const spans = this.#spans(text)
    if (spans.length === 0) return { value: text, count: 0 }
    let value = ""
    let at = 0
    for (const { end, rule, start } of spans) {
      value += text.slice(at, start) + markOf(this.names[rule]!)
      at = end
    }
    return { value: value + text.slice(at), count: spans.length }
  }

  readonly json = (value: Json): Redacted<Json> => {
    const { count, value: inside } = this.#inside(value)
    if (typeof value !== "object" || value === null) return { value: inside, count }
    // What was put in its place is no secret, even where a pattern would take it for one.
    const text = JSON.stringify(inside)
    const marks = [...text.matchAll(marked)].map(({ 0: mark, index }) => ({ from: index, to: index + mark.length }))
    // Both are in order, and there may be a mark for every word of a large value.
    let at = 0
    const rest = this.#spans(text).find(({ end, start }) => {
      while (at < marks.length && marks[at]!.to < end) at += 1
      const mark = marks[at]
      return mark === undefined || mark.from > start
    })
    return rest === undefined ? { value: inside, count } : { value: markOf(this.names[rest.rule]!), count: 1 }
  }

  #inside(value: Json): Redacted<Json> {
    if (typeof value === "string") return this.text(value)
    if (typeof value === "number") {
      const found = this.text(String(value))
      return found.count === 0 ? { value, count: 0 } : found
    }
    if (Array.isArray(value)) {
      const items = value.map((item) => this.#inside(item as Json))
      const count = items.reduce((sum, item) => sum + item.count, 0)
      return count === 0 ? { value, count } : { value: items.map((item) => item.value), count }
    }
    return isObject(value) ? this.#members(value) : { value, count: 0 }
  }

  #members(value: Readonly<Record<string, Json>>): Redacted<Json> {
    const members = new Map<string, Json>()
    let total = 0
    for (const [key, member] of Object.entries(value)) {
      const name = this.text(key)
      const inside = this.#inside(member)
      total += name.count + inside.count
      members.set(distinct(name.value, members), inside.value)
    }
    return total === 0 ? { value, count: 0 } : { value: Object.fromEntries(members), count: total }
  }
}

/** Two names may have become the same. */
const distinct = (name: string, taken: ReadonlyMap<string, unknown>): string => {
  let free = name
  for (let at = 2; taken.has(free); at++) free = `${name} ${at}`
  return free
}

const refused = (rule: string, reason: string) => new RedactionError({ rule, reason })

/** The engine's own words name what it found; what it leaves out on purpose is named here. */
const reasonOf = (pattern: string, cause: unknown): string => {
  if (/\(\?[=!]|\\[1-9]|\\k</.test(pattern)) {
    return "look-ahead and references back to a group are not supported: nothing bounds the time they take"
  }
  const said = cause instanceof Error ? cause.message : String(cause)
  return `it is not a regular expression: ${said.replace(/^error parsing regexp: /, "")}`
}

const problemWith = ({ name, pattern }: RedactionRule, names: ReadonlySet<string>): string | undefined => {
  if (!nameForm.test(name)) return "a name is a letter, and up to 39 letters, digits, - and _ after it"
  if (names.has(name)) return "it is there twice"
  if (pattern === "") return "its pattern is empty"
  return pattern.length > longestPattern ? `its pattern is longer than ${longestPattern} characters` : undefined
}

const compiled = (engine: typeof RE2JS, { name, pattern }: RedactionRule): Compiled => {
  let expression: RE2JS
  try {
    expression = engine.compile(engine.translateRegExp(pattern), engine.LOOKBEHINDS)
  } catch (cause) {
    throw refused(name, reasonOf(pattern, cause))
  }
  if (expression.test("")) throw refused(name, "it matches the empty text, so it would match everywhere")
  if (expression.programSize() > largestProgram) throw refused(name, "it is too large: repeat fewer things fewer times")
  return { name, expression }
}

/** Rules made ready. Fails with the first that cannot be used. `undefined` for none. */
export const compile = Effect.fnUntraced(function* (
  rules: ReadonlyArray<RedactionRule>,
  options: { readonly cpuMillis?: number } = {}
): Effect.fn.Return<Redactor | undefined, RedactionError> {
  if (rules.length === 0) return undefined
  if (rules.length > mostRules) return yield* refused(rules[mostRules]!.name, `there are more than ${mostRules} rules`)
  const names = new Set<string>()
  for (const rule of rules) {
    const problem = problemWith(rule, names)
    if (problem !== undefined) return yield* refused(rule.name, problem)
    names.add(rule.name)
  }
  const { RE2JS: engine } = yield* Effect.promise(() => import("re2js"))
  const ready = yield* Effect.try({
    try: () => rules.map((rule) => compiled(engine, rule)),
    catch: (cause) => cause as RedactionError
  })
  return new Rules(ready, options.cpuMillis ?? cpuMillis)
})
