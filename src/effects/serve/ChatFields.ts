/** Reads fields of a request that came as strict JSON. Each problem names its field as the API does (`messages[2].role`). */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../tools/JsonText.ts"
import { type ChatError, invalid } from "./ChatError.ts"

export type Read<A> = Result.Result<A, ChatError>

const article = (what: string): string => (/^[aeiou]/.test(what) ? `an ${what}` : `a ${what}`)

const whatIs = (value: Json): string =>
  value === null ? "null" : article(Array.isArray(value) ? "array" : typeof value)

const wrong = (param: string, wanted: string, value: Json | undefined): Read<never> =>
  value === undefined
    ? Result.fail(
        invalid(param, `'${param}' is missing: it has to be ${article(wanted)}`, "missing_required_parameter")
      )
    : Result.fail(invalid(param, `'${param}' has to be ${article(wanted)}, not ${whatIs(value)}`, "invalid_type"))

/** Absent and `null` are the same thing: not said. */
const said = (object: JsonObject, key: string): Json | undefined => object[key] ?? undefined

export const objectAt = (value: Json | undefined, param: string): Read<JsonObject> =>
  value !== undefined && isObject(value) ? Result.succeed(value) : wrong(param, "object", value)

export const listAt = (value: Json | undefined, param: string): Read<ReadonlyArray<Json>> =>
  Array.isArray(value) ? Result.succeed(value) : wrong(param, "array", value)

export const textAt = (value: Json | undefined, param: string): Read<string> =>
  typeof value === "string" ? Result.succeed(value) : wrong(param, "string", value)

export const toolName = /^[A-Za-z0-9_-]{1,64}$/

/** The name of a tool. Codecs write it as it is, so it is never more than a name. */
export const toolNameAt = (value: Json | undefined, param: string): Read<string> =>
  Result.flatMap(textAt(value, param), (name) =>
    toolName.test(name)
      ? Result.succeed(name)
      : Result.fail(
          invalid(param, `'${param}' has to be 1 to 64 letters, digits, underscores and dashes`, "invalid_value")
        )
  )

export const optional = <A>(
  object: JsonObject,
  key: string,
  read: (value: Json, param: string) => Read<A>
): Read<A | undefined> => {
  const value = said(object, key)
  return value === undefined ? Result.succeed(undefined) : read(value, key)
}

export const flag = (value: Json, param: string): Read<boolean> =>
  typeof value === "boolean" ? Result.succeed(value) : wrong(param, "boolean", value)

/** A number from `least` to `most`. */
export const between =
  (least: number, most: number, whole = false) =>
  (value: Json, param: string): Read<number> => {
    if (typeof value !== "number") return wrong(param, whole ? "integer" : "number", value)
    if (whole && !Number.isInteger(value)) return wrong(param, "integer", value)
    if (value >= least && value <= most) return Result.succeed(value)
    const range = most === Infinity ? `${least} or more` : `from ${least} to ${most}`
    return Result.fail(invalid(param, `'${param}' has to be ${range}, not ${value}`, "out_of_range"))
  }

/** Refuses keys that nobody knows, with all that are known. */
export const onlyKnown = (object: JsonObject, known: ReadonlySet<string>, at: string): Read<void> => {
  const stray = Object.keys(object).find((key) => !known.has(key))
  if (stray === undefined) return Result.succeed(undefined)
  const param = at === "" ? stray : `${at}.${stray}`
  return Result.fail(invalid(param, `Unrecognized request argument supplied: ${param}`, "unknown_parameter"))
}
