import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { layerInline } from "../../../src/actors/ToolPool.ts"
import { Approval, denyAll } from "../../../src/effects/Policy.ts"
import { type ReplayCallsOptions, replayCalls } from "../../../src/effects/trace/ReplayCalls.ts"
import { corrupt, data } from "../../kit/corrupt.ts"
import { runOf } from "../../kit/records.ts"
import { play } from "../../kit/run.ts"
import { call, calls } from "../../kit/script.ts"
import * as TestTools from "../../kit/tools.ts"
import { good } from "../../kit/traces.ts"

const add = (a: number) => call("add", { a, b: 1 })

const replayed = (text: string, options: Partial<ReplayCallsOptions> = {}) =>
  Effect.gen(function* () {
    const { performed, registry } = yield* TestTools.make()
    const report = yield* replayCalls(runOf(text), { tools: registry, settings: { fixtures: {} }, ...options })
    return { report, performed, tags: report.calls.map(({ _tag }) => _tag) }
  }).pipe(Effect.provide(layerInline()))

describe("replaying recorded calls", () => {
  it.effect("executes them and finds their results", () =>
    Effect.gen(function* () {
      const { performed, report } = yield* replayed(yield* good["three turns"])
      assert.deepStrictEqual(performed, ['add:{"a":1,"b":1}', 'add:{"a":2,"b":1}'])
      assert.deepInclude(report, { verdict: "match", matched: 2, mismatched: 0, skipped: 0 })
    })
  )

  it.effect("names what came out differently", () =>
    Effect.gen(function* () {
      const text = corrupt(
        yield* good["one tool"],
        (lines) => void (data(lines, "tool_execution_finished")["payload"] = 3)
      )
      const { report } = yield* replayed(text)
      assert.strictEqual(report.verdict, "mismatch")
      assert.deepInclude(report.calls[0], { _tag: "Mismatch", path: "payload", recorded: 3, replayed: 2 })
    })
  )

  it.effect("verifies failures like results", () =>
    Effect.gen(function* () {
      const text = yield* good["failing tool"]
      assert.deepStrictEqual((yield* replayed(text)).tags, ["Match"])
      assert.deepStrictEqual((yield* replayed(yield* good["crashing tool"])).tags, ["Match"])
      const other = corrupt(
        text,
        (lines) => void (data(lines, "tool_execution_finished")["failure_kind"] = "not_found")
      )
      assert.deepInclude((yield* replayed(other)).report.calls[0], { _tag: "Mismatch", path: "failure_kind" })
      const hidden = corrupt(text, (lines) => {
        Object.assign(data(lines, "tool_execution_finished"), {
          ok: true,
          failure_kind: null,
          effect: null,
          payload: "fine"
        })
      })
      assert.deepStrictEqual((yield* replayed(hidden)).tags, ["Mismatch"])
    })
  )

  it.effect("finds each call by its id: one that was denied or that a limit stopped shifts nothing", () =>
    Effect.gen(function* () {
      const turn = calls(["send", { to: "bob" }], ["add", { a: 1, b: 1 }])
      const { text } = yield* play([turn, add(5), "done"]).pipe(Effect.provideService(Approval, denyAll))
      const denied = yield* replayed(text)
      assert.deepStrictEqual(denied.tags, ["Skipped", "Match", "Match"])
      assert.deepInclude(denied.report.calls[0], { reason: "it was denied and never ran" })
      const limited = yield* replayed(yield* good["tool calls in a turn"])
      assert.deepStrictEqual(limited.tags, ["Match", "Match", "Skipped"])
      assert.strictEqual(limited.report.verdict, "match", "skipped is no mismatch")
    })
  )

  it.effect("executes nothing that can change something, unless the caller knows better", () =>
    Effect.gen(function* () {
      const text = yield* good.artifact
      const cautious = yield* replayed(text)
      assert.deepStrictEqual([cautious.tags, cautious.performed], [["Skipped"], []])
      assert.strictEqual(cautious.report.verdict, "nothing to compare")
      const allowed = yield* replayed(text, { mayRun: () => true })
      assert.deepStrictEqual(allowed.tags, ["Match"])
      const other = corrupt(text, (lines) => void (data(lines, "artifact_written")["sha256"] = "0".repeat(64)))
      const report = (yield* replayed(other, { mayRun: () => true })).report
      assert.deepInclude(report.calls[0], { _tag: "Mismatch", path: "artifacts[0].sha256" })
    })
  )

  it.effect("takes nothing for a match: no calls, no content, no tool of that name", () =>
    Effect.gen(function* () {
      for (const name of ["final answer", "one tool, no content", "unknown tool"] as const) {
        const { report } = yield* replayed(yield* good[name])
        assert.strictEqual(report.verdict, "nothing to compare", name)
      }
      const gone = corrupt(yield* good["one tool"], (lines) => {
        for (const line of lines) if (line.data["tool"] === "add") line.data["tool"] = "gone"
      })
      assert.deepInclude((yield* replayed(gone)).report.calls[0], { reason: "there is no tool of this name here" })
    })
  )

  it.effect("does not ask about outcomes that time brought about", () =>
    Effect.gen(function* () {
      const { report } = yield* replayed(yield* good["tool deadline"])
      assert.strictEqual(report.verdict, "nothing to compare")
      assert.match((report.calls[0] as { reason: string }).reason, /ran out of time/)
    })
  )

  it.effect("gives a call no longer than it had", () =>
    Effect.gen(function* () {
      const text = corrupt(yield* good["one tool"], (lines) => {
        for (const line of lines) if (line.data["tool"] === "add") line.data["tool"] = "wait"
        data(lines, "tool_call_validated")["arguments"] = { millis: 10_000 }
        data(lines, "tool_execution_started")["deadline_ms"] = 50
      })
      const fiber = yield* Effect.forkChild(replayed(text), { startImmediately: true })
      yield* TestClock.adjust(50)
      yield* TestClock.adjust(10_000)
      const { report } = yield* Fiber.join(fiber)
      assert.deepInclude(report.calls[0], { _tag: "Mismatch", path: "ok" })
    })
  )

  it.effect("says where the tool is not the one of the record, and where its arguments no longer fit", () =>
    Effect.gen(function* () {
      const text = yield* good["one tool"]
      const other = corrupt(text, (lines) => {
        const tools = data(lines, "provenance")["tools"] as Array<{ name: string; hash: string }>
        tools.find(({ name }) => name === "add")!.hash = "0".repeat(64)
      })
      assert.deepInclude((yield* replayed(other)).report.calls[0], { _tag: "Match", changed: true })
      const unfit = corrupt(text, (lines) => void (data(lines, "tool_call_validated")["arguments"] = { a: "x" }))
      assert.deepInclude((yield* replayed(unfit)).report.calls[0], { _tag: "Mismatch", path: "arguments" })
    })
  )
})
