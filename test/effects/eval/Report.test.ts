/** The report as JSON: its exact form, and reading those of older versions. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { evaluate } from "../../../src/effects/eval/Evaluation.ts"
import * as Report from "../../../src/effects/eval/Report.ts"
import { nowhere, ran, reportOf, sumsOf, talk } from "../../kit/evals.ts"

const evaluated = evaluate(
  {
    name: "checks",
    cases: [
      {
        name: "sum",
        assertions: [
          { type: "text_contains", value: "5" },
          { type: "text_contains", value: "6" }
        ]
      },
      { assertions: [{ type: "calls_answered" }] }
    ]
  },
  [
    { name: "sum", conversation: ran },
    {
      name: "hand",
      conversation: {
        ...talk([
          { role: "user", content: "?" },
          { role: "assistant", content: "x" }
        ]),
        meta: { model: "other" }
      }
    }
  ],
  nowhere
)

describe("the report", () => {
  it.effect("has this form", () =>
    Effect.gen(function* () {
      const report = Report.of(yield* evaluated, "2026-11-30T12-00-00Z-abc123-sum", "2026-11-30T12:34:56.789Z")
      assert.deepStrictEqual(JSON.parse(Report.emit(report)), {
        suite: "checks",
        run_id: "2026-11-30T12-00-00Z-abc123-sum",
        timestamp: "2026-11-30T12:34:56.789Z",
        metrics: {
          total_input_tokens: 20,
          total_output_tokens: 10,
          total_cache_hit_tokens: 0,
          total_latency_ms: 40,
          conversations_with_trace: 1
        },
        totals: {
          conversations_matched: 2,
          assertions: { passed: 3, failed: 1, deferred: 0, malformed: 0, errored: 0 }
        },
        per_class: {
          calls_answered: { passed: 2, failed: 0, deferred: 0, malformed: 0, errored: 0 },
          text_contains: { passed: 1, failed: 1, deferred: 0, malformed: 0, errored: 0 }
        },
        cases: [
          {
            name: "sum",
            matches: [
              {
                conversation: "sum",
                assertions: [
                  { class: "text_contains", outcome: "pass" },
                  {
                    class: "text_contains",
                    outcome: "fail",
                    reason: '"6" is not in it: the final answer is "It is 5."'
                  }
                ]
              }
            ]
          },
          {
            matches: [
              { conversation: "sum", assertions: [{ class: "calls_answered", outcome: "pass" }] },
              { conversation: "hand", assertions: [{ class: "calls_answered", outcome: "pass" }] }
            ]
          }
        ]
      })
      assert.deepStrictEqual(sumsOf(report), [])
    })
  )

  it.effect("names the model where there is one, and gives no figures where nothing was measured", () =>
    Effect.gen(function* () {
      const found = yield* evaluated
      const one = Report.of({ ...found, conversations: found.conversations.slice(1) }, "r", "")
      assert.strictEqual(one.model, "other")
      assert.isUndefined(one.metrics)
    })
  )

  it("is read as it was written", () => {
    const report = reportOf("r", [
      {
        case: "a",
        outcomes: [
          ["judge", "deferred"],
          ["tokens", "pass"]
        ]
      }
    ])
    assert.deepStrictEqual(Result.getOrThrow(Report.parse(Report.emit(report))), report)
  })

  it("of an older or a newer version is read too", () => {
    const old = {
      suite: "s",
      run_id: "r",
      totals: { conversations_matched: 1, assertions: { passed: 1, failed: 0 } },
      per_class: { x: { passed: 1 } },
      metrics: { total_input_tokens: 3 },
      cases: [{ matches: [] }],
      later: true
    }
    const read = Result.getOrThrow(Report.parse(JSON.stringify(old)))
    assert.deepStrictEqual(read.totals.assertions, { passed: 1, failed: 0, deferred: 0, malformed: 0, errored: 0 })
    assert.strictEqual(read.per_class["x"]!.passed, 1)
    assert.strictEqual(read.metrics!.total_input_tokens, 3)
    assert.strictEqual(read.timestamp, "")
  })

  for (const [claim, text] of [
    ["no JSON", "{"],
    ["a list", "[]"],
    ["something else", '{"a":1}'],
    ["a number that is none", '{"suite":"s","run_id":"r","totals":{"conversations_matched":-1}}']
  ] as const) {
    it(`refuses ${claim}`, () => {
      assert.isTrue(Result.isFailure(Report.parse(text)))
    })
  }
})
