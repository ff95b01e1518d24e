import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import { describe } from "vitest"
import { TurnText } from "../../src/engine/LlamaText.ts"

/** Bytes as tokens, the way a byte-level vocabulary falls apart. */
const detokenize = (tokens: ReadonlyArray<number>): string => Buffer.from(tokens as Array<number>).toString("utf8")

/** @param steps milliseconds from one token to the next, over and over */
const run = (value: string, stops: ReadonlyArray<string>, steps: ReadonlyArray<number> = [0], live = true) => {
  let now = 0
  const pieces: Array<string> = []
  const tokens: Array<number> = []
  const turn = new TurnText(
    detokenize,
    stops,
    [],
    (text, ids) => {
      pieces.push(text)
      tokens.push(...ids)
    },
    { live, now: () => now }
  )
  let stopped = false
  let used = 0
  for (const byte of Buffer.from(value)) {
    now += steps[used++ % steps.length]!
    stopped = turn.push(byte)
    if (stopped) break
  }
  const late = turn.end()
  return { text: pieces.join(""), pieces, tokens, stopped: stopped || late, used }
}

const steps = fc.array(fc.nat({ max: 120 }), { minLength: 1, maxLength: 6 })

describe("LlamaText", () => {
  it("never hands out a part of a character, and in sum hands out all of them", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 30 }), steps, fc.boolean(), (value, millis, looking) => {
        const { pieces, text, tokens } = run(value, looking ? ["a stop that does not come"] : [], millis)
        assert.strictEqual(text, value)
        assert.deepStrictEqual(tokens, [...Buffer.from(value)])
        for (const piece of pieces) assert.notInclude(piece, "\uFFFD")
      })
    )
  })

  it("that nobody reads along comes as one piece behind the first, however long it takes, and is the same", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), steps, (value, millis) => {
        const stops = ["STOP"]
        const { pieces, ...rest } = run(value, stops, millis, false)
        assert.isAtMost(pieces.length, 2)
        const { pieces: _, ...live } = run(value, stops, millis)
        assert.deepStrictEqual(rest, live)
      })
    )
  })

  it("ends with the first stop text, which is part of the turn", () => {
    const { stopped, text, used } = run("one two STOP three", ["three", "STOP"])
    assert.isTrue(stopped)
    assert.strictEqual(text, "one two STOP")
    assert.strictEqual(used, 12)
  })

  it("drops text after the stop that came in the same token, and keeps the token", () => {
    const words: ReadonlyArray<string> = ["{", '"a"', "}\n</call>\n", "never"]
    const pieces: Array<string> = []
    const ids: Array<number> = []
    const turn = new TurnText(
      (tokens) => tokens.map((token) => words[token]!).join(""),
      ["</call>"],
      [],
      (text, tokens) => {
        pieces.push(text)
        ids.push(...tokens)
      }
    )
    assert.isFalse(turn.push(0))
    assert.isFalse(turn.push(1))
    assert.isTrue(turn.push(2) || turn.end())
    turn.end()
    assert.strictEqual(pieces.join(""), '{"a"}\n</call>')
    assert.deepStrictEqual(ids, [0, 1, 2])
  })

  it("finds a stop wherever the tokens cut it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 20 }), steps, (before, millis) => {
        fc.pre(!before.includes("␄") && !before.includes("é"))
        const { stopped, text } = run(`${before}␄é and more`, ["␄é"], millis)
        assert.isTrue(stopped)
        assert.strictEqual(text, `${before}␄é`)
      })
    )
  })

  it("hands out the first token at once and then what came in 100 ms, as one text", () => {
    const { pieces } = run("abcdefghij", [], [40])
    assert.deepStrictEqual(pieces, ["a", "bcd", "efg", "hij"])
    assert.deepStrictEqual(run("abcdefghij", ["never"], [40]).pieces, pieces)
  })

  it("gives up on a character that never completes after eight tokens", () => {
    const pieces: Array<string> = []
    const turn = new TurnText(
      () => "\uFFFD",
      [],
      [],
      (text) => pieces.push(text)
    )
    for (let i = 0; i < 7; i++) turn.push(i)
    assert.deepStrictEqual(pieces, [])
    turn.push(7)
    assert.deepStrictEqual(pieces, ["\uFFFD"])
  })
})
