import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Outcome } from "../../src/effects/Outcome.ts"
import { resume } from "../../src/effects/Resume.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { layerScripted, MemoryTraces, ScriptedSessions } from "../../src/testing.ts"
import { play } from "../kit/run.ts"
import { call, calls, lines } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const records = (text: string): ReadonlyArray<TraceRecord> =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => readLine(Buffer.from(line)) as TraceRecord)

const turns = [
  call("add", { a: 2, b: 3 }),
  "<tool_call>\n{broken\n</tool_call>",
  calls(["add", { a: 1, b: 1 }], ["nope", {}], ["save", { name: "a.txt", content: "x" }]),
  "done"
]

/** The history as it was said, without positions: evaluation in other batches may count tokens differently. */
const said = (outcome: Outcome) =>
  outcome.transcript.map(({ span: _, ...entry }) =>
    entry.kind === "assistant" ? { ...entry, turn: entry.turn } : entry
  )

/** Continues the run recorded in `text` with what its script has left. */
const resumed = (parts: ReadonlyArray<string>, rest: ReadonlyArray<string>, answer?: string) =>
  Effect.gen(function* () {
    const { performed, registry } = yield* TestTools.make()
    const outcome = yield* resume({
      traces: parts.map(records),
      tools: registry,
      trace: { content: true },
      ...(answer === undefined ? {} : { answer })
    })
    const text = (yield* MemoryTraces).text(outcome.runId)
    const context = (yield* ScriptedSessions).map((log) => log.committed()).join("")
    return { outcome, performed, text, context }
  }).pipe(Effect.provide(layerScripted({ turns: rest })))

/** How many turns of the script a trace has kept. */
const kept = (text: string): number =>
  lines(text).filter(
    (line) => line.event_type === "session_state_changed" && String(line.data["role"]).startsWith("assistant_")
  ).length

