/** What a tool answers with, if it is JSON: the one form that can be told to a model, recorded and sent across a thread. */
import * as Effect from "effect/Effect"
import type { Json } from "./JsonText.ts"

/** The defect of a tool that answered with something that is not its result. */
export class BadResult extends Error {
  override readonly name = "BadResult"
}

const maxResultDepth = 100

/** A value as JSON, or a `BadResult` defect: tools answer with JSON and nothing else. */
export const toJson = (value: unknown): Effect.Effect<Json> => {
  const fault = jsonFault(value, 0)
  return fault === undefined ? Effect.succeed(value as Json) : Effect.die(new BadResult(`the result ${fault}`))
}

const jsonFault = (value: unknown, depth: number): string | undefined => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined
    case "number":
      return Number.isFinite(value) ? undefined : `contains ${value}, which is not JSON`
    case "object":
      return value === null
        ? undefined
        : depth >= maxResultDepth
          ? `is nested deeper than ${maxResultDepth} levels`
          : insideFault(value, depth + 1)
    default:
      return `contains ${value === undefined ? "nothing" : `a ${typeof value}`}, which is not JSON`
  }
}

const insideFault = (value: object, depth: number): string | undefined => {
  if (Array.isArray(value)) {
    // By index: a hole is not JSON, and `for…of` would not tell it from undefined either.
    for (const item of value) {
      const fault = jsonFault(item, depth)
      if (fault !== undefined) return fault
    }
    return undefined
  }
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null)
    return `contains a ${prototype.constructor?.name ?? "class"} object, which is not JSON`
  for (const item of Object.values(value)) {
    const fault = jsonFault(item, depth)
    if (fault !== undefined) return fault
  }
  return undefined
}
