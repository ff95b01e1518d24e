/**
 * A parameter that takes the key of the logical attempt. The model never sees or types it, since one slip would be a second
 * effect: it is hidden from what is advertised, refused when sent, and filled in by the runtime just before the tool runs.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isObject, type JsonObject } from "./JsonText.ts"
import type { Problem } from "./ToolCall.ts"
import { ToolContext } from "./ToolContext.ts"
import { ToolError } from "./ToolError.ts"
import { problem, seal, type ValidatedArguments, wording } from "./Validation.ts"

type Check = (args: JsonObject) => Result.Result<ValidatedArguments, ReadonlyArray<Problem>>

/** Stands in for the key while there is none: the same form as a real one. */
const placeholder = "0".repeat(64)

export interface Keyed {
  readonly parameters: JsonObject
  readonly check: Check
  /** The arguments as the tool's own schema has them, with this key or the placeholder. */
  readonly complete: (args: ValidatedArguments, key?: string) => ValidatedArguments
  /** Completes the arguments with the key of the call. Without one there is nothing the other side could honour. */
  readonly withKey: <A, E>(
    args: ValidatedArguments,
    use: (complete: ValidatedArguments) => Effect.Effect<A, E, ToolContext>
  ) => Effect.Effect<A, E | ToolError, ToolContext>
}

const without = (record: JsonObject, name: string): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([key]) => key !== name))

const hidden = (parameters: JsonObject, name: string): JsonObject => {
  const { properties, required } = parameters
  return {
    ...parameters,
    ...(isObject(properties ?? null) ? { properties: without(properties as JsonObject, name) } : {}),
    ...(Array.isArray(required) ? { required: required.filter((one) => one !== name) } : {})
  }
}

/** Has the schema such a parameter, of type string? */
export const takesKey = (parameters: JsonObject, name: string): boolean => {
  const properties = parameters["properties"] ?? null
  const parameter = isObject(properties) && Object.hasOwn(properties, name) ? properties[name]! : null
  return isObject(parameter) && parameter["type"] === "string"
}

export const keyed = (parameters: JsonObject, check: Check, name: string): Keyed => {
  const complete = (args: ValidatedArguments, key = placeholder): ValidatedArguments =>
    Result.getOrThrow(check({ ...args.raw, [name]: key }))
  return {
    parameters: hidden(parameters, name),
    check: (args) => {
      if (Object.hasOwn(args, name)) return Result.fail([problem([name], "unknown_field", wording.unknownField)])
      return Result.map(check({ ...args, [name]: placeholder }), ({ effective }) =>
        seal(args, without(effective, name))
      )
    },
    complete,
    withKey: <A, E>(
      args: ValidatedArguments,
      use: (complete: ValidatedArguments) => Effect.Effect<A, E, ToolContext>
    ) =>
      Effect.flatMap(
        ToolContext,
        ({ settings }): Effect.Effect<A, E | ToolError, ToolContext> =>
          settings.idempotencyKey === undefined
            ? Effect.fail(new ToolError({ kind: "execution_failed", message: "this call has no key" }))
            : use(complete(args, settings.idempotencyKey))
      )
  }
}
