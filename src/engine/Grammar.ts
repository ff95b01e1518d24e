/**
 * Grammars that hold a model to one whole call of the advertised tools, in its family's syntax. They are armed where a call
 * begins and released where it ends; thinking and prose stay free. They make bad calls rare and decide nothing: what was
 * written is read and validated by code that knows nothing of them.
 */
import type { ToolSpec } from "../tools/ToolCall.ts"
import { choice, literal, Rules } from "./grammar/Gbnf.ts"
import { JsonValues } from "./grammar/JsonValues.ts"
import { json, type Spelling } from "./grammar/Spelling.ts"
import { xmlArguments } from "./grammar/XmlArguments.ts"

/** A keyword of a tool's schema that its grammar does not enforce. In brackets: no keyword, but what it amounts to. */
export interface NotCarried {
  readonly tool: string
  /** RFC 6901 pointer into the tool's parameters. */
  readonly pointer: string
  readonly keyword: string
}

/** A text that begins a call, and the rule for what follows it. */
export interface CallOpener {
  readonly text: string
  readonly root: string
  /** Only at the beginning of the turn. */
  readonly atStart?: boolean
  /** Only at the beginning of a line. */
  readonly atLine?: boolean
  /** Brackets that the opener leaves open. */
  readonly depth?: number
}

/** What arms, holds and releases; plain data, so that it can cross a thread. */
export interface CallGrammar {
  readonly openers: ReadonlyArray<CallOpener>
  /** GBNF without the rules of `marks`. */
  readonly rules: string
  /** Rules that stand for a text which is one token where the vocabulary has it. */
  readonly marks: Readonly<Record<string, string>>
  /** What ends a call: this text outside strings and brackets, or with no text the last bracket itself. */
  readonly closer: string
  /** The bracket a call's JSON begins with: from there strings and brackets are followed. Without, the closer counts anywhere. */
  readonly bracket?: "{" | "["
  /** Stands before and after each string, in place of JSON's quotes and escapes: the closer counts outside of two of them. */
  readonly quote?: string
  /**
   * The turn is held from its first token. `heads`: texts of which one comes first, with the brackets it leaves open.
   * `toEnd`: nothing follows what is held.
   */
  readonly start?: {
    readonly root: string
    readonly heads?: ReadonlyArray<Pick<CallOpener, "depth" | "text">>
    readonly toEnd?: boolean
  }
  /** What stands around reasoning, which is never searched; `opened`: the prompt began it. */
  readonly reasoning?: { readonly open: string; readonly close: string; readonly opened: boolean }
}

export interface CompiledGrammar {
  readonly grammar: CallGrammar
  readonly notCarried: ReadonlyArray<NotCarried>
}

/** Arguments objects of all tools, as expressions over shared rules. Tools that nothing fits are left out and told. */
export interface Arguments {
  readonly rules: Rules
  readonly tools: ReadonlyArray<{ readonly name: string; readonly body: string }>
  readonly notCarried: ReadonlyArray<NotCarried>
}

/** The arguments in a spelling of values, or as parameter blocks. */
export const argumentsOf = (tools: ReadonlyArray<ToolSpec>, form: Spelling | "xml"): Arguments => {
  const rules = new Rules()
  const told = new Map<string, NotCarried>()
  const out: Array<{ readonly name: string; readonly body: string }> = []
  for (const { name, parameters } of tools) {
    const missed = (pointer: string, keyword: string): void => {
      told.set(JSON.stringify([name, pointer, keyword]), { tool: name, pointer, keyword })
    }
    const body =
      form === "xml" ? xmlArguments(rules, parameters, missed) : objectArguments(rules, parameters, missed, form)
    if (body === undefined) missed("", "(no arguments fit)")
    else out.push({ name, body: rules.add(body) })
  }
  return { rules, tools: out, notCarried: [...told.values()] }
}

const objectArguments = (
  rules: Rules,
  parameters: ToolSpec["parameters"],
  missed: (pointer: string, keyword: string) => void,
  spelling: Spelling
): string | undefined => {
  const values = new JsonValues(rules, parameters, missed, spelling)
  const parts = values
    .shapesOf({ pointer: "", schema: parameters })
    .flatMap((shape) => (shape.type === "object" ? (values.object(shape, 1) ?? []) : []))
  return parts.length === 0 ? undefined : choice([...new Set(parts)])
}

const space = '" "?'
const field = (key: string): string => `"\\"${key}\\":" ${space}`

export interface JsonCallSyntax {
  readonly opener: string
  /** One token where the vocabulary has it; empty: a call ends with its last bracket. */
  readonly closer: string
  readonly key: "arguments" | "parameters"
  /** Some families learnt the arguments first. */
  readonly argumentsFirst?: boolean
  /** Calls stand in an array. */
  readonly array?: boolean
  /** What may stand before and after the object: expressions. */
  readonly around?: readonly [before: string, after: string]
  /** Members after the arguments, as an expression that begins with its comma. */
  readonly tail?: string
}

