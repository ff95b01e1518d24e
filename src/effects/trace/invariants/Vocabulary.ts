/**
 * T07 to T09: event types, their fields, and what may stand in the clear. The schemas of the vocabulary are compiled once to
 * plain predicates, because a trace has hundreds of thousands of lines; the schemas themselves word the complaints.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SchemaAST from "effect/SchemaAST"
import { Content, JsonContent, vocabulary } from "../../../actors/TraceEvent.ts"
import { Concealed } from "../Concealed.ts"
import type { Data } from "./RunFacts.ts"

type Check = (value: unknown) => boolean
type AnyStruct = Schema.Struct<Schema.Struct.Fields>

const isObject = (value: unknown): value is Data => typeof value === "object" && value !== null && !Array.isArray(value)

/** What the schema of the vocabulary may be made of; for anything else the schema judges itself. */
class NotCompiled extends Error {}

const representation = (check: SchemaAST.Check<never>): { readonly id: string; readonly payload: unknown } => {
  const found = (check.annotations as { readonly representation?: { readonly id: string; readonly payload: unknown } })
    ?.representation
  if (found === undefined) throw new NotCompiled()
  return found
}

const checkOf = (check: SchemaAST.Check<never>): Check => {
  const { id, payload } = representation(check)
  switch (id) {
    case "effect/schema/isInt":
      return Number.isSafeInteger
    case "effect/schema/isFinite":
      return Number.isFinite
    case "effect/schema/isGreaterThanOrEqualTo": {
      const { minimum } = payload as { readonly minimum: number }
      return (value) => (value as number) >= minimum
    }
    case "effect/schema/isPattern": {
      const { flags, source } = payload as { readonly source: string; readonly flags: string }
      const pattern = new RegExp(source, flags)
      return (value) => pattern.test(value as string)
    }
    default:
      throw new NotCompiled()
  }
}

const refined = (base: Check, checks: ReadonlyArray<unknown> | undefined): Check => {
  if (checks === undefined) return base
  const all = checks.map((check) => checkOf(check as SchemaAST.Check<never>))
  return (value) => base(value) && all.every((check) => check(value))
}

const objectCheck = (ast: SchemaAST.Objects): Check => {
  const fields = ast.propertySignatures.map(({ name, type }) => ({
    name: String(name),
    check: compileAst(type),
    optional: type.context?.isOptional === true
  }))
  const rest = ast.indexSignatures.map(({ type }) => compileAst(type))
  return (value) => {
    if (!isObject(value)) return false
    for (const { check, name, optional } of fields) {
      const held = value[name]
      if (held === undefined ? !optional && !Object.hasOwn(value, name) : !check(held)) return false
    }
    return rest.length === 0 || Object.values(value).every((held) => rest.every((check) => check(held)))
  }
}

const arrayCheck = (ast: SchemaAST.Arrays): Check => {
  const elements = ast.elements.map(compileAst)
  const rest = ast.rest.map(compileAst)[0]
  return (value) => {
    if (!Array.isArray(value) || value.length < elements.length) return false
    if (rest === undefined && value.length > elements.length) return false
    return value.every((held, at) => (elements[at] ?? rest!)(held))
  }
}

const unionCheck = (types: ReadonlyArray<SchemaAST.AST>): Check => {
  if (types.every((type) => type._tag === "Literal")) {
    const literals = new Set<unknown>(types.map((type) => (type as SchemaAST.Literal).literal))
    return (value) => literals.has(value)
  }
  const checks = types.map(compileAst)
  return (value) => checks.some((check) => check(value))
}

const baseCheck = (ast: SchemaAST.AST): Check => {
  switch (ast._tag) {
    case "String":
      return (value) => typeof value === "string"
    case "Number":
      return (value) => typeof value === "number"
    case "Boolean":
      return (value) => typeof value === "boolean"
    case "Null":
      return (value) => value === null
    case "Unknown":
      return () => true
    case "Literal":
      return (value) => value === ast.literal
    case "Union":
      return unionCheck(ast.types)
    case "Arrays":
      return arrayCheck(ast)
    case "Objects":
      return objectCheck(ast)
    default:
      throw new NotCompiled()
  }
}

