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
const task = "much ".repeat(120)
const question = `CLARIFY("${"Which one? ".repeat(12).trim()}")`

/** The first part: a long task, and a question. */
const asked = Effect.gen(function* () {
  const outcome = yield* Agent.run({ task, tools: yield* tools, ...options })
  assert.strictEqual(outcome.stop._tag, "NeedsInput")
  return { text: (yield* MemoryTraces).text("run-1"), length: outcome.transcript.at(-1)!.span!.end }
}).pipe(Effect.provide(layerScripted({ turns: [question] })))

/** The second part, in a context where the answer, or the turn after it, has no room beside the first. */
const goneOn = (text: string, contextTokens: number, answer: string) =>
  Effect.gen(function* () {
    const outcome = yield* resume({ traces: [records(text)], tools: yield* tools, ...options, answer })
    const context = (yield* ScriptedSessions).map((log) => log.committed()).join("")
    return { outcome, context, text: (yield* MemoryTraces).text(outcome.runId) }
  }).pipe(Effect.provide(layerScripted({ turns: [call("add", { a: 1, b: 2 }), "It is 3."], contextTokens })))

const compactions = (text: string) => lines(text).filter(({ event_type }) => event_type === "context_compacted")

describe("a run that asked, in a context that is full", () => {
  it.effect("keeps its task and its question when it goes on with the answer: it ends where there is no room", () =>
    Effect.gen(function* () {
      const first = yield* asked
      const seen = new Set<string>()
      for (let more = 8; more <= 200; more += 4) {
        const { context, outcome, text } = yield* goneOn(first.text, first.length + more, "The first. ".repeat(4))
        assert.deepStrictEqual(validateText(text).violations, [], `${more}`)
        assert.deepStrictEqual(compactions(text), [])
        assert.include(context, task)
        assert.include(context, "Which one?")
        seen.add(outcome.stop._tag)
        const verdict = yield* replay(records(text), { tools: yield* tools, earlier: [records(first.text)] })
        assert.deepStrictEqual(
          [verdict.same, verdict.divergence, verdict.stoppedAt],
          [true, undefined, undefined],
          `${more}`
        )
      }
      assert.deepStrictEqual([...seen].sort(), ["Completed", "ContextExhausted"])
    })
  )

  const script = ["It is done.", question, call("add", { a: 1, b: 2 }), "It is 3."]

  /** A task, a task that asks, and the answer; in an engine of that size. */
  const talked = (contextTokens?: number) =>
    Effect.gen(function* () {
      const session = yield* Agent.session({ tools: yield* tools })
      yield* Agent.runIn(session, `Earlier: ${"this and that ".repeat(60)}`, options)
      const asks = yield* Agent.runIn(session, task, options)
      assert.strictEqual(asks.stop._tag, "NeedsInput")
      const length = yield* session.context.length
      const { runId, stop } = yield* Agent.answer(session, "The first. ".repeat(4), options)
      const context = (yield* ScriptedSessions).at(-1)!.committed()
      const memory = yield* MemoryTraces
      const made = memory.runs().flatMap((id) => compactions(memory.text(id)))
      return { context, length, made, stop, text: memory.text(runId) }
    }).pipe(
      Effect.scoped,
      Effect.provide(layerScripted({ turns: script, ...(contextTokens === undefined ? {} : { contextTokens }) }))
    )

  it.effect("loses what was before its task for the answer or the turn after it, and nothing of its own", () =>
    Effect.gen(function* () {
      const { length } = yield* talked()
      const seen = new Set<unknown>()
      for (let more = 8; more <= 140; more += 4) {
        const { context, made, stop, text } = yield* talked(length + more)
        assert.deepStrictEqual(validateText(text).violations, [], `${more}`)
        assert.strictEqual(stop._tag, "Completed", `${more}`)
        for (const own of [task, "Which one?", "The first."]) assert.include(context, own)
        for (const { data } of made) assert.strictEqual(data["exchanges"], 1)
        for (const { data } of compactions(text)) seen.add(data["for"])
        assert.strictEqual(context.includes("Earlier:"), made.length === 0, `${more}`)
      }
      assert.deepStrictEqual([...seen].sort(), ["message", "turn"])
    })
  )
})