const nameAndArguments = (
  name: string,
  body: string,
  { argumentsFirst, key, tail = "" }: Pick<JsonCallSyntax, "argumentsFirst" | "key" | "tail">
): string => {
  const named = `${field("name")} ${literal(JSON.stringify(name))}`
  const given = `${field(key)} ${body}`
  const forward = `${named} "," ${space} ${given} ${tail}`
  return argumentsFirst === true ? `(${forward} | ${given} "," ${space} ${named})` : forward
}

/** Calls as JSON objects with a name and arguments between marks. */
export const jsonCalls = (tools: ReadonlyArray<ToolSpec>, syntax: JsonCallSyntax): CompiledGrammar | undefined => {
  const { notCarried, rules, tools: callable } = argumentsOf(tools, json)
  if (callable.length === 0) return undefined
  const [before, after] = syntax.around ?? ["", ""]
  const call = rules.add(
    callable.map(({ body, name }) => `"{" ${space} ${nameAndArguments(name, body, syntax)} ${space} "}"`).join(" | ")
  )
  const calls = syntax.array === true ? `"[" ${space} ${call} ("," ${space} ${call})* ${space} "]"` : call
  const root = rules.add(`${before} ${calls} ${after} ${syntax.closer === "" ? "" : "closer"}`)
  return {
    notCarried,
    grammar: {
      openers: [{ text: syntax.opener, root }],
      rules: rules.text,
      marks: syntax.closer === "" ? {} : { closer: syntax.closer },
      closer: syntax.closer,
      bracket: syntax.array === true ? "[" : "{"
    }
  }
}

/** Calls as a name, a separator and the arguments object: `[TOOL_CALLS]NAME[ARGS]{…}` and the like. */
export const headedCalls = (
  tools: ReadonlyArray<ToolSpec>,
  syntax: {
    readonly opener: string
    /** Before and behind the name, and behind the arguments: expressions over `marks`. */
    readonly parts: readonly [before: string, separator: string, end: string]
    readonly marks: Readonly<Record<string, string>>
    /** What is written for the tool at this place of the list; otherwise its name. */
    readonly label?: (index: number) => string
    /** Ends a section of calls; without it each call ends with its object. */
    readonly closer?: string
  }
): CompiledGrammar | undefined => {
  const { notCarried, rules, tools: callable } = argumentsOf(tools, json)
  if (callable.length === 0) return undefined
  const [before, separator, end] = syntax.parts
  const call = rules.add(
    callable
      .map(({ body, name }) => {
        const label = syntax.label?.(tools.findIndex((tool) => tool.name === name)) ?? name
        return `${before} ${literal(label)} ${separator} ${body} ${end}`
      })
      .join(" | ")
  )
  // A call ends with its object, or a section of them with its own mark.
  const root = syntax.closer === undefined ? call : rules.add(`${call} ("\\n"? ${call})* "\\n"? closer`)
  return {
    notCarried,
    grammar: {
      openers: [{ text: syntax.opener, root }],
      rules: rules.text,
      marks: syntax.closer === undefined ? syntax.marks : { ...syntax.marks, closer: syntax.closer },
      closer: syntax.closer ?? "",
      bracket: "{"
    }
  }
}

/**
 * Calls without an opening mark. A turn is held only once it has named an advertised tool in the family's own way, because
 * an answer may be JSON as well; `openings` gives the spellings of everything up to the arguments.
 */
export const bareCalls = (
  tools: ReadonlyArray<ToolSpec>,
  syntax: {
    readonly openings: (name: string) => ReadonlyArray<Omit<CallOpener, "root">>
    /** Marked calls that exist beside the bare ones. */
    readonly tag?: { readonly text: string; readonly key: "arguments" | "parameters" }
  }
): CompiledGrammar | undefined => {
  const { notCarried, rules, tools: callable } = argumentsOf(tools, json)
  if (callable.length === 0) return undefined
  const openers = callable.flatMap(({ body, name }) => {
    const root = rules.add(`${body} ${space} "}"`)
    return syntax.openings(name).map((opening): CallOpener => ({ ...opening, root, depth: 1 }))
  })
  if (syntax.tag !== undefined) {
    const { key, text } = syntax.tag
    const calls = callable.map(({ body, name }) => `"{" ${space} ${nameAndArguments(name, body, { key })} ${space} "}"`)
    openers.push({ text, root: rules.add(calls.join(" | ")) })
  }
  return { notCarried, grammar: { openers, rules: rules.text, marks: {}, closer: "", bracket: "{" } }
}

/** Calls as functions with parameter blocks. */
export const xmlCalls = (
  tools: ReadonlyArray<ToolSpec>,
  syntax: { readonly opener: string; readonly closer: string }
): CompiledGrammar | undefined => {
  const { notCarried, rules, tools: callable } = argumentsOf(tools, "xml")
  if (callable.length === 0) return undefined
  const calls = callable.map(({ body, name }) => `${literal(`<function=${name}>\n`)} ${body}`)
  const root = rules.add(`"\\n" (${calls.join(" | ")}) ${literal("</function>\n")} closer`)
  return {
    notCarried,
    grammar: {
      openers: [{ text: syntax.opener, root }],
      rules: rules.text,
      marks: { closer: syntax.closer },
      closer: `</function>\n${syntax.closer}`
    }
  }
}
