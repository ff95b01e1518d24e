/** Two sides compared assertion by assertion, repeated runs, and the gate between them. */
import { assert, describe, it } from "@effect/vitest"
import fc from "fast-check"
import { compare } from "../../../src/effects/eval/Comparison.ts"
import { comparisonMarkdown, repeatsMarkdown } from "../../../src/effects/eval/ComparisonMarkdown.ts"
import { problems } from "../../../src/effects/eval/Gate.ts"
import * as Repeats from "../../../src/effects/eval/Repeats.ts"
import { type Outcome, outcomes } from "../../../src/effects/eval/Verdict.ts"
import { reportOf } from "../../kit/evals.ts"

const twice = (first: Outcome, second: Outcome) =>
  reportOf("r", [
    {
      case: "a",
      outcomes: [
        ["must_call_tool", first],
        ["must_call_tool", second]
      ]
    }
  ])

const many = (runId: string, passing: number, of = 10) =>
  reportOf(
    runId,
    Array.from({ length: of }, (_, index) => ({
      case: `c${index}`,
      conversation: `c${index}`,
      outcomes: [["text_contains", index < passing ? "pass" : "fail"]] as const
    }))
  )

describe("a comparison", () => {
  it("pairs two assertions of one class one to one", () => {
    const found = compare([twice("fail", "pass")], [twice("pass", "fail")])
    assert.deepStrictEqual([found.improved, found.regressed], [1, 1])
    assert.deepStrictEqual(
      found.pairs.map(({ change, ordinal }) => `${ordinal} ${change}`),
      ["0 improved", "1 regressed"]
    )
    assert.isFalse(found.gate)
  })

  it("its gate is shut without an improvement, and open with one and no regression", () => {
    assert.isFalse(compare([twice("fail", "pass")], [twice("fail", "pass")]).gate)
    assert.isTrue(compare([twice("fail", "pass")], [twice("pass", "pass")]).gate)
  })

  it("an error or a malformed assertion is not a pass", () => {
    const found = compare([twice("pass", "errored")], [twice("malformed", "fail")])
    assert.deepStrictEqual([found.regressed, found.unchanged_fail], [1, 1])
  })

  it("pairs cases without a name by their place, and those of one name by their order", () => {
    const report = (...shown: ReadonlyArray<Outcome>) =>
      reportOf("r", [
        { outcomes: [["tokens", shown[0]!]] },
        { case: "x", outcomes: [["tokens", shown[1]!]] },
        { case: "x", outcomes: [["tokens", shown[2]!]] }
      ])
    const found = compare([report("pass", "pass", "fail")], [report("fail", "pass", "pass")])
    assert.deepStrictEqual(
      found.pairs.map((pair) => `${pair.case} ${pair.change}`),
      ["case-0 regressed", "x unchanged_pass", "x (2) improved"]
    )
  })

  it("takes no case for another one that is called as the second of a name would be", () => {
    const report = (...shown: ReadonlyArray<Outcome>) =>
      reportOf(
        "r",
        ["x", "x", "x (2)", "x"].map((name, at) => ({ case: name, outcomes: [["tokens", shown[at]!] as const] }))
      )
    const found = compare([report("pass", "pass", "pass", "pass")], [report("pass", "fail", "pass", "pass")])
    assert.strictEqual(found.pairs.length, 4)
    assert.deepStrictEqual([found.regressed, found.unchanged_pass], [1, 3])
  })

  it("names what only one side has, and what one side did not decide, and counts neither", () => {
    const a = reportOf("a", [
      {
        case: "x",
        outcomes: [
          ["judge", "pass"],
          ["tokens", "pass"],
          ["judge", "deferred"]
        ]
      }
    ])
    const b = reportOf("b", [
      {
        case: "x",
        outcomes: [
          ["judge", "deferred"],
          ["latency_ms", "pass"],
          ["judge", "pass"]
        ]
      }
    ])
    const found = compare([a], [b])
    assert.deepStrictEqual(found.pairs, [])
    assert.strictEqual(found.only_in_a[0]!.class, "tokens")
    assert.strictEqual(found.only_in_b[0]!.class, "latency_ms")
    assert.strictEqual(found.no_longer_decided[0]!.ordinal, 0)
    assert.strictEqual(found.undecided[0]!.ordinal, 2)
  })

  it("asks of conversations, not of assertions, whether a difference means anything", () => {
    const report = (outcome: Outcome) =>
      reportOf("r", [{ case: "x", outcomes: Array.from({ length: 8 }, () => ["tokens", outcome] as const) }])
    const { significance } = compare([report("fail")], [report("pass")])
    assert.deepStrictEqual(significance.conversations, { better: 1, worse: 0, equal: 0, p: 1 })
    assert.closeTo(significance.assertions.p, 2 / 2 ** 8, 1e-12)
  })

  it("every pair is one of four, and swapping the sides swaps two of them", () => {
    const side = fc.array(fc.constantFrom(...outcomes), { minLength: 6, maxLength: 6 })
    fc.assert(
      fc.property(side, side, (left, right) => {
        const [a, b] = [left, right].map((all) =>
          reportOf("r", [{ outcomes: all.map((one) => ["tokens", one] as const) }])
        )
        const [there, back] = [compare([a!], [b!]), compare([b!], [a!])]
        const { improved, pairs, regressed, unchanged_fail, unchanged_pass } = there
        assert.strictEqual(improved + regressed + unchanged_pass + unchanged_fail, pairs.length)
        assert.strictEqual(pairs.length + there.no_longer_decided.length + there.undecided.length, 6)
        assert.deepStrictEqual([back.improved, back.regressed], [regressed, improved])
      })
    )
  })

  it("of repeated runs compares shares", () => {
    const found = compare([many("a1", 5), many("a2", 6)], [many("b1", 6), many("b2", 6), many("b3", 6)])
    const sixth = found.pairs[5]!
    assert.deepStrictEqual(
      [sixth.a, sixth.b],
      [
        { passes: 1, tries: 2 },
        { passes: 3, tries: 3 }
      ]
    )
    assert.strictEqual(sixth.change, "improved")
    assert.deepStrictEqual([found.improved, found.regressed], [1, 0])
  })
})

