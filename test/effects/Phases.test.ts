import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Agent from "../../src/effects/Agent.ts"
import type { AgentEvent } from "../../src/effects/AgentEvent.ts"
import * as Phases from "../../src/effects/Phases.ts"
import type { RunOptions } from "../../src/effects/Run.ts"
import type { Script } from "../../src/engine/ScriptedModel.ts"
import { layerScripted } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { play } from "../kit/run.ts"
import { call, type Line } from "../kit/script.ts"
import * as TestTools from "../kit/tools.ts"

const wide = {
  thinking: undefined,
  limits: { outputTokens: 512, thinkTokens: Infinity },
  sampling: { temperature: 0.7, topK: 40, topP: 0.95 }
}
const add = call("add", { a: 2, b: 3 })

const phasesOf = (events: ReadonlyArray<Line>) =>
  events.flatMap(({ data, event_type: type }) => (type === "phase_started" ? [[data["turn"], data["phase"]]] : []))

/** What a subscriber is shown of a run, text and reasoning as they come. */
const shown = (turns: Script["turns"], options: RunOptions = {}, tools = true) =>
  Effect.gen(function* () {
    const { registry } = yield* TestTools.make()
    const stream = Agent.stream({ task: "t", tools: tools ? registry : Registry.none, ...options })
    const seen: Array<AgentEvent> = []
    yield* Stream.runForEach(stream, (event) => Effect.sync(() => void seen.push(event)))
    return seen.flatMap((event) =>
      event._tag === "Text" || event._tag === "Reasoning" || event._tag === "Retracted"
        ? [event._tag === "Retracted" ? "(retracted)" : event.text]
        : []
    )
  }).pipe(Effect.provide(layerScripted({ turns })))

describe("the settings of phases", () => {
  it("are the run's, where a phase has none of its own", () => {
    const { chat, classify, plan, report, tool } = Phases.tableOf(wide)
    assert.deepStrictEqual(plan, { thinking: undefined, stream: false, ...wide.limits, ...wide.sampling })
    assert.deepStrictEqual(tool, plan)
    assert.deepStrictEqual(report, { ...plan, stream: true })
    assert.deepStrictEqual(chat, { ...plan, thinking: false, stream: true })
    assert.deepInclude(classify, { thinking: false, outputTokens: 64, temperature: 0, stream: false })
  })

  it("say more than the run does, but never go beyond its limits", () => {
    const table = Phases.tableOf(
      { ...wide, limits: { outputTokens: 40, thinkTokens: 10 } },
      { plan: { thinking: true, outputTokens: 4000, thinkTokens: 5 }, tool: { temperature: 0 } }
    )
    assert.deepInclude(table.plan, { thinking: true, outputTokens: 40, thinkTokens: 5 })
    assert.deepInclude(table.tool, { temperature: 0, thinkTokens: 10 })
    assert.strictEqual(table.classify.outputTokens, 40)
  })

  it("never let a decision reason, take more than 64 tokens or be shown", () => {
    const said = { classify: { thinking: true, outputTokens: 400, stream: true, temperature: 0.5 } }
    const { classify } = Phases.tableOf({ ...wide, thinking: true }, said)
    assert.deepInclude(classify, { thinking: false, outputTokens: 64, stream: false, temperature: 0.5 })
  })

  it("come back from the record as they were", () => {
    for (const settings of Object.values(Phases.tableOf(wide))) {
      assert.deepStrictEqual(Phases.fromRecord(Phases.recorded(settings)), settings)
    }
  })

  it("are refused by phase and field", () => {
    assert.strictEqual(Phases.problemWith({ plan: { outputTokens: 0 } }), "phases.plan.outputTokens: must be 1 or more")
    assert.strictEqual(Phases.problemWith({ chat: { topK: 1.5 } }), "phases.chat.topK: must be a whole number")
    assert.include(Phases.problemWith({ dream: {} } as never), 'no phase "dream"')
    assert.isUndefined(Phases.problemWith({ plan: { temperature: 0.3, topP: 0.5, thinkTokens: Infinity } }))
  })

  it.effect("and so by a run, also a phase that there is none of and a number that a limit would have hidden", () =>
    Effect.gen(function* () {
      const wrong = [{ dream: {} }, { plan: { outputTokens: 512.5 } }, { tool: { thinkTokens: Number.NaN } }]
      for (const phases of wrong) {
        const error = yield* Effect.flip(play(["x"], { phases: phases as never, limits: { outputTokens: 100 } }))
        assert.deepInclude(error, { _tag: "InvalidOptions" })
        assert.include(error.message, "phases")
      }
    })
  )
})

