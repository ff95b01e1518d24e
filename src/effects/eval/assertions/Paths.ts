/** JSONPath over a JSON value, with what can go wrong as a verdict. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { query } from "jsonpath-rfc9535"
import type { Json } from "../../../tools/JsonText.ts"
import { bounded, mostMillis } from "../Bounded.ts"
import { errored, malformed, quote, type Verdict } from "../Verdict.ts"

export const Path = Schema.String

export type Found =
  | { readonly _tag: "Values"; readonly values: ReadonlyArray<Json> }
  | { readonly _tag: "Verdict"; readonly verdict: Verdict }

const no = (verdict: Verdict): Found => ({ _tag: "Verdict", verdict })

/**
 * Patterns in filters may never end, a filter may ask the whole value anew at each place, and descending more than once takes
 * long in deep values; other paths end soon.
 */
const canBeLong = (path: string): boolean => path.includes("?") || path.split("..").length > 2

/** All values at a path, in order. */
export const find = (value: Json, path: string): Found => {
  try {
    const look = (): ReadonlyArray<Json> => query(value as Parameters<typeof query>[0], path) as ReadonlyArray<Json>
    if (!canBeLong(path)) return { _tag: "Values", values: look() }
    const found = bounded(look)
    if (Result.isFailure(found)) return no(errored(`path ${quote(path)} took longer than ${mostMillis} ms`))
    return { _tag: "Values", values: found.success }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    return no(malformed(`path ${quote(path)} is no JSONPath (RFC 9535; it begins with $): ${why}`))
  }
}