const compileAst = (ast: SchemaAST.AST): Check => {
  if (ast.encoding !== undefined) throw new NotCompiled()
  return refined(baseCheck(ast), ast.checks)
}

const compile = (schema: AnyStruct): Check => {
  try {
    return compileAst(schema.ast)
  } catch (error) {
    if (error instanceof NotCompiled) return Schema.is(schema)
    throw error
  }
}

/** May a tool's name stand in the clear? */
type IsName = (text: string) => boolean
/** Is the field as the rule wants it? `clear` is the run's `content`. */
type Rule = (value: unknown, clear: boolean, isName: IsName) => boolean

/** Exactly a length and a digest: a further key could hold anything. */
const isHidden = (value: unknown): boolean =>
  isObject(value) &&
  typeof value["bytes"] === "number" &&
  typeof value["hmac"] === "string" &&
  Object.keys(value).length === 2

/** What was redacted stands where content may; without content there is none that could be. */
const unlessRedacted =
  (rule: Rule): Rule =>
  (value, clear, isName) =>
    value instanceof Concealed ? clear : rule(value, clear, isName)

const ruleOf = (name: string, schema: Schema.Top): Rule | undefined => {
  if (schema === Content) {
    return unlessRedacted(
      name === "tool"
        ? (value, clear, isName) => (typeof value === "string" ? clear || value === "" || isName(value) : !clear)
        : (value, clear) => (typeof value === "string") === clear
    )
  }
  // With content on, a value that looks like a digest may well be one: what a tool answers is its own business.
  if (schema === JsonContent) return unlessRedacted((value, clear) => clear || isHidden(value))
  if ("schema" in schema) return ruleOf(name, schema.schema as Schema.Top)
  if ("value" in schema && schema.ast._tag === "Arrays") {
    const rule = ruleOf(name, schema.value as Schema.Top)
    return rule === undefined
      ? undefined
      : (value, clear, isName) => (value as ReadonlyArray<unknown>).every((held) => rule(held, clear, isName))
  }
  if ("fields" in schema) {
    const rules = rulesOf(schema as AnyStruct)
    return rules.length === 0
      ? undefined
      : (value, clear, isName) => broken(rules, value as Data, clear, isName) === undefined
  }
  return undefined
}

type Rules = ReadonlyArray<readonly [field: string, rule: Rule]>

/** Fields that spell content without being of its type. */
const spelling: Readonly<Record<string, Rule>> = { ids: (_, clear) => clear }

const rulesOf = (schema: AnyStruct): Rules =>
  Object.entries(schema.fields).flatMap(([name, field]) => {
    const rule = spelling[name] ?? ruleOf(name, field as Schema.Top)
    return rule === undefined ? [] : [[name, rule] as const]
  })

const broken = (rules: Rules, data: Data, clear: boolean, isName: IsName): string | undefined => {
  for (const [field, rule] of rules) {
    const value = data[field]
    if (value !== undefined && !rule(value, clear, isName)) return field
  }
  return undefined
}

interface Compiled {
  readonly fits: Check
  readonly rules: Rules
  readonly schema: AnyStruct
}

const types: ReadonlyMap<string, Compiled> = new Map(
  Object.entries(vocabulary as unknown as Readonly<Record<string, AnyStruct>>).map(([type, schema]) => [
    type,
    { fits: compile(schema), rules: rulesOf(schema), schema }
  ])
)

export const isKnown = (type: string): boolean => types.has(type)

/** Does `data` fit its event type? The complaint if not. */
export const misfit = (type: string, data: Data): string | undefined => {
  const { fits, schema } = types.get(type)!
  if (fits(data)) return undefined
  const decoded = Schema.decodeUnknownResult(schema as unknown as Schema.Codec<unknown>, { errors: "all" })(data)
  return Result.isFailure(decoded) ? decoded.failure.message.replaceAll(/\s*\n\s*/g, " ") : "it does not fit"
}

/** The first field that holds content where it may not, or hides it where it is to be shown. */
export const indiscretion = (type: string, data: Data, clear: boolean, isName: IsName): string | undefined =>
  broken(types.get(type)!.rules, data, clear, isName)
