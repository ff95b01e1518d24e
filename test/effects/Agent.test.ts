import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../../src/effects/Agent.ts"
import type { AgentEvent } from "../../src/effects/AgentEvent.ts"
import { streamAll } from "../../src/effects/Phases.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import { call, calls, shape, types } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const add = call("add", { a: 2, b: 3 })

const tools = Effect.map(TestTools.make(), ({ registry }) => registry)

/** Events by their tags, text and reasoning put together. */
const story = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<string> => {
  const out: Array<string> = []
  for (const event of events) {
    const last = out.at(-1)
    if (event._tag !== "Text" && event._tag !== "Reasoning") out.push(event._tag)
    else if (last?.startsWith(`${event._tag}:`)) out[out.length - 1] = last + event.text
    else out.push(`${event._tag}:${event.text}`)
  }
  return out
}

describe("Agent.run", () => {
  it.effect("is an effect whose value is the typed outcome", () =>
    Effect.gen(function* () {
      const outcome = yield* Agent.run({ task: "t", tools: yield* tools })
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "It is 5." })
      assert.deepStrictEqual([outcome.text, outcome.turns, outcome.toolCalls], ["It is 5.", 2, 1])
    }).pipe(Effect.provide(layerScripted({ turns: [add, "It is 5."] })))
  )

  it.effect("names options that make no sense as a failure, before anything is generated", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run({ task: "t", tools: yield* tools, limits: { outputTokens: 0 } }))
      assert.strictEqual(error._tag, "InvalidOptions")
      assert.deepStrictEqual((yield* MemoryTraces).runs(), [])
    }).pipe(Effect.provide(layerScripted({ turns: ["never"] })))
  )
})

describe("Agent.stream", () => {
  it.effect(
    "tells text, reasoning, calls, results and states as they happen, and a retraction of what was no answer",
    () =>
      Effect.gen(function* () {
        const events = yield* Stream.runCollect(
          Agent.stream({ task: "t", tools: yield* tools, codec: "qwen3", phases: streamAll })
        )
        assert.deepStrictEqual(story(events), [
          "RunStarted",
          "StateEntered",
          "StateEntered",
          "Reasoning:\nhm\n",
          "Text:Let me add.\n",
          "Generated",
          "Retracted",
          "CallProposed",
          "StateEntered",
          "StateEntered",
          "CallStarted",
          "CallFinished",
          "StateEntered",
          "StateEntered",
          "StateEntered",
          "Text:It is 5.",
          "Generated",
          "Finished"
        ])
        const finished = events.find((event) => event._tag === "CallFinished")
        assert.deepInclude(finished, { callId: "call-0-0", tool: "add", answer: { ok: true, result: 5 } })
      }).pipe(
        Effect.provide(
          layerScripted({ turns: [`<think>\nhm\n</think>\n\nLet me add.\n${add}`, { text: ["It ", "is ", "5."] }] })
        )
      )
  )

  it.effect("tells how fast a turn is written a few times a second, whatever of it is shown, and how it ended", () =>
    Effect.gen(function* () {
      const reader = yield* Effect.forkChild(Stream.runCollect(Agent.stream({ task: "t", tools: yield* tools })))
      while (reader.pollUnsafe() === undefined) yield* TestClock.adjust(50)
      const events = yield* Fiber.join(reader)
      const told = events.flatMap((event) => (event._tag === "Generated" ? [event] : []))
      assert.deepStrictEqual(
        told.map(({ ended, millis, tokens }) => [tokens, millis, ended]),
        [
          [5, 200, false],
          [9, 400, false],
          [10, 500, true]
        ]
      )
    }).pipe(Effect.provide(layerScripted({ turns: [{ text: [..."0123456789"], millisPerToken: 50 }] })))
  )

  it.effect("tells that a call waits for somebody, and what they said", () =>
    Effect.gen(function* () {
      const options = { task: "t", tools: yield* tools }
      const events = yield* Stream.runCollect(Agent.stream(options)).pipe(Effect.provideService(Approval, allowAll))
      const told = events.filter(({ _tag }) => /^(Call|Approval)/.test(_tag))
      assert.deepStrictEqual(
        told.map(({ _tag }) => _tag),
        ["CallProposed", "ApprovalRequested", "ApprovalDecided", "CallStarted", "CallFinished"]
      )
      assert.deepInclude(told[2], { callId: "call-0-0", tool: "send", decision: "allow", by: "allow-all" })
    }).pipe(Effect.provide(layerScripted({ turns: [call("send", { to: "bob" }), "Sent."] })))
  )

  it.effect("tells what became of a turn that was rolled back: its text is taken back", () =>
    Effect.gen(function* () {
      const events = yield* Stream.runCollect(Agent.stream({ task: "t", tools: yield* tools, phases: streamAll }))
      assert.deepStrictEqual(story(events).slice(-3), ["Text:Hel", "Retracted", "Finished"])
      assert.deepInclude(events.at(-2), { reason: "rolled_back" })
    }).pipe(Effect.provide(layerScripted({ turns: [{ text: ["Hel", "lo"], fault: { before: 1, kind: "lost" } }] })))
  )

  it.effect("left early, cancels the run and closes its record before the reader goes on", () =>
    Effect.gen(function* () {
      const { performed, registry } = yield* TestTools.make()
      const seen = yield* Agent.stream({ task: "t", tools: registry }).pipe(
        Stream.takeUntil((event) => event._tag === "CallStarted"),
        Stream.runCollect
      )
      assert.strictEqual(seen.at(-1)?._tag, "CallStarted")
      const trace = types((yield* MemoryTraces).text("run-1"))
      assert.deepStrictEqual(trace.slice(-3), ["tool_execution_finished", "tool_result_uncommitted", "run_cancelled"])
      assert.deepStrictEqual(performed, ['wait:{"millis":60000}'])
    }).pipe(Effect.provide(layerScripted({ turns: [call("wait", { millis: 60_000 }), "never"] })))
  )
})

