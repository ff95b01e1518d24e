import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { BadResult, toJson } from "../../src/tools/JsonResult.ts"

const nested = (depth: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < depth; level++) value = [value]
  return value
}

/** Something that says it is another thing when it is copied. */
const masked = (value: object, said: () => unknown): object => Object.defineProperty(value, "toJSON", { value: said })

/** What a value is refused for; nothing if it is JSON. */
const refusal = (value: unknown): Effect.Effect<string | undefined> =>
  Effect.map(Effect.exit(toJson(value)), (exit) => {
    if (Exit.isSuccess(exit)) return undefined
    const error = Cause.squash(exit.cause)
    return error instanceof BadResult ? error.message : String(error)
  })

describe("a result", () => {
  it.effect("is a copy", () =>
    Effect.gen(function* () {
      const value = { a: [1, "x", null, true] }
      const copy = yield* toJson(value)
      assert.deepStrictEqual(copy, value)
      assert.notStrictEqual(copy, value)
    })
  )

  it.effect("is looked at as it was copied: what says something else the second time is held to that", () =>
    Effect.gen(function* () {
      let asked = 0
      const changing = {
        get a() {
          return asked++ === 0 ? 1 : nested(3_000)
        }
      }
      const values = [nested(101), masked({}, () => nested(3_000)), masked([], () => nested(3_000)), changing]
      for (const value of values) assert.match(String(yield* refusal(value)), /nested deeper than 100 levels/)
      assert.isUndefined(yield* refusal(masked({}, () => nested(99))))
      assert.match(String(yield* refusal(masked({}, () => undefined))), /the result is not JSON/)
    })
  )
})
