import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Agent from "../../src/effects/Agent.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted } from "../../src/testing.ts"
import { answered } from "../kit/routes.ts"
import { call, calls, type Line, shape } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const add = (a: number) => call("add", { a, b: 1 })
const asks = 'CLARIFY("Which one?")'

const resumedIn = (events: ReadonlyArray<Line>) => events.find(({ event_type: type }) => type === "run_resumed")!.data

describe("an answer in the session that asked", () => {
  it.effect("is the user's next message, where the question was said", () =>
    Effect.gen(function* () {
      const { context, first, second, texts } = yield* answered([add(1), asks, add(2), "done"], "The red one.")
      assert.deepStrictEqual(first.stop, { _tag: "NeedsInput", question: "Which one?" })
      assert.deepStrictEqual(second.stop, { _tag: "Completed", text: "done" })
      assert.deepStrictEqual(shape(second).slice(-5), [
        "assistant:question",
        "user",
        "assistant:calls",
        "tool:add",
        "assistant:final"
      ])
      assert.include(context, `${asks}<|im_end|>\n<|im_start|>user\nThe red one.<|im_end|>`)
      for (const text of texts) assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("is the result of the call, where a call asked", () =>
    Effect.gen(function* () {
      const turn = calls(["add", { a: 1, b: 1 }], ["clarify", { question: "Which?" }])
      const { context, performed, second, texts } = yield* answered([turn, "done"], "The red one.")
      assert.strictEqual(second.text, "done")
      assert.include(context, '<tool_response>\n{"ok":true,"result":"The red one."}\n</tool_response>')
      assert.notInclude(context, "user\nThe red one.")
      assert.deepStrictEqual(performed, [], "what stood beside the question was not executed")
      assert.include(JSON.stringify(second.transcript), "The red one.")
      for (const text of texts) assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("comes behind the answers of the calls that a question has dropped", () =>
    Effect.gen(function* () {
      const { context, performed, second } = yield* answered([`${asks}\n${add(1)}`, "done"], "The red one.")
      assert.strictEqual(second.text, "done")
      assert.deepStrictEqual(performed, [])
      assert.isBelow(context.indexOf("not_executed"), context.indexOf("The red one."))
    })
  )

  it.effect("goes on with turns and calls of the run that asked, not with new ones", () =>
    Effect.gen(function* () {
      const turns = [add(1), asks, add(2), add(3), "never"]
      const limited = yield* answered(turns, "x", { limits: { modelTurns: 3 } })
      assert.deepStrictEqual([limited.second.stop, limited.second.turns], [{ _tag: "Limit", kind: "model_turns" }, 3])
      const called = yield* answered(turns, "x", { limits: { toolCalls: 2 } })
      assert.deepStrictEqual(called.second.stop, { _tag: "Limit", kind: "tool_calls" })
      assert.deepStrictEqual(called.performed.length, 2)
      assert.deepInclude(resumedIn(called.events[1]!), { from_run: "run-1", root_run: "run-1", next_turn: 2 })
      assert.deepInclude(resumedIn(called.events[1]!)["spent"], { tool_calls: 1, repairs: 0 })
      for (const text of [...limited.texts, ...called.texts]) assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("goes on with the wall time, of which the user's own is no part", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const options = { limits: { wallMillis: 1_000 } }
      const session = yield* Agent.session({ tools: registry })
      const first = yield* Effect.forkChild(Agent.runIn(session, "t", options), { startImmediately: true })
      yield* TestClock.adjust(600)
      assert.strictEqual((yield* Fiber.join(first)).stop._tag, "NeedsInput")
      yield* TestClock.adjust(3_600_000)
      const second = yield* Effect.forkChild(Agent.answer(session, "x", options), { startImmediately: true })
      yield* TestClock.adjust(399)
      assert.isUndefined(second.pollUnsafe())
      yield* TestClock.adjust(1)
      assert.deepStrictEqual((yield* Fiber.join(second)).stop, { _tag: "Limit", kind: "wall_time" })
    }).pipe(
      Effect.scoped,
      Effect.provide(
        layerScripted({
          turns: [
            { text: [asks], millisPerToken: 600 },
            { text: ["a", "b"], millisPerToken: 500 }
          ]
        })
      )
    )
  )

  it.effect("goes on with the repairs in a row, and its record says so", () =>
    Effect.gen(function* () {
      const bad = "<tool_call>\n{\n</tool_call>"
      const { second, texts } = yield* answered([bad, asks, bad, "never"], "x", { limits: { repairs: 1 } })
      assert.deepStrictEqual([second.stop, second.turns], [{ _tag: "Limit", kind: "repairs" }, 3])
      for (const text of texts) assert.deepStrictEqual(validateText(text).violations, [])
      const less = texts[1].replace('"spent":{"tool_calls":0,"repairs":1', '"spent":{"tool_calls":0,"repairs":0')
      assert.include(JSON.stringify(validateText(less).violations), "the limit repairs was not reached")
    })
  )

  it.effect("can be followed by another question and its answer", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const session = yield* Agent.session({ tools: registry })
      yield* Agent.runIn(session, "t")
      const again = yield* Agent.answer(session, "one")
      assert.strictEqual(again.stop._tag, "NeedsInput")
      const last = yield* Agent.answer(session, "two")
      assert.deepStrictEqual([last.runId, last.text, last.turns], ["run-1-r3", "done", 3])
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [asks, asks, "done"] })))
  )

  it.effect("to a session that asked nothing, or was asked something else since, is refused", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const session = yield* Agent.session({ tools: registry })
      assert.include((yield* Effect.flip(Agent.answer(session, "x"))).message, "has not asked")
      yield* Agent.runIn(session, "t")
      yield* Agent.runIn(session, "another task")
      assert.include((yield* Effect.flip(Agent.answer(session, "x"))).message, "has not asked")
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [asks, "done"] })))
  )
})
