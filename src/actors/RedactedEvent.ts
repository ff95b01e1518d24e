/**
 * Redaction where events become lines: which fields of an event are content, what is put in their place, and what the line
 * says about it. The one place where rules meet a trace; `Redaction` knows the rules, `TraceWriter` writes the lines.
 */
import type * as Schema from "effect/Schema"
import { canonical, type Json } from "../tools/JsonText.ts"
import type { Redactor } from "./Redaction.ts"
import { Content, type Hidden, JsonContent, type RedactedField, type TraceInput, vocabulary } from "./TraceEvent.ts"

/** How to get at the content of a value. */
type Plan =
  /** Hidden where a trace holds none. `json`: a text is a JSON value like any other, and its digest is that of a value. */
  | { readonly kind: "text" }
  | { readonly kind: "json" }
  /** Never hidden. */
  | { readonly kind: "clear" }
  | { readonly kind: "list"; readonly of: Plan }
  | { readonly kind: "fields"; readonly of: ReadonlyArray<readonly [name: string, plan: Plan]> }

const text: Plan = { kind: "text" }
const json: Plan = { kind: "json" }
const clear: Plan = { kind: "clear" }

const fields = (of: Extract<Plan, { readonly kind: "fields" }>["of"]): Plan => ({ kind: "fields", of })

const planOf = (schema: Schema.Top): Plan | undefined => {
  if (schema === Content) return text
  if (schema === JsonContent) return json
  if ("schema" in schema) return planOf(schema.schema as Schema.Top)
  if ("value" in schema && schema.ast._tag === "Arrays") {
    const of = planOf(schema.value as Schema.Top)
    return of === undefined ? undefined : { kind: "list", of }
  }
  return "fields" in schema ? fieldsPlan(schema.fields as Schema.Struct.Fields) : undefined
}

const fieldsPlan = (struct: Schema.Struct.Fields): Plan | undefined => {
  const of = Object.entries(struct).flatMap(([name, field]) => {
    const plan = planOf(field as Schema.Top)
    return plan === undefined ? [] : [[name, plan] as const]
  })
  return of.length === 0 ? undefined : fields(of)
}

/** Words that are in the clear without being content: a model file's name, what a tool's author wrote. */
const inTheClear: Readonly<Record<string, ReadonlyArray<readonly [name: string, plan: Plan]>>> = {
  provenance: [["model", clear]],
  approval_requested: [["evidence", fields([["describes", clear]])]]
}

const failure: Plan = fields([
  ["payload", text],
  ["artifact_ids", { kind: "list", of: text }]
])

const plans = new Map<string, Plan | undefined>()

const planFor = (type: TraceInput["type"]): Plan | undefined => {
  if (plans.has(type)) return plans.get(type)
  const known = fieldsPlan(vocabulary[type].fields as Schema.Struct.Fields)
  const of = [...(known?.kind === "fields" ? known.of : []), ...(inTheClear[type] ?? [])]
  const plan = of.length === 0 ? undefined : fields(of)
  plans.set(type, plan)
  return plan
}

/** Length and keyed digest of a text. */
type Hide = (text: string) => Hidden

/** What is searched with what, and what is left as it is. */
interface Searching {
  readonly redactor: Redactor
  readonly hide: Hide
  /** Does the trace hold content? */
  readonly content: boolean
  /** Registered tools: their names are in the clear everywhere. */
  readonly tools: Set<string>
}

class Replacing {
  readonly #by: Searching
  readonly found: Array<RedactedField> = []

  constructor(by: Searching) {
    this.#by = by
  }

  readonly go = (value: unknown, plan: Plan, at: string): unknown => {
    switch (plan.kind) {
      case "clear":
        return this.#searched(value, at, typeof value === "string")
      case "text":
      case "json":
        return this.#by.content ? this.#searched(value, at, plan.kind === "text") : value
      case "list":
        return Array.isArray(value) ? value.map((item, index) => this.go(item, plan.of, `${at}/${index}`)) : value
      case "fields":
        return this.#fields(value as object, plan.of, at)
    }
  }

  #fields(value: object, plans: Extract<Plan, { readonly kind: "fields" }>["of"], at: string): unknown {
    const replaced: Record<string, unknown> = { ...value }
    for (const [name, plan] of plans) {
      const held = replaced[name]
      if (held === undefined || (name === "tool" && this.#by.tools.has(String(held)))) continue
      replaced[name] = this.go(held, plan, `${at}/${name}`)
    }
    return replaced
  }

  #searched(value: unknown, at: string, isText: boolean): unknown {
    const { count, value: replaced } = this.#by.redactor.json(value as Json)
    if (count === 0) return value
    this.found.push({ at, count, ...this.#by.hide(isText ? String(value) : canonical(value as Json)) })
    return replaced
  }
}

/** An event as it may be written, with the fields in which something was replaced. */
export interface RedactedEvent {
  readonly data: unknown
  readonly redacted: ReadonlyArray<RedactedField>
}

/** Redacts the events of one trace, in order. `content`: does it hold any? */
export const eventRedactor = (
  redactor: Redactor,
  hide: Hide,
  content: boolean
): ((event: TraceInput) => RedactedEvent) => {
  const searching: Searching = { redactor, hide, content, tools: new Set() }
  return ({ data, type }) => {
    if (type === "provenance") for (const { name } of data.tools) searching.tools.add(name)
    // What a failure comes to is its answer, a text.
    const failed = type === "tool_execution_finished" && !data.ok
    const plan = failed ? failure : planFor(type)
    if (plan === undefined) return { data, redacted: [] }
    const replacing = new Replacing(searching)
    const replaced = replacing.go(data, plan, "")
    return replacing.found.length === 0 ? { data, redacted: [] } : { data: replaced, redacted: replacing.found }
  }
}
