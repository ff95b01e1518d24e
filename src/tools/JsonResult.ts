/** What a tool answers with, if it is JSON: the one form that can be told to a model, recorded and sent across a thread. */
import * as Effect from "effect/Effect"
import { isWithinDepth, type Json } from "./JsonText.ts"

/** The defect of a tool that answered with something that is not its result. */
export class BadResult extends Error {
  override readonly name = "BadResult"
  /** What it answered instead, where there is something to show. */
  readonly value: unknown

  constructor(message: string, value?: unknown) {
    super(message)
    this.value = value
  }
}

/** How deep a result may be nested. */
export const maxResultDepth = 100

const tooDeep = `is nested deeper than ${maxResultDepth} levels`

/** A value as JSON, or a `BadResult` defect: tools answer with JSON and nothing else. */
export const toJson = (value: unknown): Effect.Effect<Json> => {
  const fault = jsonFault(value, 0)
  if (fault !== undefined) return Effect.die(new BadResult(`the result ${fault}`, value))
  if (typeof value !== "object" || value === null) return Effect.succeed(value as Json)
  // A copy: the tool may go on changing what it returned, and a getter may say something else the second time.
  return Effect.suspend(() => {
    try {
      const copy = JSON.parse(JSON.stringify(value)) as Json
      if (isWithinDepth(copy, maxResultDepth)) return Effect.succeed(copy)
      return Effect.die(new BadResult(`the result ${tooDeep}`, value))
    } catch (error) {
      return Effect.die(
        new BadResult(`the result is not JSON: ${error instanceof Error ? error.message : String(error)}`, value)
      )
    }
  })
}

/** What a handler returned, if it is an effect: plain values and promises are what JavaScript callers forget to wrap. */
export const asEffect = <A, E, R>(returned: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.isEffect(returned)
    ? returned
    : Effect.die(
        new BadResult(
          "the tool returned no Effect; wrap its value in Effect.succeed, its promise in Effect.promise",
          returned
        )
      )

const jsonFault = (value: unknown, depth: number): string | undefined => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return undefined
    case "number":
      return Number.isFinite(value) ? undefined : `contains ${value}, which is not JSON`
    case "object":
      return value === null ? undefined : depth >= maxResultDepth ? tooDeep : insideFault(value, depth + 1)
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
