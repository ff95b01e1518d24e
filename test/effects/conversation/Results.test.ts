/** What a model was told and what the file says are the same thing, there and back. */
import { assert, it } from "@effect/vitest"
import * as fc from "fast-check"
import type { Message, TurnTrace } from "../../../src/effects/conversation/Conversation.ts"
import { turnEvents } from "../../../src/effects/conversation/Conversation.ts"
import { answerIn, toldAs } from "../../../src/effects/conversation/Results.ts"
import { type Answer, answerText, failureKinds } from "../../../src/tools/ToolCall.ts"

const turnWith = (attributes: TurnTrace["events"][number]["attributes"]): Message => ({
  role: "assistant",
  content: [],
  trace: {
    span_id: "s",
    model: "m",
    tokens: { input: 0, output: 0 },
    latency_ms: 0,
    events: [{ name: turnEvents.call, attributes: { ...attributes, id: "x" } }]
  }
})

const text = fc.oneof(fc.string(), fc.constantFrom("5", "true", "null", "[1]", '{"ok":true,"result":1}', '"', "  "))

const failure = fc.record(
  {
    ok: fc.constant(false as const),
    kind: fc.constantFrom(...failureKinds),
    errors: fc.array(fc.record({ path: fc.constantFrom("", "a.b"), reason: text }), { maxLength: 3 }),
    retry_hint: text
  },
  { requiredKeys: ["ok", "kind", "errors"] }
)

const success = fc.record({ ok: fc.constant(true as const), result: fc.oneof(text, fc.jsonValue()) })

it("every answer comes back from its block and its event as the text it was told as", () => {
  fc.assert(
    fc.property(fc.oneof(success, failure), (answer) => {
      const told = answerText(answer as Answer)
      const { attributes, block } = toldAs("x", told)
      assert.strictEqual(answerText(answerIn(block, turnWith(attributes))), told)
      assert.strictEqual(block.is_error === true, !answer.ok)
    }),
    { numRuns: 500 }
  )
})

it("a result in words is those words, and one that is not text is its JSON", () => {
  assert.deepStrictEqual(toldAs("x", '{"ok":true,"result":"5"}').block.content, "5")
  assert.deepStrictEqual(toldAs("x", '{"ok":true,"result":{"a":[1,"b"]}}').block.content, '{"a":[1,"b"]}')
})

it("without a trace a block is what it says: text is never read as something else", () => {
  const written: Message = { role: "assistant", content: [] }
  assert.deepStrictEqual(answerIn({ type: "tool_result", tool_use_id: "x", content: "5" }, written), {
    ok: true,
    result: "5"
  })
  assert.deepStrictEqual(answerIn({ type: "tool_result", tool_use_id: "x", content: "no", is_error: true }, written), {
    ok: false,
    kind: "execution_failed",
    errors: [{ path: "", reason: "no" }]
  })
})
