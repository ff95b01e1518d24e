/**
 * Compiles a schema to a check of values: with ajv, which is loaded when the first schema comes, or, where ajv is known to read
 * schemas otherwise than they are meant, with the interpreter. Both give errors in ajv's terms.
 */
import type { ErrorObject } from "ajv"
import * as Effect from "effect/Effect"
import type { Json, JsonObject } from "./JsonText.ts"
import { type Dialect, needsReading, withConditions } from "./SchemaDialect.ts"

/** The errors of a value, all of them; none if it fits. Throws a `RangeError` where a schema refers to itself without end. */
export type SchemaChecker = (value: Json) => ReadonlyArray<ErrorObject>

const engines = Effect.promise(() => import("./AjvCompilers.ts"))
const interpreter = Effect.promise(() => import("./SchemaInterpreter.ts"))

/** ajv calls the schema `data` and says some things three times over. */
const reasonOf = (cause: unknown): string => {
  if (cause instanceof RangeError) return "its references lead too deep"
  const message = cause instanceof Error ? cause.message : String(cause)
  const reasons = message.replace(/^schema is invalid: /, "").split(/, (?=data[ /])/)
  return [...new Set(reasons.map((reason) => reason.replace(/^data(?=[ /])/, "").trimStart()))].join("; ")
}

/** `schema`: in the words of its dialect that `SchemaDialect.reworded` gives. Fails with why it does not compile. */
export const compile = Effect.fnUntraced(function* (
  schema: JsonObject,
  dialect: Dialect
): Effect.fn.Return<SchemaChecker, string> {
  const { compilers, described } = yield* engines
  const isRead = needsReading(schema)
  const { interpret } = isRead ? yield* interpreter : { interpret: undefined }
  return yield* Effect.try({
    try: (): SchemaChecker => {
      const compiler = compilers[dialect]
      if (interpret !== undefined) {
        const complaint = compiler.complaint(schema)
        if (complaint !== undefined) throw new Error(complaint)
        return interpret(schema, dialect, described)
      }
      const validate = compiler.compile(withConditions(schema))
      return (value) => (validate(value) === true ? [] : (validate.errors ?? []))
    },
    catch: (cause) => `it does not compile: ${reasonOf(cause)}`
  })
})
