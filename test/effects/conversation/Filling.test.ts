/** Filling: slots in order, tool turns in their place, limits, what the model is told, and what is saved when. */
import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import {
  type Conversation,
  callsOf,
  isBlank,
  type Message,
  turnEvents
} from "../../../src/effects/conversation/Conversation.ts"
import { ConversationError } from "../../../src/effects/conversation/ConversationError.ts"
import { validateText } from "../../../src/effects/trace/TraceValidator.ts"
import {
  addTool,
  blank,
  conversation,
  declared,
  fill,
  Home,
  type Services,
  shape,
  system,
  text,
  use,
  user
} from "../../kit/fillings.ts"
import { call } from "../../kit/script.ts"

const filled = <A, E>(name: string, body: () => Effect.Effect<A, E, Services>): void =>
  it.effect(name, () => Effect.provide(body(), Home.layer))

const messagesOf = ({ session }: Conversation) => session.map(({ trace: _, ...message }) => message)

const eventsOf = ({ session }: Conversation, at: number, name: string) =>
  (session[at]?.trace?.events ?? []).filter((event) => event.name === name).map(({ attributes }) => attributes)

const task = user("What is 2 plus 3?")
const adds = use("add", { a: 2, b: 3 })

filled("a tool turn comes right behind its slot, and one call gives user, assistant, tool, assistant", () =>
  Effect.gen(function* () {
    const { conversation: now, left } = yield* fill({
      conversation: conversation([addTool], task, blank),
      engine: [{ blocks: [adds] }, { text: "It is 5." }]
    })
    assert.deepStrictEqual(messagesOf(now), [
      task,
      { role: "assistant", content: [{ type: "tool_use", id: "call_1_0", name: "add", input: { a: 2, b: 3 } }] },
      { role: "tool", content: [{ type: "tool_result", tool_use_id: "call_1_0", content: "5" }] },
      { role: "assistant", content: "It is 5." }
    ])
    assert.deepStrictEqual(left, [])
  })
)

filled("(a) the tool turn of the first of two slots comes before the second user's message", () =>
  Effect.gen(function* () {
    const { conversation: now } = yield* fill({
      conversation: conversation([addTool], task, blank, user("And now?"), blank),
      engine: [{ blocks: [adds] }, { text: "5" }, { text: "still 5" }]
    })
    assert.deepStrictEqual(shape(now), ["user", "assistant(add)", "tool(1)", "assistant", "user", "assistant"])
  })
)

filled("each slot is told the messages before it and the declared tools, in the file's words, every time", () =>
  Effect.gen(function* () {
    const start = conversation([addTool], system("Be brief."), system("Be kind."), task, blank, user("Twice?"), blank)
    const { context, conversation: now } = yield* fill({
      conversation: start,
      engine: [{ blocks: [adds] }, { text: "5" }, { blocks: [use("add", { a: 5, b: 5 })] }, { text: "10" }]
    })
    // One session: what the model was shown is a prefix that only grew.
    const order = [
      "Be brief.\n\nBe kind.",
      "Adds two numbers, says the file.",
      "2 plus 3",
      '"a": 2',
      '"result":5',
      "\n5<",
      "Twice?",
      '"a": 5',
      '"result":10',
      "\n10<"
    ]
    let from = 0
    for (const part of order) {
      const at = context.indexOf(part, from)
      assert.isAtLeast(at, 0, `${part} after ${from} in\n${context}`)
      from = at + part.length
    }
    assert.strictEqual(context.split("# Tools").length, 2)
    assert.deepStrictEqual(
      messagesOf(now).filter(({ role }) => role !== "assistant" && role !== "tool"),
      messagesOf(start).filter(({ role }) => role !== "assistant")
    )
  })
)

filled("text and reasoning around calls keep their order, and the same tool may be called twice", () =>
  Effect.gen(function* () {
    const raw = `First this.\n${call("add", { a: 1, b: 1 })}\n${call("add", { a: 2, b: 2 })}\nThat is all.`
    const { conversation: now } = yield* fill({
      conversation: conversation([addTool], task, blank),
      engine: [{ raw }, { text: "2 and 4" }]
    })
    const blocks = now.session[1]!.content
    assert.isTrue(Array.isArray(blocks))
    assert.deepStrictEqual(
      (blocks as ReadonlyArray<{ type: string }>).map(({ type }) => type),
      ["text", "tool_use", "tool_use", "text"]
    )
    assert.deepStrictEqual(
      callsOf(now.session[1]!).map(({ id }) => id),
      ["call_1_0", "call_1_1"]
    )
    assert.deepStrictEqual(now.session[2]!.content, [
      { type: "tool_result", tool_use_id: "call_1_0", content: "2" },
      { type: "tool_result", tool_use_id: "call_1_1", content: "4" }
    ])
    assert.deepStrictEqual(eventsOf(now, 1, turnEvents.generated), [{ text: raw }])
  })
)

