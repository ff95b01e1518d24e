/** Worlds in which something was wrong once, as small as they could be made. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { replay } from "../../src/effects/trace/Replay.ts"
import { readLine, type TraceRecord } from "../../src/effects/trace/TraceReader.ts"
import { problemsOf } from "../kit/simulation/checks.ts"
import { playScenario, probe } from "../kit/simulation/play.ts"
import type { EngineFault, RunScenario, Scenario } from "../kit/simulation/scenario.ts"
import { registry } from "../kit/simulation/tools.ts"

const run: RunScenario = { ...probe, turns: [{ text: "Hello." }] }

const world = (engine: ReadonlyArray<EngineFault>, more: Partial<RunScenario>): Scenario => ({
  seed: 0,
  sessions: [{ codec: "qwen2.5", contextTokens: 1_048_576, engine, runs: [{ ...run, ...more }] }],
  pool: [],
  ledger: [],
  artifacts: []
})

/** The record of its first run, when nothing is wrong with it. */
const played = Effect.fnUntraced(function* (scenario: Scenario) {
  const seen = yield* playScenario(scenario)
  assert.deepStrictEqual(problemsOf(seen), [])
  const records = seen.world.runs[0]!.lines.split("\n").filter((line) => line !== "")
  return records.map((line) => readLine(Buffer.from(line)) as TraceRecord)
})

const about = (records: ReadonlyArray<TraceRecord>) =>
  records.map(({ event_type: type }) => type).filter((type) => /^model_call|^turn|^engine|^run_[^s]|^routed/.test(type))

describe("a record is right, and repeats,", () => {
  /** It was opened again before the turn. */
  const reopened = { on: "turn", kind: "reopened", at: 1 } as const
  const endings: Readonly<Record<string, Partial<RunScenario>>> = {
    "is cancelled": { turns: [{ text: "Hello.", millisPerToken: 900 }], stops: [{ how: "cancel", atMillis: 500 }] },
    "reaches the end of its time": { turns: [{ text: "Hello.", millisPerToken: 900 }], limits: { wallMillis: 500 } },
    fails: { turns: [{ text: "Hello.", fault: { before: 1, kind: "failed" } }] },
    breaks: { turns: [{ text: "Hello.", fault: { before: 1, kind: "defect" } }] }
  }
  for (const [how, more] of Object.entries(endings)) {
    it.live(`when an engine died while nothing was under way, and the turn after that ${how}`, () =>
      Effect.gen(function* () {
        const records = yield* played(world([reopened], more))
        const [last] = about(records).slice(-1)
        assert.deepStrictEqual(about(records), ["model_call_started", "engine_restarted", "turn_rolled_back", last])
        assert.strictEqual(records.at(-1)!.data["turns"], 1)
        const verdict = yield* replay(records, { tools: registry })
        assert.deepStrictEqual(verdict, { same: true, compared: records.length } as never)
      })
    )
  }

  it.live("when an engine died under a talk, and so under the task that it was handed over to", () =>
    Effect.gen(function* () {
      const died = { on: "commit", kind: "restarted", at: 2 } as const
      const records = yield* played(world([died], { route: "chat", turns: [{ text: "TASK()" }, { text: "Done." }] }))
      const restarts = records.filter(({ event_type: type }) => type === "engine_restarted")
      assert.deepStrictEqual(
        restarts.map(({ data }) => data["restarts"]),
        [1, 1]
      )
      const verdict = yield* replay(records, { tools: registry })
      assert.deepStrictEqual(verdict, { same: true, compared: records.length } as never)
    })
  )
})
