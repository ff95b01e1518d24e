/**
 * Computations of a suite's own making over a model's text (patterns, filters of a path) with an end: a pattern that tries
 * everything would otherwise hold the whole evaluation up for ever.
 */
import { createContext, Script } from "node:vm"
import * as Result from "effect/Result"

/** Milliseconds one of them may take. */
export const mostMillis = 2_000

const script = new Script("compute()")
const context: { compute?: () => unknown } = createContext({})

const isTimeout = (cause: unknown): boolean =>
  (cause as { readonly code?: unknown } | undefined)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"

/** The value, or `TooLong`. What it throws goes through. */
export const bounded = <A>(compute: () => A, millis = mostMillis): Result.Result<A, "TooLong"> => {
  context.compute = compute
  try {
    return Result.succeed(script.runInContext(context, { timeout: millis }) as A)
  } catch (cause) {
    if (isTimeout(cause)) return Result.fail("TooLong")
    throw cause
  } finally {
    delete context.compute
  }
}
