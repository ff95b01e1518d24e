/**
 * Redaction rules as settings: how they are read from flags, a variable and the file, and whether each can be used. The
 * patterns are tried by the engine that will run them, which is loaded only where there are any.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { compile, type RedactionRule } from "../actors/Redaction.ts"
import { isObject, type Json, parse } from "../tools/JsonText.ts"
import type { Raw } from "./SettingForms.ts"

const form = 'NAME=PATTERN, or an object like {"NAME": "PATTERN"}'

const ruleOf = (said: Json): RedactionRule | undefined => {
  const at = typeof said === "string" ? said.indexOf("=") : -1
  return typeof said === "string" && at >= 1 ? { name: said.slice(0, at), pattern: said.slice(at + 1) } : undefined
}

const fromList = (list: ReadonlyArray<Json>): Result.Result<ReadonlyArray<RedactionRule>, string> => {
  const rules = list.map(ruleOf)
  return rules.every((rule) => rule !== undefined) && rules.length > 0
    ? Result.succeed(rules)
    : Result.fail(`expected ${form}`)
}

const fromObject = (value: Readonly<Record<string, Json>>): Result.Result<ReadonlyArray<RedactionRule>, string> => {
  const wrong = Object.entries(value).find(([, pattern]) => typeof pattern !== "string")
  if (wrong !== undefined) return Result.fail(`"${wrong[0]}" must be a text`)
  return Result.succeed(Object.entries(value).map(([name, pattern]) => ({ name, pattern: String(pattern) })))
}

/** Repeated flags, the JSON of a variable or one rule in it, the object of the file. */
export const readRules = (raw: Raw): Result.Result<ReadonlyArray<RedactionRule>, string> => {
  // A pattern may begin like JSON; then it does not read as an object or a list.
  const read = typeof raw === "string" && /^[[{]/.test(raw) ? Result.getOrElse(parse(raw), () => raw) : raw
  if (Array.isArray(read)) return fromList(read)
  if (typeof read === "string") return fromList([read])
  return isObject(read as Json) ? fromObject(read as Readonly<Record<string, Json>>) : Result.fail(`expected ${form}`)
}

/** Why these rules cannot be used, each named; `undefined` when they can. */
export const rulesProblem = (rules: ReadonlyArray<RedactionRule>): Effect.Effect<string | undefined> =>
  compile(rules).pipe(
    Effect.as(undefined),
    Effect.catch(({ reason, rule }) => Effect.succeed(`${rule}: ${reason}`))
  )
