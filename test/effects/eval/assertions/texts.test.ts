/** Assertions about the final answer, about the conversation as JSON, and about what the turns took. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Conversation } from "../../../../src/effects/conversation/Conversation.ts"
import type { Assertion } from "../../../../src/effects/eval/assertions/Kinds.ts"
import { bounded } from "../../../../src/effects/eval/Bounded.ts"
import type { Embedder } from "../../../../src/effects/eval/Embedder.ts"
import { EngineError } from "../../../../src/engine/EngineError.ts"
import { assistant, blank, decide, nowhere, ran, talk, use, user } from "../../../kit/evals.ts"

const answer = (text: string): Conversation => talk([user("?"), assistant(text)])
const blocks = talk([
  user("?"),
  assistant("An earlier answer."),
  user("?"),
  assistant([
    { type: "thinking", thinking: "hidden" },
    { type: "text", text: "one" },
    use("c", "three"),
    { type: "text", text: "two" }
  ]),
  user("?"),
  blank
])
const unfilled = talk([user("?"), blank])
const calling = talk([user("?"), assistant([use("c1", "add")])])
const json = answer('{"total": 5, "items": [{"id": 1}, {"id": 2}]}')

const table: ReadonlyArray<readonly [claim: string, Assertion, Conversation, outcome: string, reason?: RegExp]> = [
  ["in it", { type: "text_contains", value: "is 5" }, ran, "pass"],
  ["in an earlier answer only", { type: "text_contains", value: "earlier" }, blocks, "fail"],
  ["reasoning is no answer", { type: "text_contains", value: "hidden" }, blocks, "fail"],
  ["in other case", { type: "text_contains", value: "IT IS" }, ran, "fail", /"IT IS" is not in it: .*It is 5/],
  ["in any case", { type: "text_contains", value: "IT IS", case_sensitive: false }, ran, "pass"],
  ["nothing filled has a name", { type: "text_contains", value: "x" }, unfilled, "fail", /^no_filled_assistant/],
  ["an empty text is in every text", { type: "text_contains", value: "" }, ran, "malformed"],

  ["not in it", { type: "text_not_contains", value: "6" }, ran, "pass"],
  ["in it after all", { type: "text_not_contains", value: "5" }, ran, "fail"],
  ["in it in any case", { type: "text_not_contains", value: "it IS", case_sensitive: false }, ran, "fail"],
  ["nothing filled refrains from nothing", { type: "text_not_contains", value: "x" }, unfilled, "fail"],
  ["a turn of calls alone says nothing", { type: "text_not_contains", value: "x" }, calling, "fail", /^no_text/],
  ["an empty text", { type: "text_not_contains", value: "" }, ran, "malformed"],

  ["a pattern", { type: "text_matches", pattern: "is \\d+\\.$" }, ran, "pass"],
  ["a pattern with flags", { type: "text_matches", pattern: "IT", flags: "i" }, ran, "pass"],
  ["no match", { type: "text_matches", pattern: "^5" }, ran, "fail"],
  ["a bad pattern", { type: "text_matches", pattern: "(" }, ran, "malformed", /cannot be used/],
  ["bad flags", { type: "text_matches", pattern: "x", flags: "g" }, ran, "malformed"],
  ["an empty pattern", { type: "text_matches", pattern: "" }, ran, "malformed"],
  [
    "a pattern that would never end",
    { type: "text_matches", pattern: "^(a+)+$" },
    answer(`${"a".repeat(60)}!`),
    "errored",
    /longer than/
  ],

  [
    "one whose repeated part can be read in two ways",
    { type: "text_matches", pattern: "^(a|a)*$" },
    answer(`${"a".repeat(60)}!`),
    "errored"
  ],

  ["text blocks are joined by a line end", { type: "text_equals", value: "one\ntwo" }, blocks, "pass"],
  ["byte for byte", { type: "text_equals", value: "It is 5" }, ran, "fail", /differs from character 7 on/],
  ["composed is not decomposed", { type: "text_equals", value: "e\u0301" }, answer("\u00e9"), "fail"],

  [
    "a value of the conversation",
    { type: "json_path", path: "$.session[1].content[1].input.a", op: "==", value: 2 },
    ran,
    "pass"
  ],
  [
    "the view is meta and session, no more",
    { type: "json_path", path: "$.*", op: "==", value: { model: "noop" } },
    ran,
    "pass"
  ],
  [
    "a filter, and the first of many",
    { type: "json_path", path: "$.session[?@.role == 'assistant'].trace.tokens.output", op: ">=", value: 5 },
    ran,
    "pass"
  ],
  [
    "numbers in order",
    { type: "json_path", path: "$.session[3].trace.latency_ms", op: "<", value: 20 },
    ran,
    "fail",
    /is 20, wanted < 20/
  ],
  [
    "order of what is no number",
    { type: "json_path", path: "$.meta.model", op: "<", value: 3 },
    ran,
    "fail",
    /is no number/
  ],
  ["order wants a number", { type: "json_path", path: "$.meta", op: "<", value: "3" }, ran, "malformed"],
  [
    "nothing there is not even different",
    { type: "json_path", path: "$.nowhere", op: "!=", value: 1 },
    ran,
    "fail",
    /nothing is at/
  ],
  ["different", { type: "json_path", path: "$.meta.model", op: "!=", value: "gpt" }, ran, "pass"],
  [
    "deep equality",
    { type: "json_path", path: "$.session[1].content[1].input", op: "==", value: { b: 3, a: 2 } },
    ran,
    "pass"
  ],
  [
    "an object is more than a part of it",
    { type: "json_path", path: "$.session[1].content[1].input", op: "==", value: { a: 2 } },
    ran,
    "fail"
  ],
  [
    "a filter that asks the whole conversation anew at each place",
    { type: "json_path", path: "$.session[?$.session[?$.session[?@.role == 'nobody']]]", op: "==", value: 1 },
    talk(Array.from({ length: 600 }, () => user("x"))),
    "errored",
    /longer than/
  ],
  ["a bad path", { type: "json_path", path: "session[0]", op: "==", value: 1 }, ran, "malformed", /RFC 9535/],

  ["a field that is there", { type: "response_field", path: "$.items[1].id", exists: true }, json, "pass"],
  ["a field that is not", { type: "response_field", path: "$.items[2]", exists: true }, json, "fail"],
  ["a field that must not be", { type: "response_field", path: "$.error", exists: false }, json, "pass"],
  ["and is", { type: "response_field", path: "$.total", exists: false }, json, "fail"],
  [
    "what is no JSON has no fields, nor lacks any",
    { type: "response_field", path: "$.error", exists: false },
    ran,
    "fail",
    /not JSON/
  ],
  ["a bad path of an answer", { type: "response_field", path: "$[", exists: true }, json, "malformed"],

  ["all tokens", { type: "tokens", metric: "total", op: "==", value: 30 }, ran, "pass"],
  ["input tokens", { type: "tokens", metric: "input", op: "<=", value: 20 }, ran, "pass"],
  ["too many output tokens", { type: "tokens", metric: "output", op: "<", value: 10 }, ran, "fail", /10 output tokens/],
  [
    "what was not measured",
    { type: "tokens", metric: "total", op: "<=", value: 100 },
    json,
    "fail",
    /nothing was measured/
  ],
  ["latency", { type: "latency_ms", op: "<=", value: 40 }, ran, "pass"],
  ["too slow", { type: "latency_ms", op: "<", value: 40 }, ran, "fail", /40 ms/],
  ["no latency", { type: "latency_ms", op: "<", value: 40 }, json, "fail"],

  ["without an engine", { type: "text_semantic_match", value: "five" }, ran, "deferred"]
]

describe("assertions about texts, values and figures", () => {
  for (const [claim, assertion, conversation, outcome, reason] of table) {
    it.effect(`${assertion.type}: ${claim} (${outcome})`, () =>
      Effect.gen(function* () {
        const verdict = yield* decide(assertion, conversation)
        assert.strictEqual(verdict.outcome, outcome, verdict.reason)
        if (reason !== undefined) assert.match(verdict.reason!, reason)
      })
    )
  }

  const directions: Readonly<Record<string, ReadonlyArray<number>>> = {
    five: [1, 0],
    "It is 5.": [0.9, 0.1],
    zero: [0, 0]
  }
  const embedder: Embedder = {
    name: "directions",
    embed: (texts) => Effect.succeed(texts.map((text) => directions[text] ?? [0, 1]))
  }

  for (const [value, threshold, outcome] of [
    ["five", undefined, "pass"],
    ["five", 0.999, "fail"],
    ["else", undefined, "fail"],
    ["zero", undefined, "errored"],
    [" ", undefined, "malformed"]
  ] as const) {
    it.effect(
      `text_semantic_match: ${JSON.stringify(value)} at ${threshold ?? "the usual threshold"} (${outcome})`,
      () =>
        Effect.gen(function* () {
          const assertion: Assertion = {
            type: "text_semantic_match",
            value,
            ...(threshold === undefined ? {} : { threshold })
          }
          assert.strictEqual((yield* decide(assertion, ran, { ...nowhere, embedder })).outcome, outcome)
        })
    )
  }

  it.effect("text_semantic_match: an engine that fails is nobody's answer (errored)", () =>
    Effect.gen(function* () {
      const broken: Embedder = {
        name: "broken",
        embed: () => Effect.fail(new EngineError({ reason: "lost", message: "gone" }))
      }
      const verdict = yield* decide({ type: "text_semantic_match", value: "five" }, ran, {
        ...nowhere,
        embedder: broken
      })
      assert.deepStrictEqual(verdict, { outcome: "errored", reason: "broken: gone" })
    })
  )

  it("a computation that throws throws, and the next one is not touched by it", () => {
    assert.throws(() => bounded(() => JSON.parse("{")), SyntaxError)
    assert.strictEqual(bounded(() => 7)._tag, "Success")
  })

  it.effect("what a reason quotes is bounded and never half a pair", () =>
    Effect.gen(function* () {
      const long = answer("😀".repeat(5_000))
      const { reason } = yield* decide({ type: "text_contains", value: "x" }, long)
      assert.isBelow(reason!.length, 2_100)
      assert.isTrue(reason!.isWellFormed())
    })
  )
})
