/** A suite over conversations: which case is about which, every outcome, sums that agree, and no pass that means nothing. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Assertion } from "../../../src/effects/eval/assertions/Kinds.ts"
import { kinds } from "../../../src/effects/eval/assertions/Kinds.ts"
import { type EvaluationOptions, evaluate } from "../../../src/effects/eval/Evaluation.ts"
import type { Named } from "../../../src/effects/eval/Matching.ts"
import * as Report from "../../../src/effects/eval/Report.ts"
import type { Case } from "../../../src/effects/eval/Suite.ts"
import { outcomes } from "../../../src/effects/eval/Verdict.ts"
import { assistant, blank, decide, nowhere, ran, scriptedJudge, sumsOf, talk, user } from "../../kit/evals.ts"

const fine: Assertion = { type: "calls_answered" }

const named = (name: string, binding?: Readonly<Record<string, string>>): Named => ({
  name,
  conversation: talk(ran.session, binding)
})

const all = [named("a", { tone: "plain", size: "s" }), named("b", { tone: "plain" }), named("c")]

const over = (cases: ReadonlyArray<Case>, conversations = all, options?: EvaluationOptions) =>
  Effect.map(evaluate({ name: "s", cases }, conversations, nowhere, options), (evaluated) => ({
    evaluated,
    report: Report.of(evaluated, "r", "2026-11-30T00:00:00.000Z"),
    matched: evaluated.cases.map(({ matches }) => matches.map(({ conversation }) => conversation).join(""))
  }))

describe("which conversations a case is about", () => {
  it.effect("by name, by part of the binding, or all; each distinct file counts once", () =>
    Effect.gen(function* () {
      const { matched, report } = yield* over([
        { name: "b", assertions: [fine] },
        { when: { tone: "plain" }, assertions: [fine] },
        { when: { tone: "plain", size: "s" }, assertions: [fine] },
        { assertions: [fine] }
      ])
      assert.deepStrictEqual(matched, ["b", "ab", "a", "abc"])
      assert.strictEqual(report.totals.conversations_matched, 3)
      assert.strictEqual(report.totals.assertions.passed, 7)
    })
  )

  it.effect("a name without a file is one malformed of its own class, and no conversation", () =>
    Effect.gen(function* () {
      const { report } = yield* over([{ name: "nobody", assertions: [fine, fine] }])
      assert.deepStrictEqual(report.per_class, {
        missing_conversation: { passed: 0, failed: 0, deferred: 0, malformed: 1, errored: 0 }
      })
      assert.strictEqual(report.totals.conversations_matched, 0)
      assert.strictEqual(report.cases[0]!.matches[0]!.conversation, "nobody")
    })
  )

  it.effect("a binding that nobody has matches nothing, and says so", () =>
    Effect.gen(function* () {
      const { evaluated, matched } = yield* over([
        { when: { tone: "loud" }, assertions: [fine] },
        { when: { toString: "x" }, assertions: [fine] },
        { name: "c", when: { tone: "plain" }, assertions: [fine] }
      ])
      assert.deepStrictEqual(matched, ["", "", ""])
      assert.strictEqual(evaluated.cases[0]!.unmatched, "no binding has tone: loud")
      assert.isTrue(Report.isRed(Report.of(evaluated, "r", ""), false))
    })
  )
})

describe("an evaluation", () => {
  const five: ReadonlyArray<Assertion> = [
    { type: "text_contains", value: "5" },
    { type: "text_contains", value: "6" },
    { type: "text_semantic_match", value: "five" },
    { type: "text_matches", pattern: "(" },
    { type: "text_matches", pattern: "^(.|[^x])*y$" }
  ]

  it.effect("has all five outcomes, kept apart, with sums that agree", () =>
    Effect.gen(function* () {
      const long = { name: "long", conversation: talk([user("?"), assistant(`5${"-".repeat(60)}`)]) }
      const { report } = yield* over([{ assertions: five }], [long])
      assert.deepStrictEqual(
        report.cases[0]!.matches[0]!.assertions.map(({ outcome }) => outcome),
        [...outcomes]
      )
      assert.deepStrictEqual(sumsOf(report), [])
      assert.isTrue(
        report.cases[0]!.matches[0]!.assertions.every(({ outcome, reason }) => outcome === "pass" || reason !== "")
      )
    })
  )

  it.effect("that decides nothing is no pass: visible always, and red where that is asked for", () =>
    Effect.gen(function* () {
      const { report } = yield* over([{ assertions: [{ type: "judge", prompt: "Is it?" }] }])
      assert.deepStrictEqual(report.totals.assertions, { passed: 0, failed: 0, deferred: 3, malformed: 0, errored: 0 })
      assert.isFalse(Report.isRed(report))
      assert.isTrue(Report.isRed(report, true))
    })
  )

  it.effect("a script that was deferred is red without being asked", () =>
    Effect.gen(function* () {
      const script: Assertion = { type: "program", script: { contents: "#!/bin/sh\n" } }
      const { report } = yield* over([{ assertions: [fine, script] }])
      assert.strictEqual(report.totals.assertions.deferred, 3)
      assert.isTrue(Report.isRed(report))
    })
  )

  it.effect("no kind passes on a conversation that nobody has filled", () =>
    Effect.gen(function* () {
      const likely: Readonly<Record<string, Assertion>> = {
        must_not_call_tool: { type: "must_not_call_tool", tool: "x" },
        tool_call_count: { type: "tool_call_count", op: "==", value: 0 },
        tool_call_collection: { type: "tool_call_collection", tools: [], exact: true },
        text_not_contains: { type: "text_not_contains", value: "x" },
        response_field: { type: "response_field", path: "$.x", exists: false },
        tokens: { type: "tokens", metric: "total", op: "<=", value: 0 },
        latency_ms: { type: "latency_ms", op: "<=", value: 0 },
        text_matches: { type: "text_matches", pattern: "^$" },
        text_equals: { type: "text_equals", value: "" },
        no_uncommitted_effects: { type: "no_uncommitted_effects" },
        calls_answered: { type: "calls_answered" },
        judge: { type: "judge", prompt: "Is it?" },
        text_contains: { type: "text_contains", value: "x" },
        text_semantic_match: { type: "text_semantic_match", value: "x" },
        json_path: { type: "json_path", path: "$.session[1].content", op: "!=", value: "x" },
        must_call_tool: { type: "must_call_tool", tool: "x" },
        tool_call_order: { type: "tool_call_order", sequence: ["x"] },
        tool: { type: "tool", tool_call: { tool: "calculate" } },
        script: { type: "script", runtime: "node", script: { contents: "process.exit(0)" } },
        program: { type: "program", script: { contents: "#!/bin/sh\n" } },
        tool_executed: { type: "tool_executed", tool: "x" },
        tool_refused: { type: "tool_refused", class: "schema" },
        tool_result_ok: { type: "tool_result_ok" },
        artifact_exists: { type: "artifact_exists", sha256: "0".repeat(64) },
        terminal_state: { type: "terminal_state", state: "completed" }
      }
      assert.deepStrictEqual(Object.keys(likely).sort(), kinds.map(({ type }) => type).sort())
      const around = { ...nowhere, judge: scriptedJudge(["GRADE: P"]) }
      for (const assertion of Object.values(likely)) {
        const verdict = yield* decide(assertion, talk([user("?"), blank]), around)
        assert.notStrictEqual(verdict.outcome, "pass", assertion.type)
      }
    })
  )

  it.effect.prop(
    "sums agree and order does not depend on how much happens at a time",
    [
      Schema.Array(Schema.Literals(["a", "b", "c", "x"])).check(Schema.isBetweenLength(1, 6)),
      Schema.Array(Schema.Literals([0, 1, 2, 3])).check(Schema.isBetweenLength(1, 6)),
      Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 5 }))
    ],
    ([names, chosen, concurrency]) =>
      Effect.gen(function* () {
        const assertions = chosen.map((at) => five[at]!)
        const cases = names.map((name, index): Case => (index % 2 === 0 ? { name, assertions } : { assertions }))
        const one = yield* over(cases, all, { concurrency: 1 })
        const many = yield* over(cases, all, { concurrency })
        assert.deepStrictEqual(sumsOf(one.report), [])
        assert.deepStrictEqual(many.report, one.report)
      })
  )

  it.effect("tells of its progress, up to all of them", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      yield* over([{ assertions: [fine] }], all, { onProgress: (done, total) => seen.push(`${done}/${total}`) })
      assert.deepStrictEqual(seen, ["1/3", "2/3", "3/3"])
    })
  )
})