filled("a turn's own ids are kept, and one that stands twice is replaced", () =>
  Effect.gen(function* () {
    const reply = (id: string) =>
      `[TOOL_CALLS][{"name": "add", "arguments": {"a": 1, "b": 1}, "id": "${id}"}, {"name": "add", "arguments": {"a": 1, "b": 2}, "id": "abcdefghi"}]`
    const run = (raw: string) =>
      fill(
        { conversation: conversation([addTool], task, blank), engine: [{ raw }, { text: "2" }] },
        { codec: "mistral-7b-parallel" }
      )
    const twice = yield* run(reply("abcdefghi"))
    assert.deepStrictEqual(
      callsOf(twice.conversation.session[1]!).map(({ id }) => id),
      ["abcdefghi", "call_1_1"]
    )
  })
)

filled("(b) a call whose execution fails is answered, and the slot after it is there", () =>
  Effect.gen(function* () {
    const { registry } = yield* Home
    const { conversation: now } = yield* fill({
      conversation: conversation(declared(registry, "broken"), task, blank),
      engine: [{ blocks: [use("broken", { how: "defect" })] }, { text: "It broke." }]
    })
    assert.deepStrictEqual(shape(now), ["user", "assistant(broken)", "tool(1)", "assistant"])
    assert.deepStrictEqual(now.session[2]!.content, [
      {
        type: "tool_result",
        tool_use_id: "call_1_0",
        content: "the tool crashed: Error: a bug in the tool",
        is_error: true
      }
    ])
  })
)

filled("(b) when the engine fails after a tool turn, the file has the tool turn and a blank slot, and goes on", () =>
  Effect.gen(function* () {
    const broken = yield* fill({
      conversation: conversation([addTool], task, blank),
      engine: [{ blocks: [adds] }, { fault: { before: 0, kind: "lost" } }]
    })
    assert.strictEqual(broken.stop?._tag, "Failed")
    assert.deepStrictEqual(shape(broken.conversation), ["user", "assistant(add)", "tool(1)", "assistant()"])
    assert.deepStrictEqual(eventsOf(broken.conversation, 1, turnEvents.end), [{ state: "failed", reason: "engine" }])
    const whole = yield* fill({ conversation: broken.conversation, engine: [{ blocks: [adds] }, { text: "5" }] })
    assert.deepStrictEqual(shape(whole.conversation), ["user", "assistant(add)", "tool(1)", "assistant"])
    assert.deepStrictEqual(eventsOf(whole.conversation, 1, turnEvents.end), [])
    assert.deepStrictEqual(whole.performed, ['add:{"a":2,"b":3}'])
  })
)

filled(
  "(c) the second call's failure costs the first one nothing: its result is in the file before the second runs",
  () =>
    Effect.gen(function* () {
      const { registry } = yield* Home
      const { conversation: now, saved } = yield* fill({
        conversation: conversation(declared(registry, "save", "broken"), task, blank),
        engine: [
          { blocks: [use("save", { name: "a.txt", content: "abc" }), use("broken", { how: "error" })] },
          { text: "ok" }
        ]
      })
      const results = now.session[2]!.content as ReadonlyArray<{ is_error?: boolean; content: string }>
      assert.deepStrictEqual(
        results.map(({ content, is_error = false }) => [content, is_error]),
        [
          ['{"bytes":3}', false],
          ["it broke", true]
        ]
      )
      assert.deepStrictEqual(saved.map(shape).slice(0, 3), [
        ["user", "assistant(save,broken)"],
        ["user", "assistant(save,broken)", "tool(1)", "assistant()"],
        ["user", "assistant(save,broken)", "tool(2)", "assistant()"]
      ])
      assert.deepInclude(eventsOf(now, 1, turnEvents.call)[0], {
        tool: "save",
        outcome: "ok",
        effect: "present",
        executed: true
      })
      assert.deepInclude(eventsOf(now, 1, turnEvents.artifact)[0], { id: "call_1_0", name: "a.txt", bytes: 3 })
    })
)

filled("(d) what failed is told to the model as a failure, in a live session and in one that is resumed", () =>
  Effect.gen(function* () {
    const play = { blocks: [use("add", { a: 2, b: "3" })] }
    const told =
      '{"ok":false,"kind":"invalid_arguments","errors":[{"path":"b","reason":"expected number, got string"}]}'
    const live = yield* fill({ conversation: conversation([addTool], task, blank), engine: [play, { text: "sorry" }] })
    assert.include(live.context, told)
    const stopped = yield* fill(
      { conversation: conversation([addTool], task, blank), engine: [play] },
      { limits: { modelTurns: 1 } }
    )
    const resumed = yield* fill({ conversation: stopped.conversation, engine: [play, { text: "sorry" }] })
    assert.include(resumed.context, told)
    assert.strictEqual(text(resumed.conversation), text(live.conversation))
  })
)

