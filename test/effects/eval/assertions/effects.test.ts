/** Assertions about effects: read from the record in the turns, never from the proposals. Without a record nothing passes. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Conversation } from "../../../../src/effects/conversation/Conversation.ts"
import type { Assertion } from "../../../../src/effects/eval/assertions/Kinds.ts"
import {
  answers,
  assistant,
  blank,
  decide,
  event,
  ran,
  result,
  settled,
  talk,
  trace,
  use,
  user
} from "../../../kit/evals.ts"

const sha = "a".repeat(64)
const written = event("artifact_written", {
  id: "c1",
  tool: "write_artifact",
  sha256: sha,
  name: "report.md",
  bytes: 3
})

/** One call of a tool with this record and this answer. */
const called = (
  record: ReadonlyArray<ReturnType<typeof event>>,
  ...results: ReadonlyArray<ReturnType<typeof result>>
) =>
  talk([
    user("Do it."),
    assistant([use("c1", "pay", { amount: 3 })], trace(record)),
    ...(results.length === 0 ? [] : [answers(...results)]),
    assistant("Done.", trace([event("run_ended", { state: "completed" })]))
  ])

const paid = called([settled("c1", "pay", { effect: "present" })], result("c1"))
const refused = called(
  [settled("c1", "pay", { outcome: "refused", class: "authorization", executed: false })],
  result("c1", "no", true)
)
const refusedSoftly = called([settled("c1", "pay", { outcome: "refused", executed: false })], result("c1", "no"))
const broken = called(
  [settled("c1", "pay", { outcome: "execution_failed", class: "postcondition" })],
  result("c1", "no", true)
)
const unsure = called([settled("c1", "pay", { effect: "unknown" })], result("c1"))
const unanswered = called([settled("c1", "pay", { effect: "present" })])
/** Two turns whose calls have one id, as models that count their calls anew each turn give them: done, then refused. */
const sameIds = talk([
  user("Do it."),
  assistant([use("c1", "pay", { amount: 3 })], trace([settled("c1", "pay", { effect: "present" })])),
  answers(result("c1", "no receipt", true)),
  assistant(
    [use("c1", "pay", { amount: 4 })],
    trace([settled("c1", "pay", { outcome: "refused", class: "authorization", executed: false })])
  ),
  answers(result("c1", "not allowed", true)),
  assistant([use("c1", "look")], trace([settled("c1", "look")])),
  answers(result("c1")),
  assistant("Done.", trace([event("run_ended", { state: "completed" })]))
])
/** As written by hand: the right messages, and no record of a run. */
const byHand = talk([user("?"), assistant([use("c1", "pay")]), answers(result("c1")), assistant("Done.")])