describe("repeated runs", () => {
  const runs = [many("r1", 9), many("r2", 10), many("r3", 9)]

  it("name what is flaky, with its share and interval", () => {
    const { cells, flaky, runs: rows, total } = Repeats.of(runs)
    assert.deepStrictEqual(
      flaky.map(({ conversation, outcomes, passes, tries }) => ({ conversation, outcomes, passes, tries })),
      [{ conversation: "c9", outcomes: ["fail", "pass", "fail"], passes: 1, tries: 3 }]
    )
    assert.strictEqual(cells.length, 10)
    assert.deepStrictEqual([total.passes, total.tries], [28, 30])
    assert.closeTo(total.interval!.low, 0.7868, 0.0001)
    assert.deepStrictEqual(
      rows.map(({ passes, tries }) => `${passes}/${tries}`),
      ["9/10", "10/10", "9/10"]
    )
  })

  it("do not count what was deferred as a try, nor as flaky", () => {
    const report = (outcome: Outcome) => reportOf("r", [{ outcomes: [["judge", outcome]] }])
    const { flaky, total } = Repeats.of([report("pass"), report("deferred")])
    assert.deepStrictEqual([total.passes, total.tries, flaky.length], [1, 1, 0])
  })
})

describe("the gate", () => {
  it("is shut for reports of different suites: the same place in them is another assertion", () => {
    const report = (suite: string) => reportOf("r", [{ outcomes: [["text_contains", "pass"]] }], { suite })
    const found = compare([report("prices")], [report("manners")])
    assert.match(problems(found).join(), /different suites: prices, manners/)
    assert.include(comparisonMarkdown(found, undefined), "different suites (prices, manners)")
    assert.deepStrictEqual(problems(compare([report("prices")], [report("prices")])), [])
  })

  const between = (a: Parameters<typeof compare>[0], b: Parameters<typeof compare>[1], improvement = false) =>
    problems(compare(a, b), { improvement })

  it("is open where nothing got worse, and wants more only where it is asked to", () => {
    assert.deepStrictEqual(between([many("a", 5)], [many("b", 5)]), [])
    assert.deepStrictEqual(between([many("a", 5)], [many("b", 5)], true), ["nothing improved"])
    assert.deepStrictEqual(between([many("a", 5)], [many("b", 6)], true), [])
  })

  it("is shut by one regression, and names it", () => {
    assert.deepStrictEqual(between([many("a", 5)], [many("b", 4)]), ["regressed: c4/c4 #0 text_contains"])
  })

  it("is shut by an assertion that is gone, or is not decided any more", () => {
    assert.match(between([many("a", 5, 6)], [many("b", 5, 5)])[0]!, /^no longer asserted: c5/)
    const [before, after] = (["pass", "deferred"] as const).map((one) =>
      reportOf("r", [{ outcomes: [["judge", one]] }])
    )
    assert.match(between([before!], [after!])[0]!, /^no longer decided/)
    assert.deepStrictEqual(between([after!], [after!]), [])
  })

  it("takes one bad try of many for noise, and a fall to nothing or a significant worsening for what it is", () => {
    assert.deepStrictEqual(between([many("a", 6), many("a", 6)], [many("b", 5), many("b", 6)]), [])
    assert.match(
      between([many("a", 6), many("a", 6)], [many("b", 5), many("b", 5)])[0]!,
      /^always passed before, never now: c5/
    )
    const half = [many("b", 10), many("b", 2)]
    assert.match(
      between([many("a", 10), many("a", 10)], half)[0]!,
      /^8 conversations are worse and 0 better \(p = 0\.0078\)/
    )
  })
})

describe("comparisons in Markdown", () => {
  it("show both sides, all changes and the gate, and keep text text", () => {
    const found = compare([twice("fail", "pass")], [twice("pass", "fail")], { a: "old | <b>", b: "new" })
    const text = comparisonMarkdown(found, ["regressed: a/default #1 must_call_tool"])
    assert.include(text, "old \\| &lt;b>".replace(">", "\\>"))
    assert.include(text, "| 1 | 1 | 0 | 0 |")
    assert.include(text, "Gate: **shut**")
    assert.include(text, "## Regressed\n\n| assertion | old")
    assert.include(text, "a / default #1 must\\_call\\_tool | 1/1 | 0/1")
  })

  it("show runs with cost and latency, classes with intervals, and the flaky by name", () => {
    const metrics = {
      total_input_tokens: 11,
      total_output_tokens: 22,
      total_cache_hit_tokens: 0,
      total_latency_ms: 33,
      conversations_with_trace: 1
    }
    const text = repeatsMarkdown(Repeats.of([{ ...many("r1", 9), metrics }, many("r2", 10)]))
    assert.include(text, "| r1 |  | 10 | 9/10 | 90.0 % | 60–98 % | 11 | 22 | 33 |")
    assert.include(text, "| r2 |  | 10 | 10/10 | 100.0 % | 72–100 % | – | – | – |")
    assert.include(text, "| c9 / c9 #0 text\\_contains | 1/2 | 50.0 % | 9–91 % | fail, pass |")
    assert.include(text, "## Never passed\n\nNone.")
  })
})
