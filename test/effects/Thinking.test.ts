import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { validateText } from "../../src/effects/trace/TraceValidator.ts"
import { play } from "../kit/run.ts"

const limits = { thinkTokens: 6 }
const thought = "I wonder whether this could be thought about for a very long time. ".repeat(4)

/** A turn that reasons for long and then answers, as each family writes it. */
const answers: Readonly<Record<string, string>> = {
  qwen3: `<think>\n${thought}\n</think>\n\nIt is 5.`,
  "deepseek-r1": `<think>\n${thought}\n</think>\n\nIt is 5.`,
  "qwen3.5": `${thought}\n</think>\n\nIt is 5.`,
  mistral: `[THINK]${thought}[/THINK]It is 5.`,
  gemma4: `<|channel>thought\n${thought}\n<channel|>It is 5.`,
  "gpt-oss": `<|channel|>analysis<|message|>${thought}<|end|><|start|>assistant<|channel|>final<|message|>It is 5.`
}

const closings = (events: ReadonlyArray<{ readonly event_type: string; readonly data: Record<string, unknown> }>) =>
  events.flatMap(({ data, event_type: type }) => (type === "model_call_finished" ? [data["think_closed"]] : []))

describe("a run with a budget of reasoning", () => {
  for (const [codec, text] of Object.entries(answers)) {
    it.effect(`closes the reasoning of ${codec} once, records it, and answers`, () =>
      Effect.gen(function* () {
        const free = yield* play([text], { codec })
        const held = yield* play([text], { codec, limits })
        for (const { outcome } of [free, held]) {
          assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "It is 5." })
        }
        assert.deepStrictEqual(closings(free.events), [undefined])
        assert.deepStrictEqual(closings(held.events), [6])
        assert.include(free.context, thought.trim())
        assert.notInclude(held.context, thought.trim())
        assert.include(held.context, "I wonder")
      })
    )
  }

  it.effect("lets gpt-oss call behind reasoning that was closed for it, and counts each turn anew", () =>
    Effect.gen(function* () {
      const analysis = `<|channel|>analysis<|message|>${thought}<|end|><|start|>assistant`
      const call = ' to=functions.add<|channel|>commentary json<|message|>{"a": 2, "b": 3}'
      const { context, events, outcome, performed, text } = yield* play(
        [analysis + call, `${analysis}<|channel|>final<|message|>It is 5.`],
        { codec: "gpt-oss", limits }
      )
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "It is 5." })
      assert.lengthOf(performed, 1)
      assert.deepStrictEqual(closings(events), [6, 6])
      assert.include(context, `<|end|><|start|>assistant${call}<|call|>`)
      assert.deepStrictEqual(validateText(text).violations, [])
    })
  )

  it.effect("does not let gpt-oss reason on: what begins again is ended, and the answer begun for it", () =>
    Effect.gen(function* () {
      const analysis = "<|channel|>analysis<|message|>"
      const onceClosed = `${analysis}${thought}<|end|><|start|>assistant<|channel|>final<|message|>It is 5.`
      const { events, outcome } = yield* play([{ text: `${analysis}${thought}`, onceClosed }], {
        codec: "gpt-oss",
        limits
      })
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "It is 5." })
      assert.deepStrictEqual(closings(events), [6])
    })
  )
})