const table: ReadonlyArray<readonly [claim: string, Assertion, Conversation, outcome: string, reason?: RegExp]> = [
  ["it ran", { type: "tool_executed", tool: "pay" }, paid, "pass"],
  ["it ran with these arguments", { type: "tool_executed", tool: "pay", with_args: { amount: 3 } }, paid, "pass"],
  ["it ran with others", { type: "tool_executed", tool: "pay", with_args: { amount: 4 } }, paid, "fail", /never with/],
  [
    "it was refused",
    { type: "tool_executed", tool: "pay" },
    refused,
    "fail",
    /pay not executed refused \(authorization\)/
  ],
  [
    "a call that ran does not lend its execution to another one of its id",
    { type: "tool_executed", tool: "pay", with_args: { amount: 4 } },
    sameIds,
    "fail",
    /never with/
  ],
  ["nor loses its arguments to it", { type: "tool_executed", tool: "pay", with_args: { amount: 3 } }, sameIds, "pass"],
  ["it ran and failed: it ran", { type: "tool_executed", tool: "pay" }, broken, "pass"],
  ["nothing recorded", { type: "tool_executed", tool: "pay" }, byHand, "fail", /no record of a run/],

  ["refused by class", { type: "tool_refused", class: "authorization" }, refused, "pass"],
  ["refused by kind", { type: "tool_refused", class: "refused", tool: "pay" }, refused, "pass"],
  ["refused for another reason", { type: "tool_refused", class: "schema" }, refused, "fail"],
  ["another tool was refused", { type: "tool_refused", class: "authorization", tool: "add" }, refused, "fail"],
  ["what ran and failed was not refused", { type: "tool_refused", class: "postcondition" }, broken, "fail"],
  ["nothing recorded", { type: "tool_refused", class: "authorization" }, byHand, "fail", /no record of a run/],

  ["ran and answered", { type: "tool_result_ok", tool: "pay" }, paid, "pass"],
  ["any tool", { type: "tool_result_ok" }, paid, "pass"],
  ["answered with an error", { type: "tool_result_ok", tool: "pay" }, broken, "fail"],
  ["not answered", { type: "tool_result_ok", tool: "pay" }, unanswered, "fail"],
  ["another call of its id was answered", { type: "tool_result_ok", tool: "pay" }, sameIds, "fail"],
  ["refused, and told so without the mark of an error", { type: "tool_result_ok" }, refusedSoftly, "fail"],
  ["an answer that nobody gave", { type: "tool_result_ok", tool: "pay" }, byHand, "fail"],

  ["an artifact", { type: "artifact_exists", sha256: sha }, called([written], result("c1")), "pass"],
  [
    "by its name too",
    { type: "artifact_exists", sha256: sha, name: "report.md" },
    called([written], result("c1")),
    "pass"
  ],
  [
    "of another name",
    { type: "artifact_exists", sha256: sha, name: "other.md" },
    called([written], result("c1")),
    "fail",
    /written: report\.md a{12}/
  ],
  ["of other content", { type: "artifact_exists", sha256: "b".repeat(64) }, called([written], result("c1")), "fail"],
  ["no artifact", { type: "artifact_exists", sha256: sha }, paid, "fail", /no artifact was written/],

  ["all effects are known and answered", { type: "no_uncommitted_effects" }, paid, "pass"],
  ["nothing happened, on the record", { type: "no_uncommitted_effects" }, refused, "pass"],
  [
    "an effect that nobody is sure of",
    { type: "no_uncommitted_effects" },
    unsure,
    "fail",
    /effect of pay \(c1\) is unknown/
  ],
  ["done and not answered", { type: "no_uncommitted_effects" }, unanswered, "fail", /is not in the conversation/],
  [
    "done and not answered, where another call of its id was",
    { type: "no_uncommitted_effects" },
    talk([
      ...paid.session.slice(0, 3),
      assistant([use("c1", "pay")], trace([settled("c1", "pay", { effect: "present" })])),
      assistant("Done.", trace([event("run_ended", { state: "completed" })]))
    ]),
    "fail",
    /is not in the conversation/
  ],
  ["no record, no knowledge", { type: "no_uncommitted_effects" }, byHand, "fail", /no record of a run/],
  ["not finished", { type: "no_uncommitted_effects" }, talk([...paid.session, user("?"), blank]), "fail"],

  ["each call has one result", { type: "calls_answered" }, ran, "pass"],
  ["also where nobody kept a record", { type: "calls_answered" }, byHand, "pass"],
  ["a call without a result", { type: "calls_answered" }, unanswered, "fail", /c1 has no result/],
  ["two results", { type: "calls_answered" }, called([], result("c1"), result("c1")), "fail", /more than once/],
  ["a result without a call", { type: "calls_answered" }, called([], result("c1"), result("c9")), "fail", /answers c9/],
  [
    "a call at the end",
    { type: "calls_answered" },
    talk([user("?"), assistant([use("c1", "pay")])]),
    "fail",
    /c1 has no result/
  ],
  [
    "two calls of one id",
    { type: "calls_answered" },
    talk([user("?"), assistant([use("c1", "a"), use("c1", "b")]), answers(result("c1")), assistant("x")]),
    "fail",
    /same id/
  ],
  [
    "an answer to an earlier turn",
    { type: "calls_answered" },
    talk([
      user("?"),
      assistant([use("c1", "a")]),
      answers(result("c1")),
      assistant("x"),
      answers(result("c1")),
      assistant("y")
    ]),
    "fail",
    /no call of the turn before/
  ],
  [
    "results that nothing follows",
    { type: "calls_answered" },
    talk([user("?"), assistant([use("c1", "a")]), answers(result("c1"))]),
    "fail",
    /nothing follows its last results/
  ],
  ["nothing filled", { type: "calls_answered" }, talk([user("?"), blank]), "fail", /message 1 is blank/],

  ["how it ended", { type: "terminal_state", state: "completed" }, paid, "pass"],
  ["how it did not end", { type: "terminal_state", state: "limit" }, paid, "fail", /ended as completed, wanted limit/],
  [
    "the last end counts",
    { type: "terminal_state", state: "completed" },
    talk([
      ...ran.session,
      user("?"),
      assistant("x", trace([event("run_ended", { state: "limit", reason: "model_turns" })]))
    ]),
    "fail",
    /limit \(model_turns\)/
  ],
  ["no end on record", { type: "terminal_state", state: "completed" }, byHand, "fail", /no record/]
]

describe("assertions about effects", () => {
  for (const [claim, assertion, conversation, outcome, reason] of table) {
    it.effect(`${assertion.type}: ${claim} (${outcome})`, () =>
      Effect.gen(function* () {
        const verdict = yield* decide(assertion, conversation)
        assert.strictEqual(verdict.outcome, outcome, verdict.reason)
        if (reason !== undefined) assert.match(verdict.reason!, reason)
      })
    )
  }
})
