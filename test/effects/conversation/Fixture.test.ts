/** The scripted pair: what the engine says in order, what tools answer from their queues, and a file as its own script. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import type { Conversation, TurnTrace } from "../../../src/effects/conversation/Conversation.ts"
import * as Fixture from "../../../src/effects/conversation/Fixture.ts"
import { addTool, blank, conversation, declared, fill, Home, shape, text, use, user } from "../../kit/fillings.ts"
import { call } from "../../kit/script.ts"

const task = user("What is 2 plus 3?")

const trace = (span_id: string): TurnTrace => ({
  span_id,
  model: "another",
  tokens: { input: 12, output: 3, cache_hit: 4 },
  latency_ms: 17.5,
  events: [{ name: "mine", attributes: { of: ["a", 1] } }]
})

const traces = ({ session }: Conversation) => session.flatMap((message) => message.trace ?? [])

const filled = <A, E>(name: string, body: () => Effect.Effect<A, E, Effect.Services<ReturnType<typeof fill>>>): void =>
  it.effect(name, () => Effect.provide(body(), Home.layer))

filled("noop says noop-0, noop-1 and so on without end, at no cost, the same each time", () =>
  Effect.gen(function* () {
    const file = conversation([], task, blank, user("and?"), blank, user("and?"), blank)
    const first = yield* fill({ conversation: file, engine: "auto" })
    const second = yield* fill({ conversation: file, engine: "auto" })
    assert.deepStrictEqual(
      first.conversation.session.flatMap(({ content, role }) => (role === "assistant" ? [content] : [])),
      ["noop-0", "noop-1", "noop-2"]
    )
    assert.deepStrictEqual(
      traces(first.conversation).map(({ latency_ms, span_id, tokens }) => [span_id, tokens, latency_ms]),
      [0, 1, 2].map((n) => [`noop-${n}`, { input: 0, output: 0 }, 0])
    )
    assert.strictEqual(text(second.conversation), text(first.conversation))
  })
)

filled("noop goes on counting where a file it has begun stopped", () =>
  Effect.gen(function* () {
    const first = yield* fill({ conversation: conversation([], task, blank), engine: "auto" })
    const more = { ...first.conversation, session: [...first.conversation.session, user("and?"), blank] }
    const second = yield* fill({ conversation: more, engine: "auto" })
    assert.strictEqual(second.conversation.session.at(-1)?.content, "noop-1")
  })
)

filled(
  "replies are taken in order whatever was asked, and what a script says of a turn goes into the file as it is",
  () =>
    Effect.gen(function* () {
      const blocks = [
        { type: "thinking", thinking: "hm", signature: "sig" },
        { type: "text", text: "first" },
        { type: "text", text: "second" },
        use("add", { a: 2, b: 3 }, "toolu_1")
      ] as const
      const { conversation: now } = yield* fill(
        {
          conversation: conversation([addTool], task, blank),
          engine: [
            { blocks, trace: trace("mine-1") },
            { text: "5", trace: trace("mine-2") }
          ]
        },
        { codec: "qwen3" }
      )
      assert.deepStrictEqual<unknown>(now.session[1]?.content, blocks)
      assert.deepStrictEqual(traces(now), [trace("mine-1"), trace("mine-2")])
      assert.deepStrictEqual(now.session[2]?.content, [{ type: "tool_result", tool_use_id: "toolu_1", content: "5" }])
    })
)

filled("past its end a script says which call had no reply, the same each time", () =>
  Effect.gen(function* () {
    const file = conversation([], task, blank, user("and?"), blank)
    const first = yield* fill({ conversation: file, engine: [{ text: "one" }] })
    const again = yield* fill({ conversation: first.conversation, engine: [{ text: "one" }] })
    for (const { stop } of [first, again]) {
      assert.include(JSON.stringify(stop), "call 1, counting from 0")
    }
    assert.strictEqual(again.conversation.session.at(-1)?.content, undefined)
  })
)

const queues = conversation([addTool, { ...addTool, name: "sum" }], task, blank)

const adds = (name: string) => use(name, { a: 1, b: 1 })

filled("calls of two tools take from two queues, and a third call of one with two is an error with its index", () =>
  Effect.gen(function* () {
    const results = { add: [{ content: "a0" }, { content: "a1" }], sum: [{ content: "s0" }, { content: "s1" }] }
    const engine = [
      { blocks: [adds("add"), adds("sum")] },
      { blocks: [adds("sum"), adds("add")] },
      { blocks: [adds("add")] },
      { text: "never" }
    ]
    const { conversation: now, scripted, stop } = yield* fill({ conversation: queues, engine }, { results })
    assert.deepStrictEqual(
      now.session.flatMap(({ content, role }) =>
        role === "tool" ? (content as ReadonlyArray<{ content: string }>).map((block) => block.content) : []
      ),
      ["a0", "s0", "s1", "a1"]
    )
    assert.strictEqual(scripted?.fault?.message, "tools.add: call 2, counting from 0, has no result: the script has 2")
    assert.strictEqual(stop?._tag, "Failed")
    // The call stays open: with a longer script the conversation goes on.
    assert.deepStrictEqual(shape(now).slice(-1), ["assistant(add)"])
    const more = yield* fill(
      { conversation: now, engine },
      { results: { ...results, add: [...results.add, { content: "a2" }] } }
    )
    assert.strictEqual(more.stop?._tag, "Completed")
    assert.deepStrictEqual(more.left, [])
  })
)

filled("a tool that a script does not name is an error that names it", () =>
  Effect.gen(function* () {
    const { scripted } = yield* fill(
      { conversation: queues, engine: [{ blocks: [adds("sum")] }] },
      { results: { add: [] } }
    )
    assert.include(scripted?.fault?.message, "tools.sum: call 0")
    assert.include(scripted?.fault?.message, "does not name it")
  })
)

filled("results can be errors, break, wait, and expect their arguments", () =>
  Effect.gen(function* () {
    const engine = [{ blocks: [adds("add"), adds("add"), adds("add")] }, { text: "ok" }]
    const running = yield* Effect.forkChild(
      fill(
        { conversation: queues, engine },
        {
          results: {
            add: [
              { content: "no such number", is_error: true },
              { throw: "out of memory" },
              { content: "2", delay_ms: 0, expect_input: { b: 1, a: 1 } }
            ]
          }
        }
      )
    )
    yield* TestClock.adjust("1 second")
    const { context, conversation: now } = yield* Fiber.join(running)
    assert.deepStrictEqual(
      ((now.session[2]?.content ?? []) as ReadonlyArray<{ content: string; is_error?: boolean }>).map((block) => [
        block.content,
        block.is_error ?? false
      ]),
      [
        ["no such number", true],
        ["the tool crashed: Error: out of memory", true],
        ["2", false]
      ]
    )
    assert.include(context, '{"ok":false,"kind":"execution_failed","errors":[{"path":"","reason":"no such number"}]}')
    assert.include(context, '"kind":"crashed"')
  })
)

filled("a call with other arguments than the script expects ends the run", () =>
  Effect.gen(function* () {
    const { scripted, stop } = yield* fill(
      { conversation: queues, engine: [{ blocks: [adds("add")] }, { text: "ok" }] },
      { results: { add: [{ content: "2", expect_input: { a: 1, b: 2 } }] } }
    )
    assert.strictEqual(scripted?.fault?.kind, "unexpected")
    assert.include(JSON.stringify(stop), 'expected with {\\"a\\":1,\\"b\\":2}')
  })
)

filled("what a script has and nobody needed is left", () =>
  Effect.gen(function* () {
    const { left } = yield* fill(
      { conversation: queues, engine: [{ blocks: [adds("add")] }, { text: "ok" }, { text: "more" }] },
      { results: { add: [{ content: "2" }, { content: "3" }], sum: [{ content: "1" }] } }
    )
    assert.deepStrictEqual(left, ["engine: 1", "tools.add: 1 result not used", "tools.sum: 1 result not used"])
  })
)

filled("a script's tools are checked as any: wrong arguments take no result from the queue", () =>
  Effect.gen(function* () {
    const { conversation: now, left } = yield* fill(
      {
        conversation: queues,
        engine: [{ blocks: [use("add", { a: "x", b: 1 })] }, { blocks: [adds("add")] }, { text: "2" }]
      },
      { results: { add: [{ content: "2" }], sum: [] } }
    )
    assert.deepStrictEqual(left, [])
    assert.deepStrictEqual([...Fixture.answered(now)], [["add", 1]])
    assert.strictEqual(Fixture.played(now), 3)
  })
)

const varied = Effect.gen(function* () {
  const { registry } = yield* Home
  return yield* fill({
    conversation: conversation(declared(registry, "add", "save", "send", "broken"), task, blank, user("More."), blank),
    engine: [
      { raw: "<tool_call>\n{broken\n</tool_call>" },
      { raw: `Let me see.\n${call("add", { a: 2, b: 3 })}` },
      {
        blocks: [
          use("save", { name: "a.txt", content: "abc" }),
          use("add", { a: 1, b: "x" }),
          use("send", { to: "ann" })
        ]
      },
      { text: "5, saved and sent" },
      { blocks: [use("broken", { how: "error" }), use("broken", { how: "defect" })] },
      { text: "It broke." }
    ]
  })
})

filled("L3: blanked and played again from a script made of itself, a file comes to the same bytes", () =>
  Effect.gen(function* () {
    const original = yield* varied
    const fixture = Fixture.fixtureOf(original.conversation, "itself")
    const skeleton = Fixture.blanked(original.conversation)
    assert.deepStrictEqual(shape(skeleton), ["user", "assistant()", "user", "assistant()"])
    const again = yield* fill({ conversation: skeleton, engine: fixture.engine }, { results: fixture.tools ?? {} })
    assert.strictEqual(text(again.conversation), text(original.conversation))
    assert.deepStrictEqual(again.left, [])
  })
)

filled("L4: playing a file again executes nothing: the tools that acted are not called", () =>
  Effect.gen(function* () {
    const original = yield* varied
    const before = [...original.performed]
    assert.isAbove(before.length, 0)
    const fixture = Fixture.fixtureOf(original.conversation, "itself")
    const again = yield* fill(
      { conversation: Fixture.blanked(original.conversation), engine: fixture.engine },
      { results: fixture.tools ?? {} }
    )
    assert.strictEqual(again.stop?._tag, "Completed")
    assert.deepStrictEqual(again.performed, before)
  })
)

it("replies that say nothing, or two things, or what no assistant says, are refused", () => {
  const refused = [
    [{}, "says nothing"],
    [{ text: "a", raw: "b" }, "text and raw"],
    [{ blocks: [use("add", {}, "x"), use("add", {}, "x")] }, "the id x"],
    [{ blocks: [{ type: "tool_result", tool_use_id: "x", content: "" }] }, "tool_result"]
  ] as const
  for (const [reply, words] of refused) assert.include(Fixture.replyProblem(reply as Fixture.Reply), words)
  assert.isUndefined(Fixture.replyProblem({ fault: { before: 0, kind: "lost" } }))
})
