import { describe, expect, it } from "vitest"
import { check, fill } from "../../../../src/effects/conversation/assemble/PathTemplate.ts"

const binding = { case: "over-limit", tone: "dry" }

describe("a path with variables", () => {
  it("gets the values of the binding, spaces inside the braces or not", () => {
    expect(fill("prompts/{{ case }}/{{tone}}-{{  case  }}.md", binding, [])).toBe(
      "prompts/over-limit/dry-over-limit.md"
    )
    expect(fill("prompts/plain } } { {.md", binding, [])).toBe("prompts/plain } } { {.md")
  })

  it("is not filled twice", () => expect(fill("{{ a }}", { a: "{{ b }}", b: "x" }, [])).toBe("{{ b }}"))

  const refused: Record<string, RegExp> = {
    "p/{{ case": /"p\/\{\{ case": \{\{ without \}\}/,
    "p/{{ case }/x": /\{\{ without \}\}/,
    "p/{{ csae }}": /unknown variable csae: did you mean case\?/,
    "p/{{ nothing-like-it }}": /unknown variable nothing-like-it: there are case, tone; add one, or give --var/,
    "p/{{ }}": /is no variable/,
    "p/{{ a b }}": /\{\{ a b \}\} is no variable/,
    "p/{{ case | upper }}": /is no variable/
  }
  for (const [path, reason] of Object.entries(refused)) {
    it(`is refused: ${path}`, () => expect(() => check(path, ["case", "tone"], [])).toThrow(reason))
  }

  it("is refused with a word about the matrix where there is none", () => {
    expect(() => check("{{ x }}", [], [])).toThrow(/unknown variable x: the matrix has no axis/)
  })
})