describe("resuming a run", () => {
  it.effect("from any event on, comes to the same history, answer and context", () =>
    Effect.gen(function* () {
      const whole = yield* play(turns)
      const all = whole.text.split("\n").filter((line) => line !== "")
      for (let cut = 2; cut < all.length; cut++) {
        const text = `${all.slice(0, cut).join("\n")}\n`
        const { context, outcome } = yield* resumed([text], turns.slice(kept(text)))
        assert.deepStrictEqual(outcome.stop, whole.outcome.stop, `cut at ${cut}`)
        assert.deepStrictEqual(said(outcome), said(whole.outcome), `cut at ${cut}`)
        assert.strictEqual(context, whole.context, `cut at ${cut}`)
      }
    })
  )

  it.effect("never performs again what settled", () =>
    Effect.gen(function* () {
      const whole = yield* play(turns)
      const all = whole.text.split("\n").filter((line) => line !== "")
      const finished = all.findIndex((line) => line.includes('"tool_execution_finished"'))
      const text = `${all.slice(0, finished + 1).join("\n")}\n`
      const { performed } = yield* resumed([text], turns.slice(1))
      assert.deepStrictEqual(performed, ['add:{"a":1,"b":1}', 'save:{"name":"a.txt","content":"x"}'])
    })
  )

  it.effect("twice, goes on from both parts", () =>
    Effect.gen(function* () {
      const whole = yield* play(turns)
      const all = whole.text.split("\n").filter((line) => line !== "")
      const first = `${all.slice(0, 12).join("\n")}\n`
      const second = yield* resumed([first], turns.slice(kept(first)))
      const cut = second.text.split("\n").slice(0, 9).join("\n")
      const third = yield* resumed([first, `${cut}\n`], turns.slice(kept(first) + kept(`${cut}\n`)))
      assert.deepStrictEqual(said(third.outcome), said(whole.outcome))
      assert.match(third.outcome.runId, /-r3$/)
    })
  )

  it.effect("says where it resumed and numbers its turns onwards", () =>
    Effect.gen(function* () {
      const whole = yield* play(turns)
      const text = whole.text.split("\n").slice(0, 16).join("\n")
      const { text: trace } = yield* resumed([`${text}\n`], turns.slice(1))
      const resumedAt = lines(trace).find((line) => line.event_type === "run_resumed")
      assert.deepInclude(resumedAt?.data, { from_run: "run-1", root_run: "run-1", from_seq: 16, next_turn: 1 })
      const started = lines(trace).filter((line) => line.event_type === "model_call_started")
      assert.deepStrictEqual(
        started.map((line) => line.data["turn"]),
        [1, 2, 3]
      )
    })
  )

  it.effect("a run that asked goes on with the user's answer", () =>
    Effect.gen(function* () {
      const asked = yield* play([call("clarify", { question: "Which file?" })])
      const { context, outcome } = yield* resumed([asked.text], ["Reading a.txt."], "a.txt")
      assert.strictEqual(outcome.stop._tag, "Completed")
      assert.include(context, '{"ok":true,"result":"a.txt"}')
    })
  )

  it.effect("an answer goes to the call that asked, and to no other that asks or was refused", () =>
    Effect.gen(function* () {
      const ask = (question: unknown) => ["clarify", { question }] as const
      const asked = yield* play([calls(ask(5), ["add", { a: 1, b: 1 }], ask("Which?"), ask("And?"))])
      assert.deepStrictEqual(asked.outcome.stop, { _tag: "NeedsInput", question: "Which?" })
      const { outcome, performed, text } = yield* resumed([asked.text], ["done"], "A")
      assert.deepStrictEqual([outcome.text, performed], ["done", ['add:{"a":1,"b":1}']])
      const told = lines(text).filter(({ event_type: type }) => type === "tool_result_committed")
      const answers = told.map(({ data }) => JSON.parse(String(data["answer"])) as Record<string, unknown>)
      assert.deepStrictEqual(
        answers.map((answer) => answer["kind"] ?? answer["result"]),
        ["invalid_arguments", 2, "A", "not_executed"]
      )
      assert.match(JSON.stringify(answers[3]), /another question of this turn/)
      assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("refuses an answer where nothing is asked any more, rather than lose it", () =>
    Effect.gen(function* () {
      const refused = Effect.fnUntraced(function* (parts: ReadonlyArray<string>) {
        const error = yield* Effect.flip(resumed(parts, ["done"], "A"))
        assert.match(error.message, /has not asked anything that is still open/)
      })
      const fails = { text: "x", fault: { before: 0, kind: "failed" } } as const
      yield* refused([(yield* play([call("add", { a: 1, b: 1 }), fails])).text])
      const open = (yield* play([call("add", { a: 1, b: 1 }), "x"])).text
      yield* refused([`${open.slice(0, open.indexOf('"tool_execution_finished"')).replace(/\n[^\n]*$/, "")}\n`])
      for (const question of ['CLARIFY("Which?")', call("clarify", { question: "Which?" })]) {
        const asked = yield* play([question])
        const second = yield* resumed([asked.text], [call("add", { a: 1, b: 1 })], "A")
        assert.strictEqual(second.outcome.stop._tag, "Failed")
        yield* refused([asked.text, second.text])
        // As long as the answer is not in the context, the question is open.
        const all = second.text.split("\n")
        const begun = all.slice(0, 1 + all.findIndex((line) => line.includes('"run_resumed"'))).join("\n")
        const again = yield* resumed([asked.text, `${begun}\n`], ["done"], "A")
        assert.strictEqual(again.outcome.text, "done")
      }
    })
  )

  it.effect("refuses a run that completed, one without content, and one whose tools have changed", () =>
    Effect.gen(function* () {
      const whole = yield* play(turns)
      const hidden = yield* play(turns, { trace: { content: false } })
      const completed = yield* Effect.flip(resumed([whole.text], []))
      const contentless = yield* Effect.flip(resumed([hidden.text], []))
      const changed = whole.text
        .replace(/"tools_hash":"./, '"tools_hash":"0')
        .split("\n")
        .slice(0, 5)
        .join("\n")
      const stale = yield* Effect.flip(resumed([`${changed}\n`], []))
      assert.include(completed.message, "completed")
      assert.include(contentless.message, "--trace-content")
      assert.include(stale.message, "stale_contract")
    })
  )
})
