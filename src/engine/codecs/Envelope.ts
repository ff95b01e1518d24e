/**
 * The object a JSON call consists of: a name, an arguments object, and next to nothing else. Families differ in the key
 * of the arguments and in which constant keys they write; the rules are the same for all (docs/codecs.md).
 */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonFault, type JsonObject, parse, parsePrefix } from "../../tools/JsonText.ts"
import type { MalformedCode } from "./Codec.ts"

/** A call as its frame reads it: the place in the turn is set when the frame is done. */
export interface CallBody {
  ordinal: number
  readonly name: string
  readonly arguments: JsonObject
  readonly id?: string
}

/** Written out, not spread: of this form there may be very many, and it takes the least room. */
export const callBody = (name: string, args: JsonObject, id?: string): CallBody =>
  id === undefined ? { ordinal: 0, name, arguments: args } : { ordinal: 0, name, arguments: args, id }

export interface EnvelopeOptions {
  /** The key this family writes; the other of `arguments` and `parameters` is accepted as an alias when it stands alone. */
  readonly key: "arguments" | "parameters"
  /** The only value `type` may have. */
  readonly type: string
}

export interface EnvelopeFault {
  readonly code: MalformedCode
  readonly what: string
}

/** Levels that arguments may be nested; the envelope itself is one more. */
export const argumentsDepth = 32

// Wider than what can be registered, so that `functions.read` is reported as an unknown tool and not as bad syntax.
const nameShape = /^[\p{L}\p{N}_.:/-]{1,64}$/u

/** Checks a name: not empty, and of a shape some tool could have. */
export const checkName = (name: Json | undefined): EnvelopeFault | undefined => {
  if (typeof name !== "string" || name === "") {
    return { code: "missing_name", what: 'the call has no tool name: "name" must be a non-empty string' }
  }
  if (nameShape.test(name)) return undefined
  return { code: "invalid_name", what: "the tool name has characters no tool name has, or is longer than 64" }
}

/** The arguments under either key, checked to be an object. Absent means none. */
const argumentsOf = (call: JsonObject, key: EnvelopeOptions["key"]): Result.Result<JsonObject, EnvelopeFault> => {
  const other = key === "arguments" ? "parameters" : "arguments"
  if (Object.hasOwn(call, key) && Object.hasOwn(call, other)) {
    return Result.fail({ code: "conflicting_arguments", what: `the call has both "${key}" and "${other}"` })
  }
  const used = Object.hasOwn(call, other) ? other : key
  if (!Object.hasOwn(call, used)) return Result.succeed({})
  const value = call[used]!
  if (isObject(value)) return Result.succeed(value)
  const kind = value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`
  return Result.fail({ code: "arguments_not_object", what: `"${used}" must be a JSON object, not ${kind}` })
}

/** Reads a parsed call object. */
export const readEnvelope = (value: Json, options: EnvelopeOptions): Result.Result<CallBody, EnvelopeFault> => {
  if (!isObject(value)) return Result.fail({ code: "not_an_object", what: "the call must be exactly one JSON object" })
  const name = Object.hasOwn(value, "name") ? value["name"] : undefined
  const badName = checkName(name)
  if (badName !== undefined) return Result.fail(badName)
  for (const key of Object.keys(value)) {
    if (key === "name" || key === "arguments" || key === "parameters") continue
    if (key === "type" && value[key] === options.type) continue
    if (key === "id" && typeof value[key] === "string") continue
    const shown = JSON.stringify(key.slice(0, 40))
    const fix = key === "type" || key === "id" ? "has a value that does not belong there" : "does not belong in a call"
    return Result.fail({ code: "unknown_envelope_key", what: `the key ${shown} ${fix}` })
  }
  const id = Object.hasOwn(value, "id") ? (value["id"] as string) : undefined
  const args = argumentsOf(value, options.key)
  return Result.isFailure(args) ? Result.fail(args.failure) : Result.succeed(callBody(name as string, args.success, id))
}

/** Strict JSON of a whole payload: a fault of the text in the words of a malformed call. */
export const describeJsonFault = (fault: JsonFault): EnvelopeFault => ({
  code: fault.code,
  what: `the call is not valid JSON (${fault.reason})`
})

/** Parses call text that must be one JSON value with nothing after it. Depth is counted for the envelope. */
export const parsePayload = (text: string): Result.Result<Json, JsonFault> =>
  parse(text, { maxDepth: argumentsDepth + 1 })

export const parsePayloadPrefix = (
  text: string,
  start: number
): Result.Result<{ readonly value: Json; readonly end: number }, JsonFault> =>
  parsePrefix(text, start, { maxDepth: argumentsDepth + 1 })
