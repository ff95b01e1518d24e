import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as fc from "fast-check"
import { describe } from "vitest"
import type { AgentEvent } from "../../src/effects/AgentEvent.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import type { ScriptedTurn } from "../../src/engine/ScriptedModel.ts"
import { play, playUntil } from "../kit/run.ts"
import { call, types } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

/** A turn under which the engine dies, before its token of that number. */
const dies = (before = 1): ScriptedTurn => ({ text: ["He", "llo"], fault: { before, kind: "restarted" } })
const save = call("save", { name: "a.txt", content: "x" })

const validated = (text: string): void => assert.deepStrictEqual(validateText(text).violations, [])

const records = (text: string): ReadonlyArray<TraceRecord> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

describe("a run whose engine dies and is opened again", () => {
  it.effect("rolls the turn back, says so, and starts the same turn again: same seed, counted once", () =>
    Effect.gen(function* () {
      const { context, events, outcome, text } = yield* play([dies(), "Hello."])
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "Hello." })
      assert.strictEqual(outcome.turns, 1)
      assert.notInclude(context, "Hello.Hello")
      const model = types(text).filter((type) => /^model|^turn|^engine/.test(type))
      assert.deepStrictEqual(model, [
        "model_call_started",
        "turn_rolled_back",
        "engine_restarted",
        "model_call_started",
        "model_call_finished"
      ])
      const started = events.filter((event) => event.event_type === "model_call_started")
      assert.deepStrictEqual(started[0]?.data, started[1]?.data)
      const restarted = events.find((event) => event.event_type === "engine_restarted")
      assert.deepStrictEqual(restarted?.data, {
        cause: "crashed",
        restarts: 1,
        tokens: started[0]?.data["committed_len"]
      })
      validated(text)
    })
  )

  it.effect("performs each call once, wherever between them the engine dies", () =>
    Effect.gen(function* () {
      const { outcome, performed, text } = yield* play([dies(0), save, dies(2), "Saved."])
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "Saved." })
      assert.strictEqual(performed.length, 1)
      assert.strictEqual(outcome.toolCalls, 1)
      validated(text)
    })
  )

  it.effect("goes on twice and not a third time: then it fails, and the record says everything", () =>
    Effect.gen(function* () {
      const { outcome, text } = yield* play([dies(), dies(), save, dies(), "never"])
      assert.deepInclude(outcome.stop, { _tag: "Failed", class: "engine" })
      assert.deepStrictEqual(types(text).slice(-3), ["turn_rolled_back", "engine_restarted", "run_failed"])
      assert.strictEqual(types(text).filter((type) => type === "engine_restarted").length, 3)
      validated(text)
    })
  )

  it.effect("stops where it was told to stop, not where its engine died", () =>
    Effect.gen(function* () {
      const restarted = (event: AgentEvent) => event._tag === "EngineRestarted"
      const { outcome, text } = yield* playUntil([dies(), { text: "never", millisPerToken: 60_000 }], restarted)
      assert.strictEqual(outcome.stop._tag, "Cancelled")
      validated(text)
    })
  )

  it.effect("samples anew where several turns were sampled", () =>
    Effect.gen(function* () {
      const gates = { candidates: 2 }
      const { outcome, text } = yield* play(["One.", dies(), "One.", "Two.", dies(), "One.", "Two.", "Two."], {
        gates,
        sampling: { temperature: 1 }
      })
      assert.strictEqual(outcome.stop._tag, "Completed")
      validated(text)
    })
  )

  it.effect("is repeated from its record like any other", () =>
    Effect.gen(function* () {
      for (const turns of [
        [dies(), "Hello."],
        [save, dies(0), "Saved."],
        [dies(), dies(), dies(), "never"],
        [{ text: "Hel", stop: "length" as const }, dies(), { text: "Hel", stop: "length" as const }, "lo."]
      ]) {
        const { text } = yield* play(turns)
        validated(text)
        const { registry } = yield* TestTools.make()
        const all = records(text)
        const verdict = yield* replay(all, { tools: registry })
        assert.deepStrictEqual(verdict, { same: true, compared: all.length } as never)
      }
    })
  )

  it.effect("comes to the same as if it had not, wherever that happens", () =>
    Effect.gen(function* () {
      const turn = fc.constantFrom(
        save,
        call("add", { a: 1, b: 2 }),
        call("nope", {}),
        "<tool_call>\n{broken\n</tool_call>"
      )
      const crash = fc.record({ at: fc.nat(5), before: fc.nat(2) })
      const run = fc.record({
        turns: fc.array(turn, { maxLength: 4 }),
        crashes: fc.array(crash, { minLength: 1, maxLength: 2 })
      })
      for (const { crashes, turns } of fc.sample(run, { numRuns: 60, seed: 9 })) {
        const script: Array<ScriptedTurn | string> = [...turns, "Done."]
        const whole = yield* play(script)
        const played = whole.events.filter((event) => event.event_type === "model_call_started").length
        // Later ones first, so that each stands where it says.
        for (const { at, before } of crashes.toSorted((a, b) => b.at - a.at))
          script.splice(at % played, 0, dies(before))
        const broken = yield* play(script)
        assert.deepStrictEqual(broken.outcome.stop, whole.outcome.stop)
        assert.deepStrictEqual(broken.performed, whole.performed)
        assert.strictEqual(broken.context, whole.context)
        assert.deepStrictEqual(broken.outcome.turns, whole.outcome.turns)
        validated(broken.text)
      }
    })
  )
})
