/**
 * Checks arguments against an Effect Schema, compiled once per tool, and turns the library's issues into our problems.
 * Schemas that arrive as JSON are `JsonSchema`'s business.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type * as SchemaIssue from "effect/SchemaIssue"
import type { Json, JsonObject } from "./JsonText.ts"
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

/** What a schema compiles to: the check, and the decoder for arguments that have passed it. */
export interface EffectChecker {
  readonly check: (args: JsonObject) => Result.Result<ValidatedArguments, ReadonlyArray<Problem>>
  readonly decode: (args: ValidatedArguments) => unknown
}

const strict = { errors: "all", onExcessProperty: "error" } as const

/** `schema` must decode synchronously and need no services; objects in it are closed, whatever their nesting. */
export const compile = (schema: Schema.Constraint): EffectChecker => {
  const codec = Schema.toCodecJson(schema as Schema.Codec<unknown, unknown>)
  const decodeOwn = Schema.decodeUnknownResult(codec, strict)
  // The library's decoder looks fields up with the prototype's names among them: `constructor` would never be missing.
  const decode = namesInherited(codec) ? (args: JsonObject) => decodeOwn(withoutPrototype(args)) : decodeOwn
  // Encoding what was decoded shows the defaults; without transformations there are none and the raw value is it.
  const plain = Schema.toEncoded(codec).ast === codec.ast
  const encode = plain ? undefined : Schema.encodeUnknownResult(codec)
  return {
    check: (args) => {
      const decoded = decode(args)
      if (Result.isFailure(decoded)) return Result.fail(problemsOf(decoded.failure.issue, args))
      if (encode === undefined) return Result.succeed(seal(args, args))
      const effective = encode(decoded.success)
      return Result.isSuccess(effective)
        ? Result.succeed(seal(args, effective.success as JsonObject))
        : Result.fail(problemsOf(effective.failure.issue, args))
    },
    decode: (args) => Result.getOrThrow(decode(args.raw))
  }
}

const namesInherited = (schema: Schema.Constraint): boolean => {
  const { definitions, schema: root } = Schema.toJsonSchemaDocument(schema as Schema.Codec<unknown, unknown>)
  const inherited = Object.getOwnPropertyNames(Object.prototype)
  const names = (value: unknown): boolean =>
    typeof value === "object" &&
    value !== null &&
    Object.entries(value).some(([key, inner]) => inherited.includes(key) || names(inner))
  return names([root, definitions])
}

const withoutPrototype = (value: Json): Json => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(withoutPrototype)
  const copy: Record<string, Json> = Object.create(null)
  for (const [key, inner] of Object.entries(value)) copy[key] = withoutPrototype(inner)
  return copy
}

/** Every problem of an issue tree, in the order of `ordered`. The input is needed for the "got …" half. */
const problemsOf = (issue: SchemaIssue.Issue, input: Json): ReadonlyArray<Problem> => ordered(collect(issue, [], input))

type Path = ReadonlyArray<PathSegment>

const at = (value: Json | undefined, segment: PathSegment): Json | undefined =>
  typeof value === "object" && value !== null && Object.hasOwn(value, segment)
    ? (value as { readonly [key: PathSegment]: Json })[segment]
    : undefined

const collect = (issue: SchemaIssue.Issue, path: Path, value: Json | undefined): ReadonlyArray<Problem> => {
  switch (issue._tag) {
    case "Pointer": {
      const segments = issue.path.map((segment) => (typeof segment === "number" ? segment : String(segment)))
      return collect(issue.issue, [...path, ...segments], segments.reduce(at, value))
    }
    case "Composite":
      return issue.issues.flatMap((inner) => collect(inner, path, value))
    case "Encoding":
      return collect(issue.issue, path, value)
    case "Filter":
      return collectFilter(issue, path, value)
    case "AnyOf":
      // The library has already left out the members whose type does not fit.
      if (issue.issues.length === 0) return [typeProblem(issue.ast, path, value)]
      return issue.issues.length === 1
        ? collect(issue.issues[0]!, path, value)
        : [problem(path, "composition", wording.none)]
    case "MissingKey":
      return [problem(path, "missing", wording.missing)]
    case "UnexpectedKey":
      return [problem(path, "unknown_field", wording.unknownField)]
    case "InvalidType":
      // A field that may hold nothing at all is a field that does not exist.
      return SchemaAST.isNever(issue.ast)
        ? [problem(path, "unknown_field", wording.unknownField)]
        : [typeProblem(issue.ast, path, value)]
    case "OneOf":
      return [problem(path, "composition", wording.several)]
    default:
      return [problem(path, "constraint", messageOf(issue.annotations))]
  }
}

const messageOf = (annotations: Schema.Annotations.Issue | undefined): string => {
  const { expected, message } = (annotations ?? {}) as { readonly expected?: unknown; readonly message?: unknown }
  return typeof message === "string"
    ? message
    : typeof expected === "string"
      ? `expected ${expected}`
      : "not a valid value"
}

