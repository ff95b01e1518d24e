/** Assertions about proposed calls: each kind with what passes, what fails and what cannot be asked. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Conversation } from "../../../../src/effects/conversation/Conversation.ts"
import type { Assertion } from "../../../../src/effects/eval/assertions/Kinds.ts"
import { answers, assistant, blank, decide, ran, result, settled, talk, trace, use, user } from "../../../kit/evals.ts"

const two: Conversation = talk([
  user("Look it up."),
  assistant([use("c1", "web_search", { query: "pi", opts: { lang: "en", tags: ["a", "b"] } })]),
  answers(result("c1")),
  assistant([use("c2", "log"), use("c3", "web_fetch", { url: "https://example.org" })]),
  answers(result("c2"), result("c3")),
  assistant("Done.")
])
const unfilled = talk([user("Hello"), blank])
const halfway = talk([user("Hello"), assistant("Hi."), user("And?"), blank])
const silent = talk([user("Hello"), assistant("Hi.")])
/** What a run leaves that was killed while a call ran, or before the turn after it. */
const stoppedInCall = talk([user("Hello"), assistant([use("c1", "log")])])
const stoppedBehindIt = talk([user("Hello"), assistant([use("c1", "log")]), answers(result("c1"))])

const table: ReadonlyArray<readonly [claim: string, Assertion, Conversation, outcome: string, reason?: RegExp]> = [
  ["a call of the name", { type: "must_call_tool", tool: "web_search" }, two, "pass"],
  [
    "no call of the name: says which there were",
    { type: "must_call_tool", tool: "add" },
    two,
    "fail",
    /called: web_search, log, web_fetch/
  ],
  ["no call at all", { type: "must_call_tool", tool: "add" }, silent, "fail", /no tool was called/],
  ["an unfilled conversation", { type: "must_call_tool", tool: "add" }, unfilled, "fail", /message 1 is blank/],
  [
    "part of the arguments, at every depth",
    { type: "must_call_tool", tool: "web_search", with_args: { opts: { lang: "en" } } },
    two,
    "pass"
  ],
  [
    "a list is compared as a whole",
    { type: "must_call_tool", tool: "web_search", with_args: { opts: { tags: ["a"] } } },
    two,
    "fail",
    /never with/
  ],
  ["a scalar is not what looks like it", { type: "must_call_tool", tool: "add", with_args: { a: "2" } }, ran, "fail"],
  ["a key that is nobody's own", { type: "must_call_tool", tool: "add", with_args: { constructor: {} } }, ran, "fail"],

  ["no such call in what is finished", { type: "must_not_call_tool", tool: "auto_approve" }, two, "pass"],
  [
    "the first such call by its place",
    { type: "must_not_call_tool", tool: "web_fetch" },
    two,
    "fail",
    /call 2 .*message 3/
  ],
  [
    "what is not filled has refrained from nothing",
    { type: "must_not_call_tool", tool: "add" },
    unfilled,
    "fail",
    /not finished/
  ],
  ["nor what is filled in part", { type: "must_not_call_tool", tool: "add" }, halfway, "fail", /message 3 is blank/],
  [
    "nor what stopped in the middle of a call",
    { type: "must_not_call_tool", tool: "add" },
    stoppedInCall,
    "fail",
    /not finished: log \(c1\) of message 1 has no result/
  ],
  [
    "nor what stopped behind the results of a call",
    { type: "must_not_call_tool", tool: "add" },
    stoppedBehindIt,
    "fail",
    /nothing follows its last results/
  ],

  ["as many calls", { type: "tool_call_count", op: "==", value: 3 }, two, "pass"],
  ["as many of one tool", { type: "tool_call_count", tool: "log", op: "<=", value: 1 }, two, "pass"],
  ["none, where that is finished", { type: "tool_call_count", op: "==", value: 0 }, silent, "pass"],
  [
    "none so far is not none",
    { type: "tool_call_count", op: "==", value: 0 },
    unfilled,
    "fail",
    /cannot be counted yet/
  ],
  [
    "calls of a run that stopped behind one",
    { type: "tool_call_count", op: "<=", value: 1 },
    stoppedBehindIt,
    "fail",
    /cannot be counted yet/
  ],
  ["more than were made", { type: "tool_call_count", op: ">", value: 3 }, two, "fail", /3 calls, wanted > 3/],
  ["not so many", { type: "tool_call_count", op: "!=", value: 3 }, two, "fail"],
  ["at least", { type: "tool_call_count", op: ">=", value: 3 }, two, "pass"],
  ["fewer", { type: "tool_call_count", op: "<", value: 3 }, two, "fail"],

  ["in order, with others between", { type: "tool_call_order", sequence: ["web_search", "web_fetch"] }, two, "pass"],
  [
    "in the other order",
    { type: "tool_call_order", sequence: ["web_fetch", "web_search"] },
    two,
    "fail",
    /web_search does not come after web_fetch/
  ],
  ["one call is not two", { type: "tool_call_order", sequence: ["log", "log"] }, two, "fail"],
  ["an empty sequence asks for nothing", { type: "tool_call_order", sequence: [] }, two, "malformed"],

  ["a collection in any order", { type: "tool_call_collection", tools: ["web_fetch", "web_search"] }, two, "pass"],
  ["a collection counts", { type: "tool_call_collection", tools: ["log", "log"] }, two, "fail", /missing: log/],
  [
    "an exact collection has no others",
    { type: "tool_call_collection", tools: ["web_fetch", "web_search"], exact: true },
    two,
    "fail",
    /more often than listed: log/
  ],
  [
    "an exact collection",
    { type: "tool_call_collection", tools: ["log", "web_fetch", "web_search"], exact: true },
    two,
    "pass"
  ],
  ["exactly nothing so far is not nothing", { type: "tool_call_collection", tools: [], exact: true }, unfilled, "fail"],
  ["an empty collection asks for nothing", { type: "tool_call_collection", tools: [] }, two, "malformed"]
]

describe("assertions about proposed calls", () => {
  for (const [claim, assertion, conversation, outcome, reason] of table) {
    it.effect(`${assertion.type}: ${claim} (${outcome})`, () =>
      Effect.gen(function* () {
        const verdict = yield* decide(assertion, conversation)
        assert.strictEqual(verdict.outcome, outcome, verdict.reason)
        if (reason !== undefined) assert.match(verdict.reason!, reason)
      })
    )
  }

  it.effect("counts a proposal that was refused, which tool_executed does not", () =>
    Effect.gen(function* () {
      const refused = talk([
        user("Search."),
        assistant(
          [use("c1", "web_search", { query: "" })],
          trace([settled("c1", "web_search", { outcome: "invalid_arguments", class: "schema", executed: false })])
        ),
        answers(result("c1", "no", true)),
        assistant("I could not.")
      ])
      const proposed = yield* decide({ type: "must_call_tool", tool: "web_search" }, refused)
      const executed = yield* decide({ type: "tool_executed", tool: "web_search" }, refused)
      assert.strictEqual(proposed.outcome, "pass")
      assert.strictEqual(executed.outcome, "fail")
      assert.match(executed.reason!, /web_search not executed invalid_arguments \(schema\)/)
    })
  )
})
