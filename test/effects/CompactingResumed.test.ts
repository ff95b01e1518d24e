import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Agent from "../../src/effects/Agent.ts"
import { resume } from "../../src/effects/Resume.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import { replay } from "../../src/effects/trace/Replay.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { call, lines } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const records = (text: string): ReadonlyArray<TraceRecord> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

const options: RunOptions = {
  context: { onFull: "compact" },
  limits: { outputTokens: 48 },
  trace: { content: true }
}

const tools = Effect.flatMap(TestTools.make(), ({ registry }) => Registry.pick(registry, ["add"]))
const question = `CLARIFY("${"Which one? ".repeat(12).trim()}")`

/** The first part: a long task, and a question. */
const asked = Effect.gen(function* () {
  const outcome = yield* Agent.run({ task: "much ".repeat(120), tools: yield* tools, ...options })
  assert.strictEqual(outcome.stop._tag, "NeedsInput")
  return { text: (yield* MemoryTraces).text("run-1"), length: outcome.transcript.at(-1)!.span!.end }
}).pipe(Effect.provide(layerScripted({ turns: [question] })))

const turns = [call("add", { a: 1, b: 2 }), "It is 3."]

/** The second part, in a context where the answer, or the turn after it, has no room beside the first. */
const goneOn = (parts: ReadonlyArray<string>, contextTokens: number, script = turns, answer?: string) =>
  Effect.gen(function* () {
    const traces = parts.map(records)
    const outcome = yield* resume({
      traces,
      tools: yield* tools,
      ...options,
      ...(answer === undefined ? {} : { answer })
    })
    const context = (yield* ScriptedSessions).map((log) => log.committed()).join("")
    return { outcome, context, text: (yield* MemoryTraces).text(outcome.runId) }
  }).pipe(Effect.provide(layerScripted({ turns: script, contextTokens })))

const compactions = (text: string) => lines(text).filter(({ event_type }) => event_type === "context_compacted")

describe("a run in several parts whose context was compacted", () => {
  it.effect("has a valid record that replays event by event, whether the answer or the turn after it had no room", () =>
    Effect.gen(function* () {
      const first = yield* asked
      const seen = new Set<unknown>()
      for (let more = 8; more <= 140; more += 4) {
        const { outcome, text } = yield* goneOn([first.text], first.length + more, turns, "The first. ".repeat(4))
        assert.deepStrictEqual(validateText(text).violations, [], `${more}`)
        if (outcome.stop._tag !== "Completed") {
          assert.strictEqual(outcome.stop._tag, "ContextExhausted")
          // An answer that never got its place is in no record.
          continue
        }
        for (const { data } of compactions(text)) seen.add(data["for"])
        const verdict = yield* replay(records(text), { tools: yield* tools, earlier: [records(first.text)] })
        assert.deepStrictEqual(
          [verdict.same, verdict.divergence, verdict.stoppedAt],
          [true, undefined, undefined],
          `${more}`
        )
      }
      assert.deepStrictEqual([...seen].sort(), ["message", "turn"])
    })
  )

  it.effect("is resumed from any event on with the same context as if it had not been interrupted", () =>
    Effect.gen(function* () {
      const first = yield* asked
      const room = first.length + 60
      const whole = yield* goneOn([first.text], room, turns, "The first. ".repeat(4))
      assert.strictEqual(whole.outcome.stop._tag, "Completed")
      assert.strictEqual(compactions(whole.text).length, 1)
      const all = whole.text.split("\n").filter((line) => line !== "")
      const at = all.findIndex((line) => line.includes('"context_compacted"'))
      let compared = 0
      for (let cut = at + 2; cut < all.length; cut++) {
        const part = `${all.slice(0, cut).join("\n")}\n`
        const kept = lines(part).filter(
          ({ data, event_type }) =>
            event_type === "session_state_changed" && String(data["role"]).startsWith("assistant_")
        ).length
        const { context, outcome } = yield* goneOn([first.text, part], room, turns.slice(kept))
        assert.strictEqual(outcome.stop._tag, "Completed", `cut at ${cut}`)
        assert.strictEqual(context, whole.context, `cut at ${cut}`)
        compared++
      }
      assert.isAbove(compared, 5)
    })
  )
})
