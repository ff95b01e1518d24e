/**
 * Checks arguments against a JSON Schema (2020-12, or draft-07 by `$schema`) compiled once per tool
 * (`SchemaChecker`), and says what is wrong in the words of `Validation`. Formats are annotations.
 */
import type { ErrorObject } from "ajv"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { closed, resolveReference } from "./ClosedSchema.ts"
import { isObject, type Json, type JsonObject } from "./JsonText.ts"
import * as SchemaChecker from "./SchemaChecker.ts"
import { type Defaults, defaultsOf, withDefaults } from "./SchemaDefaults.ts"
import { type Dialect, reworded } from "./SchemaDialect.ts"
import { remoteReference } from "./SchemaReferences.ts"
import { foreignTypesText } from "./SchemaTypes.ts"
import type { Problem } from "./ToolCall.ts"
import {
  keywordReason,
  ordered,
  type PathSegment,
  problem,
  seal,
  typeOf,
  type ValidatedArguments,
  wording
} from "./Validation.ts"

/** A schema that no arguments can be checked against. */
export class SchemaRefused extends Schema.TaggedError<SchemaRefused>()("SchemaRefused", { message: Schema.String }) {}

export interface JsonSchemaChecker {
  readonly check: (args: JsonObject) => Result.Result<ValidatedArguments, ReadonlyArray<Problem>>
}

const dialectOf = (schema: JsonObject): Dialect | undefined => {
  const uri = schema["$schema"]
  if (uri === undefined || /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/.test(String(uri))) return "2020-12"
  return /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/.test(String(uri)) ? "draft-07" : undefined
}

/** Compiles the schema of a tool's arguments, or says why that cannot be done. */
export const compile = Effect.fnUntraced(function* (
  schema: JsonObject
): Effect.fn.Return<JsonSchemaChecker, SchemaRefused> {
  const refuse = (message: string) => Effect.fail(new SchemaRefused({ message }))
  const dialect = dialectOf(schema)
  if (dialect === undefined) return yield* refuse("its $schema is neither 2020-12 nor draft-07")
  const remote = remoteReference(schema)
  if (remote !== undefined)
    return yield* refuse(`it refers to ${remote}: only references inside the schema are followed`)
  const foreign = foreignTypesText(schema)
  if (foreign !== undefined) return yield* refuse(foreign)
  const type = schema["type"]
  if (type !== undefined && type !== "object" && !(Array.isArray(type) && type.includes("object"))) {
    return yield* refuse("the arguments of a tool are an object, its type is not")
  }
  const attempt = (one: JsonObject) =>
    Effect.mapError(SchemaChecker.compile(one, dialect), (message) => new SchemaRefused({ message }))
  const errorsOf = yield* attempt({ type: "object", ...closed(reworded(schema, dialect)) })
  const definitions = { ...pick(schema, "$schema"), ...pick(schema, "$defs"), ...pick(schema, "definitions") }
  const usable = new Set<Json>()
  for (const { schema: place, value } of defaultsOf(schema, schema, new Set())) {
    // `default` is only an annotation. One that its own schema does not accept must not become an argument.
    const accepts = yield* Effect.option(attempt({ ...definitions, ...place }))
    if (Option.isSome(accepts) && fits(accepts.value, value)) usable.add(place)
  }
  return { check: (args) => checkWith(errorsOf, { root: schema, usable }, args) }
})

const pick = (schema: JsonObject, key: string): JsonObject => (schema[key] === undefined ? {} : { [key]: schema[key]! })

/** A schema may refer to itself without end, and values may be nested deeper than the stack: then there is no verdict. */
const verdictOf = (errorsOf: SchemaChecker.SchemaChecker, value: Json): ReadonlyArray<ErrorObject> | string => {
  try {
    return errorsOf(value)
  } catch (cause) {
    if (cause instanceof RangeError) return "the arguments cannot be checked: their schema refers to itself without end"
    throw cause
  }
}

const fits = (errorsOf: SchemaChecker.SchemaChecker, value: Json): boolean => {
  const verdict = verdictOf(errorsOf, value)
  return typeof verdict !== "string" && verdict.length === 0
}

const checkWith = (
  errorsOf: SchemaChecker.SchemaChecker,
  defaults: Defaults,
  args: JsonObject
): Result.Result<ValidatedArguments, ReadonlyArray<Problem>> => {
  const verdict = verdictOf(errorsOf, args)
  if (typeof verdict === "string") return Result.fail([problem([], "constraint", verdict)])
  if (verdict.length > 0) return Result.fail(problemsOf(verdict, defaults.root))
  const filled = defaults.usable.size === 0 ? args : (withDefaults(args, defaults.root, defaults) as JsonObject)
  return Result.succeed(seal(args, filled))
}