/** What a schema accepts: literals by value, everything else by the name of its JSON type. */
const expectedBy = (
  ast: SchemaAST.AST
): { readonly names: ReadonlyArray<string>; readonly literals: ReadonlyArray<Json> } => {
  const encoded = SchemaAST.toEncoded(ast)
  switch (encoded._tag) {
    case "Literal":
      return { names: [JSON.stringify(encoded.literal)], literals: [encoded.literal as Json] }
    case "Union": {
      const parts = encoded.types.map(expectedBy)
      return {
        names: [...new Set(parts.flatMap((part) => part.names))],
        literals: parts.flatMap((part) => part.literals)
      }
    }
    case "Objects":
      return { names: ["object"], literals: [] }
    case "Arrays":
      return { names: ["array"], literals: [] }
    case "Number":
      return { names: [isInteger(encoded) ? "integer" : "number"], literals: [] }
    case "Suspend":
      return expectedBy(encoded.thunk())
    default:
      return { names: [encoded._tag.toLowerCase()], literals: [] }
  }
}

const typeProblem = (ast: SchemaAST.AST, path: Path, value: Json | undefined): Problem => {
  const { literals, names } = expectedBy(ast)
  return literals.length > 0 && literals.length === names.length
    ? problem(path, "not_in_enum", wording.notInEnum(literals, value))
    : problem(path, "wrong_type", wording.wrongType(names, value))
}

interface Representation {
  readonly id: string
  readonly payload: Record<string, unknown> | null
}

const representationOf = (filter: SchemaAST.Filter<unknown>): Representation | undefined =>
  filter.annotations?.["representation"] as Representation | undefined

const isIntegerCheck = (filter: SchemaAST.Filter<unknown>): boolean =>
  representationOf(filter)?.id === "effect/schema/isInt"

const isInteger = (ast: SchemaAST.AST): boolean =>
  (ast.checks ?? []).some((check) =>
    check._tag === "Filter"
      ? isIntegerCheck(check)
      : check.checks.some((inner) => inner._tag === "Filter" && isIntegerCheck(inner))
  )

const collectFilter = (issue: SchemaIssue.Filter, path: Path, value: Json | undefined): ReadonlyArray<Problem> => {
  if (isIntegerCheck(issue.filter)) {
    // The library's integers end where a double stops telling them apart.
    if (!Number.isInteger(value)) return [problem(path, "wrong_type", wording.wrongType(["integer"], value))]
    const bound = Number(value) > 0 ? "maximum" : "minimum"
    const limit = bound === "maximum" ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER
    return [problem(path, "constraint", keywordReason(bound, limit)!)]
  }
  const own = reasonOf(issue.filter, value)
  if (own !== undefined) return [problem(path, "constraint", own)]
  if (issue.issue._tag !== "InvalidValue" || issue.issue.annotations !== undefined) {
    return collect(issue.issue, path, value)
  }
  return [problem(path, "constraint", messageOf(issue.filter.annotations as Schema.Annotations.Issue | undefined))]
}

/** A library check in the words its JSON Schema keyword has, so that both checkers speak alike. */
const reasonOf = (filter: SchemaAST.Filter<unknown>, value: Json | undefined): string | undefined => {
  const annotations = filter.annotations as
    | { readonly message?: unknown; readonly toJsonSchema?: (context: { readonly type: string }) => unknown }
    | undefined
  const representation = representationOf(filter)
  if (annotations?.message !== undefined || representation === undefined) return undefined
  const output = annotations?.toJsonSchema?.({ type: typeOf(value) })
  const keywords = lengthKeywords(representation, value) ?? (Array.isArray(output) ? output[0] : output)
  for (const [keyword, limit] of Object.entries((keywords as Record<string, unknown> | undefined) ?? {})) {
    if (violates(keyword, limit, value)) return keywordReason(keyword, limit)
  }
  return undefined
}

/** Length checks count UTF-16 units, JSON Schema counts code points: their keyword there is only an approximation. */
const lengthKeywords = (
  { id, payload }: Representation,
  value: Json | undefined
): Record<string, unknown> | undefined => {
  const name = /^effect\/schema\/is(Min|Max|Between)Length$/.exec(id)?.[1]
  if (name === undefined) return undefined
  const unit = Array.isArray(value) ? "Items" : "Length"
  const { maxLength, maximum = maxLength, minLength, minimum = minLength } = payload ?? {}
  return {
    ...(minimum === undefined ? {} : { [`min${unit}`]: minimum }),
    ...(maximum === undefined ? {} : { [`max${unit}`]: maximum })
  }
}

const violates = (keyword: string, limit: unknown, value: Json | undefined): boolean => {
  if (typeof value === "number" && typeof limit === "number") {
    if (keyword === "minimum") return value < limit
    if (keyword === "maximum") return value > limit
    if (keyword === "exclusiveMinimum") return value <= limit
    return keyword === "exclusiveMaximum" ? value >= limit : keyword === "multipleOf"
  }
  const size = typeof value === "string" || Array.isArray(value) ? value.length : Object.keys(value ?? {}).length
  if (keyword.startsWith("min")) return size < Number(limit)
  if (keyword.startsWith("max")) return size > Number(limit)
  return keyword === "uniqueItems" || keyword === "pattern"
}
