/** The report as Markdown: nothing of it hides a failure, and no text of it becomes markup. */
import { assert, describe, it } from "@effect/vitest"
import { junit } from "../../../src/effects/eval/JUnit.ts"
import { plain } from "../../../src/effects/eval/Markdown.ts"
import { markdown } from "../../../src/effects/eval/ReportMarkdown.ts"
import { reportOf } from "../../kit/evals.ts"

describe("a report in Markdown", () => {
  it("shows a failure beside a pass of the same class in the same case", () => {
    const text = markdown(
      reportOf("r", [
        {
          case: "a",
          outcomes: [
            ["must_call_tool", "fail"],
            ["must_call_tool", "pass"]
          ]
        }
      ])
    )
    assert.include(text, "| a | default | #0 **fail** · #1 pass |")
    assert.include(text, "- **fail** a / default #0 must\\_call\\_tool: fail, says the test")
  })

  it("has cases without a name, and those that nothing matched", () => {
    const report = reportOf("r", [{ outcomes: [["tokens", "pass"]] }])
    const text = markdown({ ...report, cases: [...report.cases, { name: "lost", matches: [] }] })
    assert.include(text, "| case-0 | default | #0 pass |")
    assert.include(text, "No conversation matched: lost.")
  })

  it("gives the pass rate of what was decided, and says where nothing was", () => {
    const some = reportOf("r", [
      {
        outcomes: [
          ["tokens", "pass"],
          ["judge", "deferred"],
          ["tokens", "fail"],
          ["tokens", "pass"]
        ]
      }
    ])
    assert.include(markdown(some), "**66.7 %** of 3 decided assertions passed (95 % interval 21–94 %).")
    assert.include(markdown(reportOf("r", [{ outcomes: [["judge", "deferred"]] }])), "**this is not a pass.**")
  })

  it("adds up: the last row of the classes is their sum", () => {
    const report = reportOf("r", [
      {
        outcomes: [
          ["tokens", "pass"],
          ["judge", "deferred"],
          ["judge", "errored"]
        ]
      }
    ])
    assert.include(
      markdown(report),
      "| judge | 0 | 0 | 1 | 0 | 1 |\n| tokens | 1 | 0 | 0 | 0 | 0 |\n| **all** | 1 | 0 | 1 | 0 | 1 |"
    )
  })

  it("leaves rows out of long tables, and says how many", () => {
    const shapes = Array.from({ length: 600 }, (_, index) => ({
      conversation: `c${index}`,
      outcomes: [["tokens", "fail"]] as const
    }))
    const text = markdown(reportOf("r", shapes))
    assert.include(text, "100 more are in the JSON.")
    assert.include(text, "400 more are in the JSON.")
  })

  it("keeps text text", () => {
    assert.strictEqual(
      plain("a|b <script> [x](y) `c` *d*\n# e \u202e"),
      "a\\|b &lt;script> \\[x\\](y) \\`c\\` \\*d\\* \\# e \\\\u202e".replace("script>", "script\\>")
    )
  })
})

describe("a report in JUnit's form", () => {
  it("tells whose fault it is, and counts", () => {
    const text = junit(
      reportOf("r", [
        {
          case: "a",
          outcomes: [
            ["x", "pass"],
            ["x", "fail"],
            ["x", "malformed"],
            ["x", "errored"],
            ["x", "deferred"]
          ]
        }
      ])
    )
    assert.include(text, '<testsuites name="checks" tests="5" failures="1" errors="2" skipped="1">')
    assert.include(text, '<testcase classname="checks.a" name="default #0 x"/>')
    assert.include(
      text,
      '<testcase classname="checks.a" name="default #1 x"><failure type="fail" message="fail, says the test"/></testcase>'
    )
    assert.include(text, '<error type="errored"')
    assert.include(text, '<skipped type="deferred"')
  })

  it("holds no character that XML cannot", () => {
    const text = junit(reportOf("\u0000", [{ case: "\u0001\ud800<&\"'\uffff", outcomes: [["a\nb", "pass"]] }]))
    assert.include(text, "\\u0001\\ud800&#60;&#38;&#34;&#39;\\uffff")
    assert.include(text, "a&#10;b")
  })
})