describe("Agent.start", () => {
  it.effect("gives events, outcome and a way to cancel; cancelling twice is cancelling once", () =>
    Effect.gen(function* () {
      const handle = yield* Agent.start({ task: "t", tools: yield* tools })
      yield* TestClock.adjust(10)
      yield* handle.cancel
      yield* handle.cancel
      const outcome = yield* handle.outcome
      assert.deepStrictEqual(outcome.stop, { _tag: "Cancelled", at: "tool" })
      const events = yield* Stream.runCollect(handle.events)
      assert.strictEqual(events[0]?._tag, "RunStarted")
      assert.deepStrictEqual(events.at(-1), { _tag: "Finished", stop: outcome.stop })
      assert.strictEqual(types((yield* MemoryTraces).text(handle.runId)).at(-1), "run_cancelled")
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [call("wait", { millis: 60_000 }), "never"] })))
  )

  it.effect("cancelled after its end, changes nothing", () =>
    Effect.gen(function* () {
      const handle = yield* Agent.start({ task: "t", tools: yield* tools })
      const outcome = yield* handle.outcome
      const before = (yield* MemoryTraces).text(handle.runId)
      yield* handle.cancel
      assert.strictEqual(outcome.stop._tag, "Completed")
      assert.strictEqual((yield* MemoryTraces).text(handle.runId), before)
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: ["hi"] })))
  )

  it.effect("ends its run with the scope it was started in", () =>
    Effect.gen(function* () {
      const registry = yield* tools
      const started = Agent.start({ task: "t", tools: registry })
      yield* Effect.scoped(Effect.andThen(started, TestClock.adjust(10)))
      assert.strictEqual(types((yield* MemoryTraces).text("run-1")).at(-1), "run_cancelled")
    }).pipe(Effect.provide(layerScripted({ turns: [call("wait", { millis: 60_000 }), "never"] })))
  )
})

