import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { terminalTypes, vocabulary } from "../../../src/actors/TraceEvent.ts"
import { invariants } from "../../../src/effects/trace/TraceValidator.ts"
import { fieldsOf, rowOf } from "../../kit/vocabulary.ts"

const text = readFileSync(join(import.meta.dirname, "../../../docs/trace.md"), "utf8")

/** The part of the page under a heading, up to the next one. */
const under = (heading: string): string => {
  const start = text.indexOf(`\n${heading}\n`)
  assert.isAbove(start, 0, `docs/trace.md has no ${heading}`)
  const rest = text.slice(start + heading.length + 2)
  return rest.slice(0, rest.search(/\n##/))
}

/** The rows of a table, without what is said about each field. */
const rowsOf = (part: string): ReadonlyArray<string> =>
  [...part.matchAll(/^\| `[^|]*\| [^|]* \| (?=[^|]+\|$)/gm)].map(([row]) => row)

describe("docs/trace.md", () => {
  const shared = rowsOf(under("## Ends"))

  for (const type of Object.keys(vocabulary)) {
    it(`describes every field of ${type}, in order and by its type`, () => {
      const common = terminalTypes.has(type) ? shared : []
      const expected = fieldsOf(type).map(rowOf)
      assert.deepStrictEqual([...common, ...rowsOf(under(`### \`${type}\``))], expected)
    })
  }

  it("describes no event that is not there", () => {
    const described = [...text.matchAll(/^### `([a-z_]+)`$/gm)].map(([, type]) => type)
    assert.sameMembers(described as Array<string>, Object.keys(vocabulary))
  })

  it("lists the invariants in the words of the validator", () => {
    const listed = [...text.matchAll(/^\| (T\d\d) \| (.*) \|$/gm)].map(([, id, words]) => [id, words])
    assert.deepStrictEqual(listed, Object.entries(invariants))
  })
})
