import { describe, expect, it } from "vitest"
import { folded, problemOf } from "../../../../src/effects/conversation/assemble/FileNames.ts"

describe("a file's name", () => {
  for (const name of [
    "a",
    "over-limit",
    "default",
    "a.b",
    "Ünïcode 1",
    "日本",
    "common",
    "com",
    "nullable",
    "x".repeat(200)
  ]) {
    it(`may be ${JSON.stringify(name.slice(0, 20))}`, () => expect(problemOf(name)).toBeUndefined())
  }

  const refused: Record<string, RegExp> = {
    "": /empty/,
    "a/b": /has a \/ in it/,
    "../a": /has a \/ in it/,
    "a\\b": /has a \\ in it/,
    "..": /begins with a dot/,
    ".": /begins with a dot/,
    ".hidden": /begins with a dot/,
    "a\0b": /has a U\+0000 in it/,
    "a\nb": /has a U\+000A in it/,
    "a\u202eb": /has a U\+202E in it/,
    "a:b": /has a : in it/,
    "a*": /has a \* in it/,
    "a?": /has a \? in it/,
    "a ": /ends with a space/,
    " a": /begins or ends with a space/,
    "a.": /ends with a dot/,
    CON: /a device/,
    "nul.txt": /a device/,
    lpt1: /a device/,
    [`${"é".repeat(101)}`]: /longer than 200 bytes/
  }
  for (const [name, reason] of Object.entries(refused)) {
    it(`is refused as ${JSON.stringify(name.slice(0, 20))}`, () => expect(problemOf(name)).toMatch(reason))
  }

  it("is the same in any letter case and any composition", () => {
    expect(folded("Straße")).toBe(folded("STRASSE"))
    expect(folded("É")).toBe(folded("e\u0301"))
    expect(folded("a")).not.toBe(folded("b"))
  })
})