describe("sessions", () => {
  it.effect("several tasks in one session share its context, and count for themselves", () =>
    Effect.gen(function* () {
      const session = yield* Agent.session({ tools: yield* tools, system: "S" })
      const first = yield* Agent.runIn(session, "first")
      const second = yield* Agent.runIn(session, "second")
      assert.deepStrictEqual([first.turns, second.turns, first.toolCalls, second.toolCalls], [2, 1, 1, 0])
      assert.deepStrictEqual(shape(second), [
        "system",
        "user",
        "assistant:calls",
        "tool:add",
        "assistant:final",
        "user",
        "assistant:final"
      ])
      const log = (yield* ScriptedSessions)[0]!.committed()
      assert.strictEqual(log.split("<|im_start|>system").length, 2, "the system text is evaluated once")
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [add, "5", "again"] })))
  )

  it.effect("a session that runs a task refuses another one until it is free", () =>
    Effect.gen(function* () {
      const session = yield* Agent.session({ tools: yield* tools })
      const handle = yield* Agent.startIn(session, "first")
      yield* TestClock.adjust(10)
      const error = yield* Effect.flip(Agent.runIn(session, "second"))
      assert.strictEqual(error._tag, "InvalidOptions")
      yield* handle.cancel
      yield* handle.outcome
      const exit = yield* Effect.exit(Agent.runIn(session, "third"))
      assert.isTrue(Exit.isSuccess(exit))
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [call("wait", { millis: 60_000 }), "hi"] })))
  )

  it.effect("sessions side by side in one program do not see each other", () =>
    Effect.gen(function* () {
      const registry = yield* tools
      const one = yield* Effect.forkChild(Agent.run({ task: "alpha task", tools: registry }), {
        startImmediately: true
      })
      const two = yield* Effect.forkChild(Agent.run({ task: "omega task", tools: registry }), {
        startImmediately: true
      })
      yield* TestClock.adjust(1_000)
      const outcomes = [yield* Fiber.join(one), yield* Fiber.join(two)]
      assert.deepStrictEqual(
        outcomes.map(({ stop }) => stop._tag),
        ["Completed", "Completed"]
      )
      const [first, second] = yield* ScriptedSessions
      assert.include(first?.committed(), "alpha task")
      assert.notInclude(first?.committed(), "omega task")
      assert.include(second?.committed(), "omega task")
    }).pipe(
      Effect.provide(layerScripted({ turns: Array.from({ length: 2 }, () => ({ text: "hi", prefillMillis: 50 })) }))
    )
  )

  it.effect("a thousand sessions at a time all come to their end, each with its own record", () =>
    Effect.gen(function* () {
      const registry = yield* tools
      const run = (n: number) => Agent.run({ task: `task ${n}`, tools: registry })
      const many = Effect.forEach(
        Array.from({ length: 1_000 }, (_, n) => n),
        run,
        { concurrency: "unbounded" }
      )
      const fiber = yield* Effect.forkChild(many, { startImmediately: true })
      yield* TestClock.adjust(1_000)
      const outcomes = yield* Fiber.join(fiber)
      assert.isTrue(outcomes.every(({ stop, toolCalls }) => stop._tag === "Completed" && toolCalls === 2))
      assert.strictEqual(new Set(outcomes.map(({ runId }) => runId)).size, 1_000)
      const traces = yield* MemoryTraces
      for (const { runId } of outcomes) assert.strictEqual(types(traces.text(runId)).at(-1), "run_completed")
    }).pipe(
      Effect.provide(
        layerScripted({ turns: endless([calls(["add", { a: 1, b: 1 }], ["wait", { millis: 1 }]), "done"]) })
      )
    )
  )
})

/** Whoever asks next gets the next turn, so all sessions are at the same one: first every first turn, then every second. */
function endless(turns: readonly [first: string, second: string]): ReadonlyArray<string> {
  return [...Array.from({ length: 1_000 }, () => turns[0]), ...Array.from({ length: 1_000 }, () => turns[1])]
}