filled("(e) a model that calls for ever is stopped by the limit, and the file says by which", () =>
  Effect.gen(function* () {
    const {
      conversation: now,
      stop,
      turns
    } = yield* fill(
      {
        conversation: conversation([addTool], task, blank),
        engine: Array.from({ length: 9 }, (_, a) => ({ blocks: [use("add", { a, b: 1 })] }))
      },
      { limits: { modelTurns: 3 } }
    )
    assert.deepStrictEqual(stop, { _tag: "Limit", kind: "model_turns" })
    assert.strictEqual(turns, 3)
    assert.isTrue(isBlank(now.session.at(-1)!))
    assert.deepStrictEqual(eventsOf(now, now.session.length - 3, turnEvents.end), [
      { state: "limit", reason: "model_turns" }
    ])
  })
)

filled("(f) a call that the token limit has cut is never executed; the model is told and writes it again", () =>
  Effect.gen(function* () {
    const { conversation: now, performed } = yield* fill({
      conversation: conversation([addTool], task, blank),
      engine: [
        { raw: '<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3', stop: "length" },
        { blocks: [adds] },
        { text: "5" }
      ]
    })
    assert.deepStrictEqual(performed, ['add:{"a":2,"b":3}'])
    assert.deepStrictEqual(shape(now), ["user", "assistant(add)", "tool(1)", "assistant"])
    const [malformed] = eventsOf(now, 1, turnEvents.malformed)
    assert.strictEqual(malformed?.["code"], "truncated")
  })
)

filled("(f) an answer that is cut fills no slot", () =>
  Effect.gen(function* () {
    const { conversation: now, stop } = yield* fill(
      {
        conversation: conversation([], task, blank),
        engine: [{ text: "on and on and on" }, { text: "and on and on and on" }]
      },
      { limits: { outputTokens: 2 } }
    )
    assert.strictEqual(stop?._tag, "Limit")
    assert.deepStrictEqual(shape(now), ["user", "assistant()"])
  })
)

filled("a call of a tool that is not declared is the model's mistake, and nothing runs", () =>
  Effect.gen(function* () {
    const { conversation: now, performed } = yield* fill({
      conversation: conversation([addTool], task, blank),
      engine: [{ blocks: [use("send", { to: "ann" })] }, { text: "no" }]
    })
    assert.deepStrictEqual(performed, [])
    assert.deepInclude(eventsOf(now, 1, turnEvents.call)[0], { outcome: "unknown_tool", executed: false })
    assert.strictEqual((now.session[2]!.content as ReadonlyArray<{ is_error?: boolean }>)[0]?.is_error, true)
  })
)

filled("without tools the model is shown none, and a call of one is its mistake", () =>
  Effect.gen(function* () {
    const {
      context,
      conversation: now,
      performed
    } = yield* fill({
      conversation: conversation([], task, blank),
      engine: [{ blocks: [adds] }, { text: "I have no tools." }]
    })
    assert.notInclude(context, "<tools>")
    assert.deepStrictEqual(shape(now), ["user", "assistant(add)", "tool(1)", "assistant"])
    assert.deepInclude(eventsOf(now, 1, turnEvents.call)[0], { outcome: "unknown_tool", executed: false })
    assert.deepStrictEqual(performed, [])
  })
)

filled("without tools, text that looks like a call is text", () =>
  Effect.gen(function* () {
    const raw = call("add", { a: 1, b: 2 })
    const { conversation: now } = yield* fill({ conversation: conversation([], task, blank), engine: [{ raw }] })
    assert.strictEqual(now.session[1]!.content, raw)
  })
)

filled("every turn has its trace in the file before the next is asked for", () =>
  Effect.gen(function* () {
    const { saved } = yield* fill({
      conversation: conversation([addTool], task, blank, user("more"), blank),
      engine: [{ blocks: [adds] }, { text: "5" }, { text: "6" }]
    })
    for (const { session } of saved) {
      const blankAt = session.findIndex(isBlank)
      const before = blankAt < 0 ? session : session.slice(0, blankAt)
      for (const message of before) if (message.role === "assistant") assert.isDefined(message.trace)
    }
    assert.deepStrictEqual(
      saved.map(({ session }) => session.filter(({ trace }) => trace !== undefined).length),
      [1, 1, 2, 3]
    )
  })
)

