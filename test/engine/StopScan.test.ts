import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { upToStop } from "../../src/engine/StopScan.ts"

/** A text as it comes, up to where it ends. */
const heard = (pieces: ReadonlyArray<string>, stops: ReadonlyArray<string>): string => {
  let said = ""
  for (const piece of pieces) {
    const ended = upToStop(said, piece, stops)
    if (ended !== undefined) return ended
    said += piece
  }
  return said
}

const letters = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom("a", "b"), minLength, maxLength })

describe("a text that is heard in pieces", () => {
  it("ends with the first stop that is whole, whatever it was cut into", () => {
    fc.assert(
      fc.property(
        fc.array(letters(0, 5), { maxLength: 8 }),
        fc.array(letters(1, 4), { maxLength: 3 }),
        (pieces, stops) => {
          const text = pieces.join("")
          const ends = Array.from(text, (_, at) => text.slice(0, at + 1))
          const first = ends.find((begun) => stops.some((stop) => begun.endsWith(stop)))
          assert.strictEqual(heard(pieces, stops), first ?? text)
        }
      )
    )
  })

  it("goes on where there is none", () => {
    assert.isUndefined(upToStop("ab", "c", ["abd"]))
    assert.strictEqual(upToStop("ab", "cd", ["abc"]), "abc")
    assert.isUndefined(upToStop("ab", "cd", []))
  })
})
