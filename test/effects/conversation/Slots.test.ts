/** Where a conversation goes on, for every ending. */
import { assert, it } from "@effect/vitest"
import type { Message } from "../../../src/effects/conversation/Conversation.ts"
import { nextPlace, turnsIn } from "../../../src/effects/conversation/Slots.ts"
import { blank, user } from "../../kit/fillings.ts"

const says = (...ids: ReadonlyArray<string>): Message => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "add", input: {} }))
})
const answers = (...ids: ReadonlyArray<string>): Message => ({
  role: "tool",
  content: ids.map((id) => ({ type: "tool_result", tool_use_id: id, content: "" }))
})
const said: Message = { role: "assistant", content: "done" }
const u = user("?")

const places: ReadonlyArray<readonly [string, ReadonlyArray<Message>, ReturnType<typeof nextPlace>]> = [
  ["nothing", [], undefined],
  ["no slot", [u], undefined],
  ["a complete exchange", [u, says("a"), answers("a"), said], undefined],
  ["a blank slot", [u, blank], { _tag: "Blank", at: 1, chain: 1 }],
  ["the first of two slots", [u, blank, u, blank], { _tag: "Blank", at: 1, chain: 1 }],
  ["a slot behind an answer", [u, said, blank], { _tag: "Blank", at: 2, chain: 2 }],
  ["a slot behind results", [u, says("a"), answers("a"), blank], { _tag: "Blank", at: 3, chain: 1 }],
  [
    "a slot behind two tool turns",
    [u, says("a"), answers("a"), says("b"), answers("b"), blank],
    { _tag: "Blank", at: 5, chain: 1 }
  ],
  ["calls without an answer", [u, says("a")], { _tag: "Open", at: 1, chain: 1 }],
  ["fewer results than calls", [u, says("a", "b"), answers("a"), blank], { _tag: "Open", at: 1, chain: 1 }],
  ["calls in the middle", [u, says("a"), u, blank], { _tag: "Open", at: 1, chain: 1 }],
  ["calls of the second turn", [u, says("a"), answers("a"), says("b")], { _tag: "Open", at: 3, chain: 1 }],
  ["results and no slot", [u, says("a"), answers("a")], { _tag: "Missing", at: 3, chain: 1 }]
]

it.each(places)("%s", (_, messages, place) => {
  assert.deepStrictEqual(nextPlace(messages), place)
})

it("turns that were no call and no answer count as turns", () => {
  const events = [
    { name: "malformed_turn", attributes: {} },
    { name: "malformed_turn", attributes: {} }
  ]
  const trace = { span_id: "", model: "", tokens: { input: 0, output: 0 }, latency_ms: 0, events }
  assert.strictEqual(turnsIn([u, { ...said, trace }, says("a"), answers("a")], 0, 4), 4)
})
