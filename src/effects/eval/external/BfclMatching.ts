/**
 * When calls count as right on the Berkeley Function Calling Leaderboard (v4, its check of the syntax tree): a parameter has one
 * of the allowed values, an optional one may be absent where the list holds the empty text, texts are compared without
 * case, spaces and some punctuation, parallel calls come in any order. Also its quirks, where answers depend on them; where we differ is
 * said in docs/evaluation.md. Does not ask whether a call is legal.
 */
import { isObject, type Json, type JsonObject } from "../../../tools/JsonText.ts"
import { equal } from "../Operator.ts"

/** One right call: for each parameter the values it may have. */
export interface Answer {
  readonly name: string
  readonly parameters: Readonly<Record<string, ReadonlyArray<Json>>>
}

export interface Call {
  readonly name: string
  readonly input: JsonObject
}

type Type = "string" | "integer" | "number" | "boolean" | "array" | "object" | "null"

/** What a parameter was declared as. Without a type it is one of text: that is how the leaderboard reads `any`. */
interface Declared {
  readonly type: Type
  readonly items: Type | undefined
}

/** Marks a parameter that may be absent. */
const absent = ""

/** A text as it is compared: no case, no spaces, none of `,./-_*^`, one kind of quotes. */
export const standard = (text: string): string =>
  text
    .replace(/[ ,./\-_*^]/g, "")
    .toLowerCase()
    .replaceAll("'", '"')

const standardised = (value: Json): Json => (typeof value === "string" ? standard(value) : value)

const among = (value: Json, allowed: ReadonlyArray<Json>): boolean => allowed.some((one) => equal(value, one))

const typed = (type: Json | undefined): Type => (typeof type === "string" ? (type as Type) : "string")

const declaredAs = (schema: Json | undefined): Declared => {
  if (schema === undefined || !isObject(schema)) return { type: "string", items: undefined }
  const { items, type } = schema
  const isList = type === "array"
  return { type: typed(type), items: isList && items !== undefined && isObject(items) ? typed(items.type) : undefined }
}

/** JSON has one kind of numbers: a whole one is an integer wherever one is wanted. */
const kindOf = (value: Json): Type => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "array"
  return typeof value as Type
}

const isOf = (value: Json, type: Type): boolean =>
  type === "integer" ? Number.isInteger(value) : kindOf(value) === type

const firstOf = (allowed: ReadonlyArray<Json>): Json | undefined => allowed.find((one) => one !== absent)

/** Allowed values of another type than the declared one stand for names of variables: they are compared as they are. */
const isVariable = (allowed: ReadonlyArray<Json>, type: Type): boolean => {
  const first = firstOf(allowed)
  return first !== undefined && !isOf(first, type)
}

const likeAllowed = (value: Json, allowed: ReadonlyArray<Json>): boolean => {
  const first = firstOf(allowed)
  return first !== undefined && kindOf(first) === kindOf(value)
}

/** Does every element have the declared type, or that of the first element of one of the allowed lists? */
const elementsFit = (value: ReadonlyArray<Json>, allowed: ReadonlyArray<Json>, items: Type): boolean =>
  allowed.some(
    (one) => !Array.isArray(one) || value.every((element) => isOf(element, items) || likeAllowed(element, one))
  )

/** `variable`: the value is compared as it is. `undefined`: the value has none of the types it may have. */
const typeCheck = (value: Json, allowed: ReadonlyArray<Json>, { items, type }: Declared) => {
  if (isOf(value, type)) {
    if (items !== undefined && !elementsFit(value as ReadonlyArray<Json>, allowed, items)) return undefined
    return { variable: isVariable(allowed, type) }
  }
  return likeAllowed(value, allowed) ? { variable: true } : undefined
}

const textFits = (value: string, allowed: ReadonlyArray<Json>): boolean =>
  allowed.some((one) => typeof one === "string" && standard(one) === standard(value))

const listFits = (value: ReadonlyArray<Json>, allowed: ReadonlyArray<Json>): boolean => {
  const seen = value.map(standardised)
  // The mark of an optional parameter counts as the empty list.
  return allowed.some((one) => equal(seen, Array.isArray(one) ? one.map(standardised) : one === absent ? [] : one))
}

const isList = (value: Json | undefined): value is ReadonlyArray<Json> => Array.isArray(value)