describe("the phase of a turn", () => {
  it.effect("is plan behind the user's text, tool behind results and feedback, and is said when it changes", () =>
    Effect.gen(function* () {
      const bad = "<tool_call>\n{\n</tool_call>"
      const { events } = yield* play([add, bad, add, "It is 5."])
      assert.deepStrictEqual(phasesOf(events), [
        [0, "plan"],
        [1, "tool"]
      ])
      const turns = events.filter(({ event_type: type }) => type === "model_call_started")
      assert.deepStrictEqual(
        turns.map(({ data }) => data["phase"]),
        ["plan", "tool", "tool", "tool"]
      )
    })
  )

  it.effect("is report where there are no tools, and what the caller says where they say it", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(phasesOf((yield* play(["hi"], { tools: Registry.none } as never)).events), [[0, "report"]])
      const { events } = yield* play([add, "5"], { phase: "report", phases: { report: { outputTokens: 100 } } })
      assert.deepStrictEqual(phasesOf(events), [[0, "report"]])
      const caps = events.flatMap(({ data }) => (data["max_tokens"] === undefined ? [] : [data["max_tokens"]]))
      assert.deepStrictEqual(caps, [100, 100, 100])
      const about = events.find(({ event_type: type }) => type === "provenance")!.data
      assert.deepInclude(about["profile"], { phase: "report" })
      assert.sameMembers(Object.keys(about["phases"] as object), [...Phases.phaseNames])
    })
  )

  it.effect("decides on reasoning: each turn's opening has the switch of its phase", () =>
    Effect.gen(function* () {
      const { context } = yield* play(
        [`<think>\nhm\n</think>\n\n${add}`, "It is 5."].map((text) => text.replace("+", "+")),
        {
          codec: "qwen3",
          phases: { plan: { thinking: true }, tool: { thinking: false } }
        }
      )
      assert.include(context, "<|im_start|>assistant\n<think>\nhm")
      assert.include(context, "<|im_start|>assistant\n<think>\n\n</think>\n\nIt is 5.")
    })
  )
})

describe("who sees a turn while it is written", () => {
  const answer = { text: ["It ", "is ", "5."] }

  it.effect("nobody, in turns that may become calls: an answer is shown whole once it is one", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* shown([`Let me add.\n${add}`, answer]), ["It is 5."])
      assert.deepStrictEqual(yield* shown(["Oops <tool_call>\n{", answer]), ["It is 5."])
    })
  )

  it.effect("everybody, in a report; and wherever the caller wants it, with what was no answer taken back", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* shown([answer], {}, false), ["It ", "is ", "5."])
      const all = yield* shown([`Let me add.\n${add}`, answer], { phases: Phases.streamAll })
      assert.deepStrictEqual(all, ["Let me add.\n", "(retracted)", "It ", "is ", "5."])
    })
  )

  it.effect("nobody, of a question that is an action; of a text that only began like one, all of it", () =>
    Effect.gen(function* () {
      const split = (text: string) => ({ text: [...text] })
      assert.deepStrictEqual(yield* shown([split('CLARIFY("Which?")')], {}, false), [])
      const text = 'CLARIFY("Which?") is how one asks.'
      assert.strictEqual((yield* shown([split(text)], {}, false)).join(""), text)
    })
  )

  it.effect("an answer that was cut and went on is shown once, whole", () =>
    Effect.gen(function* () {
      const turns = [{ text: ["a", "b", "c"] }, { text: ["c", "d"] }]
      assert.deepStrictEqual(yield* shown(turns, { limits: { outputTokens: 2 } }), ["abcd"])
    })
  )
})
