import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as Limits from "../../src/effects/Limits.ts"
import { play } from "../kit/run.ts"
import { call, calls, shape, types } from "../kit/script.ts"

const add = (b: number) => call("add", { a: 1, b })

describe("limits", () => {
  it.effect("model turns: the run stops after the last one, in order", () =>
    Effect.gen(function* () {
      const { outcome, text } = yield* play([add(1), add(2), add(3), "never"], { limits: { modelTurns: 3 } })
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "model_turns" })
      assert.strictEqual(outcome.turns, 3)
      assert.strictEqual(types(text).at(-1), "run_terminated")
    })
  )

  it.effect("no model turns: the prompt is committed and nothing is generated", () =>
    Effect.gen(function* () {
      const { outcome } = yield* play(["never"], { limits: { modelTurns: 0 } })
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "model_turns" })
      assert.deepStrictEqual(shape(outcome), ["system", "user"])
    })
  )

  it.effect("tool calls: exactly as many run, across turns", () =>
    Effect.gen(function* () {
      const { outcome, performed } = yield* play([add(1), add(2), add(3), "never"], { limits: { toolCalls: 2 } })
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "tool_calls" })
      assert.strictEqual(performed.length, 2)
    })
  )

  it.effect("tool calls: exactly as many run inside one turn, and the rest are skipped on the record", () =>
    Effect.gen(function* () {
      const turn = calls(["add", { a: 1, b: 1 }], ["add", { a: 2, b: 2 }], ["add", { a: 3, b: 3 }])
      const { events, outcome, performed } = yield* play([turn], { limits: { toolCalls: 2 } })
      assert.strictEqual(performed.length, 2)
      assert.strictEqual(outcome.skipped, 1)
      const answers = events.filter((event) => ["tool_result_uncommitted", "call_skipped"].includes(event.event_type))
      assert.deepStrictEqual(
        answers.map((event) => event.data["ordinal"]),
        [0, 1, 2]
      )
    })
  )

  it.effect("no wall time: stops right after the prompt, with the state intact", () =>
    Effect.gen(function* () {
      const { outcome } = yield* play(["never"], { limits: { wallMillis: 0 } })
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "wall_time" })
      assert.deepStrictEqual(shape(outcome), ["system", "user"])
    })
  )

  it.effect("wall time bounds a running generation, which is rolled back", () =>
    Effect.gen(function* () {
      const turn = { text: ["a", "b", "c"], millisPerToken: 1_000 }
      const fiber = yield* Effect.forkChild(play([turn], { limits: { wallMillis: 1_500 } }), { startImmediately: true })
      yield* TestClock.adjust(1_500)
      const { context, outcome, text } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "wall_time" })
      assert.isTrue(context.endsWith("<|im_end|>\n"))
      assert.deepStrictEqual(types(text).slice(-2), ["turn_rolled_back", "run_terminated"])
    })
  )

  it.effect("wall time bounds a running tool, which is detached", () =>
    Effect.gen(function* () {
      const turn = call("wait", { millis: 60_000 })
      const fiber = yield* Effect.forkChild(play([turn], { limits: { wallMillis: 5_000 } }), { startImmediately: true })
      yield* TestClock.adjust(5_000)
      const { outcome, text } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "wall_time" })
      assert.include(types(text), "tool_execution_finished")
    })
  )

  it.effect("a tool's deadline is clipped to the wall time that is left", () =>
    Effect.gen(function* () {
      const { events } = yield* play([call("add", { a: 1, b: 1 }), "ok"], { limits: { wallMillis: 3_000 } })
      assert.strictEqual(
        events.find((event) => event.event_type === "tool_execution_started")?.data["deadline_ms"],
        3_000
      )
    })
  )

  it.effect("a tool that takes too long is a structured answer and the run goes on", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(
        play([call("wait", { millis: 10_000 }), "ok"], { limits: { toolMillis: 150 } }),
        {
          startImmediately: true
        }
      )
      yield* TestClock.adjust(150)
      const { context, outcome } = yield* Fiber.join(fiber)
      assert.strictEqual(outcome.stop._tag, "Completed")
      assert.include(context, '"kind":"timed_out"')
    })
  )

  it.effect("a plain answer cut by the token limit is continued once", () =>
    Effect.gen(function* () {
      const first = { text: ["one ", "two ", "three "] }
      const { events, outcome } = yield* play([first, { text: ["three ", "four"] }], { limits: { outputTokens: 2 } })
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "one two three four" })
      const attempts = events.filter((event) => event.event_type === "model_call_started")
      assert.deepStrictEqual(
        attempts.map((event) => event.data["attempt"]),
        [0, 1]
      )
      assert.notStrictEqual(attempts[0]?.data["seed"], attempts[1]?.data["seed"])
    })
  )

  it.effect("an answer that is still cut is partial, never final", () =>
    Effect.gen(function* () {
      const endless = { text: ["a", "b", "c"] }
      const { outcome } = yield* play([endless, endless], { limits: { outputTokens: 2 } })
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "output_tokens", partialText: "abab" })
      assert.strictEqual(outcome.text, undefined)
    })
  )

  it.effect("a call cut by the token limit is malformed, not executed", () =>
    Effect.gen(function* () {
      const cut = { text: ["<tool_call>\n", '{"name": "add", ', '"arguments": {"a": 1, "b": 2}}', "\n</tool_call>"] }
      const { events, performed } = yield* play([cut, "sorry"], { limits: { outputTokens: 3 } })
      assert.deepStrictEqual(performed, [])
      assert.strictEqual(
        events.find((event) => event.event_type === "assistant_action_parsed")?.data["code"],
        "truncated"
      )
    })
  )

  it.effect("repairs in a row are bounded", () =>
    Effect.gen(function* () {
      const bad = "<tool_call>\n{\n</tool_call>"
      const { outcome } = yield* play([bad, call("nope", {}), bad, "never"], { limits: { repairs: 2 } })
      assert.deepStrictEqual(outcome.stop, { _tag: "Limit", kind: "repairs" })
      assert.strictEqual(outcome.turns, 3)
    })
  )

  it.effect("a call that was executed ends a row of repairs", () =>
    Effect.gen(function* () {
      const bad = "<tool_call>\n{\n</tool_call>"
      const { outcome } = yield* play([bad, add(1), bad, add(2), "done"], { limits: { repairs: 1 } })
      assert.strictEqual(outcome.stop._tag, "Completed")
    })
  )

  it.effect("the same call with the same answer is a loop at the threshold", () =>
    Effect.gen(function* () {
      const { outcome, performed } = yield* play([add(1), add(1), add(1), "never"])
      assert.strictEqual(outcome.stop._tag, "LoopDetected")
      assert.strictEqual(performed.length, 3)
    })
  )

  it.effect("two calls that take turns are a loop too", () =>
    Effect.gen(function* () {
      const turns = [add(1), add(2), add(1), add(2), add(1), add(2), "never"]
      const { outcome, performed } = yield* play(turns)
      assert.strictEqual(outcome.stop._tag, "LoopDetected")
      assert.strictEqual(performed.length, 6)
    })
  )

  it.effect("a tool that polls may be asked the same thing again", () =>
    Effect.gen(function* () {
      const poll = call("poll", {})
      const { outcome } = yield* play([poll, poll, poll, poll, "done"])
      assert.strictEqual(outcome.stop._tag, "Completed")
    })
  )

  it.effect("a turn that cannot fit the context ends the run before it is generated", () =>
    Effect.gen(function* () {
      const { outcome } = yield* play(["never"], { script: { contextTokens: 700 }, task: "x".repeat(800) })
      assert.strictEqual(outcome.stop._tag, "ContextExhausted")
    })
  )

  it.effect("a long result becomes head and tail with its size and the artifact that holds it", () =>
    Effect.gen(function* () {
      const { context, outcome } = yield* play([call("long", { length: 50_000 }), "ok"], {
        limits: { resultBytes: 1_000 }
      })
      const answer = /<tool_response>\n(.*)\n<\/tool_response>/.exec(context)?.[1] ?? ""
      assert.isAtMost(Buffer.byteLength(answer), 1_000)
      const { result } = JSON.parse(answer) as { result: Record<string, unknown> }
      assert.strictEqual(result["artifact"], outcome.artifacts[0]?.artifactId)
      assert.strictEqual(result["total_bytes"], outcome.artifacts[0]?.bytes)
      assert.isFalse(`${String(result["head"])}${String(result["tail"])}`.includes("\uFFFD"))
    })
  )

  it.effect("a result takes at most a quarter of the context", () =>
    Effect.gen(function* () {
      const { context } = yield* play([call("long", { length: 30_000 }), "ok"], { script: { contextTokens: 4_000 } })
      const answer = /<tool_response>\n(.*)\n<\/tool_response>/.exec(context)?.[1] ?? ""
      assert.isAtMost(answer.length / 4, 1_000)
      assert.isAbove(answer.length / 4, 900)
    })
  )
})

it("limits that make no sense are named", () => {
  assert.strictEqual(Limits.problemWith(Limits.defaults), undefined)
  assert.include(Limits.problemWith({ ...Limits.defaults, outputTokens: 0 }), "outputTokens")
  assert.include(Limits.problemWith({ ...Limits.defaults, repairs: -1 }), "repairs")
  assert.include(Limits.problemWith({ ...Limits.defaults, modelTurns: Number.NaN }), "modelTurns")
})
