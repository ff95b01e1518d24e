import { assert, describe, it } from "@effect/vitest"
import { block, inline } from "../../../src/cli/Printable.ts"
import { codeOf, unseen } from "../../../src/effects/trace/Unseen.ts"

/** Every character that acts or hides: controls, format characters, line separators, halves of pairs. */
const acting = /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]$/u

/** Format characters that are seen, or that only letters of their script obey: numbers of Arabic and Syriac, musical beams. */
const harmless =
  /^[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}\u{13430}-\u{1345f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}]$/u

describe("unseen characters", () => {
  it("are all that act or hide but line end and tab, and each is one match", () => {
    const missed: Array<string> = []
    const wrong: Array<string> = []
    for (let point = 0; point <= 0x10ffff; point++) {
      const character = String.fromCodePoint(point)
      const found = character.match(unseen)
      const acts = acting.test(character) && !harmless.test(character) && !"\t\n".includes(character)
      // Language tags beyond those that are assigned are shown too.
      const tag = point >= 0xe0000 && point <= 0xe007f
      if (acts && (found?.length !== 1 || found[0] !== character)) missed.push(codeOf(character))
      // Reserved places among the format characters count as such.
      const reserved = point === 0x2065 || tag
      if (!acts && !reserved && found !== null) wrong.push(codeOf(character))
    }
    assert.deepStrictEqual({ missed, wrong }, { missed: [], wrong: [] })
  })

  it("never reach a terminal", () => {
    const text = "a\u001b]8;;https://example.org\u0007b\u009b31m\u202e\u200b\u061c\ud800\u{e0041}\r\n\tc\rd"
    const codes = "a\\u001b]8;;https://example.org\\u0007b\\u009b31m\\u202e\\u200b\\u061c\\ud800\\u{e0041}"
    assert.strictEqual(inline(text), `${codes}\\r\\n\\tc\\rd`)
    assert.strictEqual(block(text), `${codes}\n\tc\\rd`)
  })
})
