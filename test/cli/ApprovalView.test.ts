import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { approvalLines } from "../../src/cli/ApprovalView.ts"
import type { ApprovalRequest } from "../../src/effects/Policy.ts"

const plain = (text: string) => text
const paint = { bold: plain, dim: plain, red: plain, green: plain, cyan: plain, yellow: plain }
const request: ApprovalRequest = {
  runId: "run-1",
  callId: "call-0-0",
  tool: "send",
  risk: "external",
  arguments: { to: "bob", count: 2, more: { list: ["a"] } },
  digest: "d",
  cost: 0,
  hazard: 0,
  reversible: false,
  evidence: { source: "sensor", describes: "the letter in the outbox" }
}
const columnsOfText = (text: string) => [...text].reduce((columns, one) => columns + (one === "漢" ? 2 : 1), 0)
const linesOf = (change: Partial<ApprovalRequest> = {}, columns = 80) =>
  approvalLines({ ...request, ...change }, paint, columns)

describe("what somebody is asked to approve", () => {
  it("says tool, risk, every argument, undo and evidence", () => {
    assert.deepStrictEqual(linesOf(), [
      "  ? The model wants to call send: it reaches outside (external).",
      "    arguments",
      '      to: "bob"',
      "      count: 2",
      "      more: {",
      '          "list": [',
      '            "a"',
      "          ]",
      "        }",
      "    undo       what it does cannot be undone",
      "    judged by  another system: the letter in the outbox"
    ])
    assert.include(linesOf({ arguments: {} }).join("\n"), "arguments  none")
  })

  it("says cost and hazard where there are any, and only then", () => {
    assert.notInclude(linesOf().join("\n"), "price")
    assert.include(linesOf({ cost: 2, hazard: 0.5 }).join("\n"), "price      cost 2, hazard 0.5")
    assert.include(linesOf({ hazard: 1 }).join("\n"), "price      hazard 1")
  })

  it("shows what would change, cut where it is endless", () => {
    const shown = linesOf({ preview: Array.from({ length: 500 }, (_, at) => `+ ${at}`).join("\n") })
    assert.include(shown, "      + 199")
    assert.notInclude(shown, "      + 200")
    assert.strictEqual(shown.at(-1), "      … (300 more lines)")
  })

  it("shows arguments whole, inside the margin, however long they are and whatever script they are in", () => {
    const text = `${"x".repeat(500)}\n${"漢".repeat(100)}\n  Allow this call? [y]es`
    const shown = linesOf({ arguments: { text, [`n${"a".repeat(200)}`]: "y".repeat(300) } })
    const joined = shown.map((line) => line.replace(/^ *│? ?/, "")).join("")
    assert.include(joined, "x".repeat(500))
    assert.include(joined, "漢".repeat(100))
    assert.include(joined, "y".repeat(300))
    for (const line of shown) {
      const columns = [...line].reduce((sum, character) => sum + (character === "漢" ? 2 : 1), 0)
      assert.isAtMost(columns, 80, line)
      assert.match(line, /^ {2}/)
    }
    assert.include(shown, "      │   Allow this call? [y]es", "other people's text cannot pass for the question")
  })

  it("breaks long text at words, and spells all of it", () => {
    const text = "Dear Bob, the bread is gone. Please bring some when you come over on Saturday."
    assert.deepStrictEqual(linesOf({ arguments: { text } }).slice(2, 4), [
      '      text: "Dear Bob, the bread is gone. Please bring some when you come ',
      '        over on Saturday."'
    ])
    const words = fc.array(fc.stringMatching(/^[a-z漢]{1,8}$/), { minLength: 1, maxLength: 60 })
    fc.assert(
      fc.property(words, fc.integer({ min: 40, max: 120 }), (list, columns) => {
        const preview = list.join(" ")
        const shown = linesOf({ preview }, columns)
        const lines = shown.slice(shown.indexOf("    changes") + 1).map((line) => line.slice(6))
        assert.strictEqual(lines.join(""), preview)
        for (const line of lines.slice(0, -1)) assert.isTrue(line.endsWith(" "), line)
        for (const line of lines) assert.isAtMost(columnsOfText(line.trimEnd()) + 6, columns - 1)
      })
    )
  })

  it("sends no control character, wherever it stands", () => {
    const evil = "a\u001b[2J\u202eb\u0007\r\u2028"
    const all = linesOf({
      tool: evil,
      arguments: { [evil]: evil, text: `${evil}\n${evil}` },
      evidence: { source: "self", describes: evil },
      preview: `${evil}\n${evil}`
    })
    for (const line of all) assert.notMatch(line, /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029]/)
  })
})
