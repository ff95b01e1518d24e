/** The loop and its commits: what the inventory of the predecessor names in 8.1, each as the claim that holds here. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as ArtifactStore from "../../src/actors/ArtifactStore.ts"
import * as Agent from "../../src/effects/Agent.ts"
import { streamAll } from "../../src/effects/Phases.ts"
import { resume } from "../../src/effects/Resume.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { layerScripted } from "../../src/testing.ts"
import { registry as builtin } from "../../src/tools/builtin/index.ts"
import { play, playUntil } from "../kit/run.ts"
import { call, calls, type Line, shape, types } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const add = (a: number) => call("add", { a, b: 1 })
const bad = "<tool_call>\n{\n</tool_call>"

const roles = (events: ReadonlyArray<Line>) =>
  events.filter((event) => event.event_type === "session_state_changed").map((event) => event.data["role"])

describe("8.1 the loop and its commits", () => {
  it.effect(
    "1: system, refusals, mistakes and their feedback are in transcript and trace, as they are in the context",
    () =>
      Effect.gen(function* () {
        const { events, outcome } = yield* play([bad, call("nope", {}), "sorry"])
        const wanted = [
          "system",
          "user",
          "assistant:malformed",
          "feedback",
          "assistant:calls",
          "tool:nope",
          "assistant:final"
        ]
        assert.deepStrictEqual(shape(outcome), wanted)
        assert.deepStrictEqual(roles(events), [
          "system",
          "user",
          "assistant_malformed",
          "feedback",
          "assistant_tool_call",
          "tool_result",
          "assistant_final"
        ])
      })
  )

  it.effect("2: text that was cut at the token limit, or that is empty, completes nothing", () =>
    Effect.gen(function* () {
      const endless = { text: ["a", "b", "c"] }
      const cut = yield* play([endless, endless], { limits: { outputTokens: 2 } })
      assert.deepStrictEqual([cut.outcome.stop._tag, cut.outcome.text], ["Limit", undefined])
      const empty = yield* play(["", "", "never"], { limits: { repairs: 1 } })
      assert.deepInclude(empty.outcome.stop, { _tag: "Limit", kind: "repairs" })
    })
  )

  it.effect(
    "3: calls left over when a run stops are on the record, and the context holds no request without its answer",
    () =>
      Effect.gen(function* () {
        const turn = calls(["add", { a: 1, b: 1 }], ["add", { a: 2, b: 2 }], ["add", { a: 3, b: 3 }])
        const { outcome, text } = yield* play([turn], { limits: { toolCalls: 1 } })
        const left = types(text).filter((type) => type === "tool_result_uncommitted" || type === "call_skipped")
        assert.deepStrictEqual(left, ["tool_result_uncommitted", "call_skipped", "call_skipped"])
        assert.strictEqual(outcome.transcript.filter((entry) => entry.kind === "tool").length, 3)
      })
  )

  it.effect("4: counts are of the run, not of the session", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const session = yield* Agent.session({ tools: registry })
      const [first, second, third] = [
        yield* Agent.runIn(session, "task 1"),
        yield* Agent.runIn(session, "task 2"),
        yield* Agent.runIn(session, "task 3")
      ]
      assert.isAbove(first.usage.prefillTokens, second.usage.prefillTokens, "only the first evaluates the system text")
      assert.strictEqual(third.usage.prefillTokens, second.usage.prefillTokens)
      assert.deepStrictEqual(
        [first, second, third].map(({ turns, usage }) => [turns, usage.outputTokens]),
        [
          [1, 1],
          [1, 1],
          [1, 1]
        ]
      )
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: ["one", "two", "sic"] })))
  )

  it.effect("5: wall time ends a generation and a tool that are running, and a tool gets no more than is left", () =>
    Effect.gen(function* () {
      const ends = (turn: Parameters<typeof play>[0][number]) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(play([turn], { limits: { wallMillis: 1_500 } }), {
            startImmediately: true
          })
          yield* TestClock.adjust(1_500)
          return (yield* Fiber.join(fiber)).outcome.stop
        })
      assert.deepStrictEqual(yield* ends({ text: ["a", "b"], millisPerToken: 1_000 }), {
        _tag: "Limit",
        kind: "wall_time"
      })
      assert.deepStrictEqual(yield* ends(call("wait", { millis: 60_000 })), { _tag: "Limit", kind: "wall_time" })
    })
  )

  it.effect("6: the largest result allowed fits the context, and a full context is a stop of its own, no failure", () =>
    Effect.gen(function* () {
      const fits = yield* play([call("long", { length: 30_000 }), "ok"], { script: { contextTokens: 4_000 } })
      assert.strictEqual(fits.outcome.stop._tag, "Completed")
      const full = yield* play(["never"], { script: { contextTokens: 700 }, task: "x".repeat(800) })
      assert.strictEqual(full.outcome.stop._tag, "ContextExhausted")
    })
  )

  it.effect("7: a result's limit is in bytes of what the model reads, whatever its script and escapes", () =>
    Effect.gen(function* () {
      const echo = (text: string) =>
        Effect.gen(function* () {
          const outcome = yield* Agent.run({
            task: "t",
            tools: yield* builtin,
            limits: { resultBytes: 400, outputTokens: 100_000 }
          })
          const answer = outcome.transcript.find((entry) => entry.kind === "tool")?.content ?? ""
          assert.isAtMost(Buffer.byteLength(answer), 400)
          assert.isAbove(Buffer.byteLength(answer), 300)
          assert.strictEqual((JSON.parse(answer) as { readonly ok: boolean }).ok, true)
        }).pipe(Effect.provide(layerScripted({ turns: [call("echo", { text }), "ok"] })))
      yield* echo("日本語".repeat(500))
      yield* echo('"\\\n'.repeat(500))
      yield* echo("🇯🇵".repeat(500))
    })
  )

  it.effect("8: a text result stays text, also when it looks like JSON", () =>
    Effect.gen(function* () {
      for (const text of ["42", " 42 ", "true", '{"a":1}', "null"]) {
        const outcome = yield* Agent.run({ task: "t", tools: yield* builtin }).pipe(
          Effect.provide(layerScripted({ turns: [call("echo", { text }), "ok"] }))
        )
        const answer = outcome.transcript.find((entry) => entry.kind === "tool")?.content ?? ""
        assert.deepStrictEqual(JSON.parse(answer), { ok: true, result: text })
      }
    })
  )

  it.effect("9: the kind of a failure reaches the model in every family", () =>
    Effect.gen(function* () {
      const failing = {
        "qwen2.5": call("broken", { how: "error" }),
        llama3: '<|python_tag|>{"name": "broken", "parameters": {"how": "error"}}',
        "generic-json": '{"type":"tool_call","name":"broken","arguments":{"how":"error"}}'
      }
      for (const [codec, turn] of Object.entries(failing)) {
        const { registry } = yield* TestTools.make()
        const outcome = yield* Agent.run({ task: "t", tools: registry, codec }).pipe(
          Effect.provide(layerScripted({ turns: [turn, "sorry"] }))
        )
        const answer = outcome.transcript.find((entry) => entry.kind === "tool")?.content
        assert.include(answer, '"ok":false,"kind":"execution_failed"', codec)
      }
    })
  )

  it.effect("10: reads of a turn can run side by side, and a model that goes in circles is noticed", () =>
    Effect.gen(function* () {
      const turn = calls(["wait", { millis: 1_000 }], ["wait", { millis: 1_000 }])
      const fiber = yield* Effect.forkChild(play([turn, "ok"], { calls: "parallel" }), { startImmediately: true })
      yield* TestClock.adjust(1_000)
      assert.strictEqual((yield* Fiber.join(fiber)).outcome.stop._tag, "Completed")
      const circle = yield* play([add(1), add(1), add(1), "never"])
      assert.strictEqual(circle.outcome.stop._tag, "LoopDetected")
    })
  )

  it.effect("11: a cancelled run is continued from its trace", () =>
    Effect.gen(function* () {
      const { text } = yield* playUntil([add(1), { text: "never", prefillMillis: 1_000 }], (event) => {
        return event._tag === "StateEntered" && event.state === "Generating" && event.turn === 1
      })
      const trace = text
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => readLine(Buffer.from(line)) as TraceRecord)
      const { performed, registry } = yield* TestTools.make()
      const outcome = yield* resume({ traces: [trace], tools: registry, trace: { content: true } }).pipe(
        Effect.provide(layerScripted({ turns: ["It is 2."] }))
      )
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "It is 2." })
      assert.deepStrictEqual(performed, [], "what was done is not done again")
    })
  )

  it.effect("12: a host sees tokens and events while they happen", () =>
    Effect.gen(function* () {
      const { registry } = yield* TestTools.make()
      const handle = yield* Agent.start({ task: "t", tools: registry, phases: streamAll })
      yield* TestClock.adjust(100)
      const seen = yield* Stream.runCollect(Stream.takeUntil(handle.events, (event) => event._tag === "Text"))
      assert.deepInclude(seen.at(-1), { _tag: "Text", text: "He" })
      yield* handle.cancel
    }).pipe(Effect.scoped, Effect.provide(layerScripted({ turns: [{ text: ["He", "llo"], millisPerToken: 100 }] })))
  )

  it.live(
    "13: a place for artifacts that cannot be had is the failure of the call that needed it, and of nothing else",
    () =>
      Effect.gen(function* () {
        const directory = mkdtempSync(join(tmpdir(), "writ-ember-"))
        const { registry } = yield* TestTools.make()
        const turns = [call("save", { name: "a.txt", content: "x" }), "could not"]
        const nowhere = ArtifactStore.layerDirectory(() => "/dev/null/artifacts")
        const outcome = yield* Agent.run({ task: "t", tools: registry }).pipe(
          Effect.provide(Layer.merge(layerScripted({ turns }), nowhere))
        )
        assert.strictEqual(outcome.stop._tag, "Completed")
        assert.include(outcome.transcript.find((entry) => entry.kind === "tool")?.content, "execution_failed")
        // Nor is anything made before it is needed.
        yield* Agent.run({ task: "t", tools: registry }).pipe(
          Effect.provide(
            Layer.merge(
              layerScripted({ turns: ["hi"] }),
              ArtifactStore.layerDirectory(() => join(directory, "artifacts"))
            )
          )
        )
        assert.deepStrictEqual(readdirSync(directory), [])
        rmSync(directory, { recursive: true })
        assert.isFalse(existsSync(directory))
      })
  )
})