filled("a file that cannot be saved stops the run before anything of the turn is done", () =>
  Effect.gen(function* () {
    const { performed, stop } = yield* fill(
      { conversation: conversation([addTool], task, blank), engine: [{ blocks: [adds] }, { text: "5" }] },
      { save: () => Effect.fail(new ConversationError({ path: "c.yaml", place: "", reason: "the disk is full" })) }
    )
    assert.deepStrictEqual(stop, { _tag: "Failed", class: "conversation", message: "c.yaml: the disk is full" })
    assert.deepStrictEqual(performed, [])
  })
)

filled("what is complete is not saved, and nothing runs", () =>
  Effect.gen(function* () {
    const first = yield* fill({
      conversation: conversation([addTool], task, blank),
      engine: [{ blocks: [adds] }, { text: "5" }]
    })
    const again = yield* fill({ conversation: first.conversation, engine: [{ blocks: [adds] }, { text: "5" }] })
    assert.deepStrictEqual([again.saved, again.runs, again.stop], [[], [], undefined])
  })
)

filled("what no model can be told is refused by its place", () =>
  Effect.gen(function* () {
    const tool = (id: string) =>
      ({ role: "tool", content: [{ type: "tool_result", tool_use_id: id, content: "" }] }) as const
    const says = (...ids: ReadonlyArray<string>) =>
      ({ role: "assistant", content: ids.map((id) => ({ type: "tool_use", id, name: "add", input: {} })) }) as const
    const refused = [
      [[task, system("late"), blank], 1, "system messages come before"],
      [[task, says("a", "a"), blank], 1, "two of its calls have the id a"],
      [[task, says("a"), tool("b"), blank], 2, "a result for b"],
      [[task, tool("a"), blank], 1, "answers no calls"],
      [
        [task, says("a"), { role: "tool", content: [...tool("a").content, ...tool("a").content] }, blank],
        2,
        "two results for the call a"
      ],
      [[{ role: "user", content: [{ type: "image", source: {} }] }, blank], 0, "a picture"]
    ] as const
    for (const [session, at, words] of refused as ReadonlyArray<readonly [ReadonlyArray<Message>, number, string]>) {
      const error = yield* Effect.flip(fill({ conversation: conversation([addTool], ...session), engine: [] }))
      assert.strictEqual((error as ConversationError).place, `message ${at}`)
      assert.include((error as ConversationError).reason, words)
    }
  })
)

filled("a tool that never answers is timed out, and the model is told", () =>
  Effect.gen(function* () {
    const started = yield* Deferred.make<void>()
    const running = yield* Effect.forkChild(
      fill(
        { conversation: conversation([addTool], task, blank), engine: [{ blocks: [adds] }, { text: "too slow" }] },
        {
          results: { add: [{ hang: true }] },
          emit: ({ _tag }) => void (_tag === "CallStarted" && Deferred.doneUnsafe(started, Effect.void))
        }
      ),
      { startImmediately: true }
    )
    yield* Deferred.await(started)
    yield* Effect.forEach(Array.from({ length: 64 }), () => Effect.yieldNow, { discard: true })
    yield* TestClock.adjust("5 minutes")
    const { context, conversation: now } = yield* Fiber.join(running)
    assert.deepInclude(eventsOf(now, 1, turnEvents.call)[0], { outcome: "timed_out", executed: true })
    assert.include(context, '"kind":"timed_out"')
  })
)

filled("the record of each slot's run is one that can be checked", () =>
  Effect.gen(function* () {
    const { registry } = yield* Home
    const stopped = yield* fill(
      {
        conversation: conversation(declared(registry, "add", "save"), task, blank, user("more"), blank),
        engine: [
          { raw: "<tool_call>\n{broken\n</tool_call>" },
          { blocks: [use("save", { name: "a.txt", content: "abc" }), use("add", { a: 1, b: "x" })] },
          { text: "saved" },
          { blocks: [adds, use("add", { a: 3, b: 3 })] },
          { text: "done" }
        ]
      },
      { limits: { toolCalls: 1 } }
    )
    assert.deepStrictEqual(stopped.stop, { _tag: "Limit", kind: "tool_calls" })
    const resumed = yield* fill({
      conversation: stopped.conversation,
      engine: [{ raw: "" }, { text: "" }, { text: "" }, { text: "" }, { text: "done" }]
    })
    assert.strictEqual(resumed.stop?._tag, "Completed")
    for (const { runId } of [...stopped.runs, ...resumed.runs]) {
      const verdict = validateText(stopped.traceOf(runId))
      assert.deepStrictEqual(verdict.violations, [], runId)
      assert.isTrue(verdict.complete, runId)
    }
  })
)