/** ajv's errors as problems. The errors of the branches of a failed choice are folded into one. */
const problemsOf = (errors: ReadonlyArray<ErrorObject>, root: JsonObject): ReadonlyArray<Problem> => {
  const choices = errors.filter((error) => error.keyword === "anyOf" || error.keyword === "oneOf")
  const branchErrors = (choice: ErrorObject): ReadonlyArray<ErrorObject> => {
    const prefixes = [`${choice.schemaPath}/`, ...referencesIn(choice.schema as Json, root, new Set())]
    return errors.filter(
      (error) =>
        error !== choice &&
        isWithin(error.instancePath, choice.instancePath) &&
        prefixes.some((prefix) => error.schemaPath.startsWith(prefix))
    )
  }
  const folded = new Set(choices.flatMap(branchErrors))
  // An enumeration says more about a value than its type does.
  const listed = errors.filter((error) => error.keyword === "enum" || error.keyword === "const")
  const isSaid = (error: ErrorObject) =>
    error.keyword === "type" && listed.some((other) => other.instancePath === error.instancePath)
  const kept = errors.filter((error) => !folded.has(error) && !isSaid(error))
  const composed = kept.filter((error) => composition.has(error.keyword)).map((error) => error.instancePath)
  return ordered(
    kept
      // What a failed composition would have declared cannot be told from what nobody declared.
      .filter((error) => error.keyword !== "unevaluatedProperties" || !composed.includes(error.instancePath))
      .map((error) => (choices.includes(error) ? choiceProblem(error, branchErrors(error)) : problemOf(error)))
  )
}

const composition = new Set(["anyOf", "oneOf", "not", "if"])

const isWithin = (path: string, parent: string): boolean => path === parent || path.startsWith(`${parent}/`)

const referencesIn = (schema: Json, root: JsonObject, seen: Set<Json>): ReadonlyArray<string> => {
  if (typeof schema !== "object" || schema === null || seen.has(schema)) return []
  seen.add(schema)
  const reference = isObject(schema) ? schema["$ref"] : undefined
  const target = typeof reference === "string" ? resolveReference(root, reference) : undefined
  return [
    ...(typeof reference === "string" ? [`${reference}/`] : []),
    ...(target === undefined ? [] : referencesIn(target, root, seen)),
    ...Object.values(schema).flatMap((inner: Json) => referencesIn(inner, root, seen))
  ]
}

const pathOf = (error: ErrorObject, ...more: ReadonlyArray<string>): ReadonlyArray<PathSegment> => [
  ...error.instancePath
    .split("/")
    .slice(1)
    .map((step) => (/^(0|[1-9]\d*)$/.test(step) ? Number(step) : step.replaceAll("~1", "/").replaceAll("~0", "~"))),
  ...more
]

/** A choice none of whose branches fits: told by type where the types alone decide, by branch where one is meant. */
const choiceProblem = (choice: ErrorObject, inside: ReadonlyArray<ErrorObject>): Problem => {
  const here = pathOf(choice)
  if ((choice.params as { readonly passingSchemas?: unknown }).passingSchemas != null) {
    return problem(here, "composition", wording.several)
  }
  const typeErrors = inside.filter((error) => error.keyword === "type" && error.instancePath === choice.instancePath)
  if (typeErrors.length === inside.length) {
    return problem(
      here,
      "wrong_type",
      wording.wrongType([...new Set(typeErrors.flatMap(typesOf))], choice.data as Json)
    )
  }
  const others = inside.filter((error) => !typeErrors.includes(error))
  return others.length === 1 ? problemOf(others[0]!) : problem(here, "composition", wording.none)
}

const typesOf = (error: ErrorObject): ReadonlyArray<string> =>
  [(error.params as { readonly type: string | Array<string> }).type].flat()

const problemOf = (error: ErrorObject): Problem => {
  const params = error.params as Record<string, unknown>
  switch (error.keyword) {
    case "required":
      return problem(pathOf(error, String(params["missingProperty"])), "missing", wording.missing)
    case "dependentRequired":
    case "dependencies":
      return problem(pathOf(error, String(params["missingProperty"])), "missing", wording.missing)
    case "additionalProperties":
      return problem(pathOf(error, String(params["additionalProperty"])), "unknown_field", wording.unknownField)
    case "unevaluatedProperties":
      return problem(pathOf(error, String(params["unevaluatedProperty"])), "unknown_field", wording.unknownField)
    case "type":
      return problem(pathOf(error), "wrong_type", wording.wrongType(typesOf(error), error.data as Json))
    case "enum":
      return problem(
        pathOf(error),
        "not_in_enum",
        wording.notInEnum(params["allowedValues"] as ReadonlyArray<Json>, error.data as Json)
      )
    case "const":
      return problem(
        pathOf(error),
        "not_in_enum",
        wording.notInEnum([params["allowedValue"] as Json], error.data as Json)
      )
    case "not":
      return problem(pathOf(error), "composition", wording.forbidden)
    case "if":
      return problem(pathOf(error), "composition", `does not fit the "${params["failingKeyword"]}" part of its schema`)
    default:
      return problem(
        pathOf(error),
        "constraint",
        keywordReason(error.keyword, error.schema) ??
          `${error.message ?? `a ${typeOf(error.data as Json)} is not allowed here`}`
      )
  }
}