/** An object of the answers has for each key the values that are allowed there. Deeper objects are compared as they are. */
const objectFits = (value: JsonObject, answer: JsonObject): boolean => {
  for (const [key, one] of Object.entries(value)) {
    const allowed = Object.hasOwn(answer, key) ? answer[key] : undefined
    if (!isList(allowed) || !among(standardised(one), allowed.map(standardised))) return false
  }
  return Object.entries(answer).every(
    ([key, allowed]) => Object.hasOwn(value, key) || (isList(allowed) && allowed.includes(absent))
  )
}

const anyObjectFits = (value: JsonObject, allowed: ReadonlyArray<Json>): boolean =>
  allowed.some((one) => isObject(one) && objectFits(value, one))

/** Objects in a list come in the order of the answer. */
const objectsFit = (value: ReadonlyArray<Json>, allowed: ReadonlyArray<Json>): boolean =>
  allowed.some(
    (one) =>
      (isList(one) ? one.length : 0) === value.length &&
      value.every((element, at) => {
        const wanted = (one as ReadonlyArray<Json>)[at]!
        return isObject(element) && isObject(wanted) && objectFits(element, wanted)
      })
  )

const valueFits = (value: Json, allowed: ReadonlyArray<Json>, { items, type }: Declared): boolean => {
  if (type === "object") return anyObjectFits(value as JsonObject, allowed)
  if (type === "array" && items === "object") return objectsFit(value as ReadonlyArray<Json>, allowed)
  if (type === "string") return textFits(value as string, allowed)
  return type === "array" ? listFits(value as ReadonlyArray<Json>, allowed) : among(value, allowed)
}

const shown = (value: Json): string => JSON.stringify(value)

const parameterProblem = (
  name: string,
  value: Json,
  allowed: ReadonlyArray<Json>,
  declared: Declared
): string | undefined => {
  const found = typeCheck(value, allowed, declared)
  if (found === undefined) return `${name} is ${shown(value)}, which is no ${declared.type}`
  const fits = found.variable ? among(value, allowed) : valueFits(value, allowed, declared)
  return fits ? undefined : `${name} is ${shown(value)}; allowed are ${allowed.map(shown).join(", ")}`
}

/** What is wrong with one call, in words; `undefined` where it is right. `schema` is the declared one of the answer's tool. */
export const callProblem = (call: Call, answer: Answer, schema: JsonObject | undefined): string | undefined => {
  const { input, name } = call
  if (name !== answer.name) return `${name} was called, ${answer.name} was wanted`
  const { properties = {}, required = [] } = schema ?? {}
  const known = isObject(properties) ? properties : {}
  const missing = (isList(required) ? required : []).find(
    (one) => typeof one === "string" && !Object.hasOwn(input, one)
  )
  if (missing !== undefined) return `${name}: ${String(missing)} is missing`
  for (const [parameter, value] of Object.entries(input)) {
    if (!Object.hasOwn(known, parameter) || !Object.hasOwn(answer.parameters, parameter)) {
      return `${name}: ${parameter} is not expected`
    }
    const problem = parameterProblem(parameter, value, answer.parameters[parameter]!, declaredAs(known[parameter]))
    if (problem !== undefined) return `${name}: ${problem}`
  }
  const left = Object.entries(answer.parameters).find(
    ([parameter, allowed]) => !Object.hasOwn(input, parameter) && !allowed.includes(absent)
  )
  return left === undefined ? undefined : `${name}: ${left[0]} is missing, and may not be`
}

/** What is wrong with the calls of a turn. Each answer takes the first call left that fits it, as the leaderboard does. */
export const callsProblem = (
  calls: ReadonlyArray<Call>,
  answers: ReadonlyArray<Answer>,
  schemaOf: (tool: string) => JsonObject | undefined
): string | undefined => {
  if (calls.length !== answers.length) return `${calls.length} calls, and ${answers.length} were wanted`
  const left = [...calls]
  for (const answer of answers) {
    const problems = left.map((call) => callProblem(call, answer, schemaOf(answer.name)))
    const at = problems.indexOf(undefined)
    if (at < 0) return answers.length === 1 ? problems[0]! : `no call fits ${answer.name}: ${problems.join("; ")}`
    left.splice(at, 1)
  }
  return undefined
}
