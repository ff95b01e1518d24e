import { assert, describe, it } from "@effect/vitest"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Agent from "../../src/effects/Agent.ts"
import { standard } from "../../src/effects/Governor.ts"
import { Approval, allowAll } from "../../src/effects/Policy.ts"
import { layerScripted, MemoryTraces } from "../../src/testing.ts"
import * as Registry from "../../src/tools/Registry.ts"
import { acts } from "../kit/contracts.ts"
import { call, lines } from "../kit/script.ts"

const Send = acts(
  "external",
  Tool.make("send", {
    description: "Sends.",
    parameters: Schema.Struct({ to: Schema.String, pages: Schema.Int }),
    success: Schema.String
  }),
  {
    cost: ({ pages }) => pages,
    pre: ({ to }) => Effect.succeed(to === "nobody" ? [{ reason: "nobody is not there" }] : [])
  }
)

const send = (to: string, pages: number) => call("send", { to, pages })

const play = Effect.fnUntraced(function* (turns: ReadonlyArray<string>, options: Partial<Agent.AgentOptions> = {}) {
  const sent: Array<string> = []
  const registry = yield* Registry.fromToolkit(Toolkit.make(Send), {
    send: ({ to }) => Effect.sync(() => `sent ${sent.push(to)}`)
  })
  const all = { content: true, tokenEvents: false }
  const run = Agent.run({
    task: "t",
    tools: registry,
    sampling: { temperature: 0.8 },
    gates: { candidates: 3, governor: standard },
    trace: all,
    ...options
  })
  return yield* Effect.gen(function* () {
    const outcome = yield* run
    return { outcome, sent, events: lines((yield* MemoryTraces).text("run-1")) }
  }).pipe(Effect.provideService(Approval, allowAll), Effect.provide(layerScripted({ turns })))
})

describe("sampled candidates", () => {
  it.effect("of several proposals the one worth most is generated in earnest and performed", () =>
    Effect.gen(function* () {
      // Three samples, the chosen one again; then three answers and one of them again.
      const turns = [send("a", 5), send("b", 2), send("c", 4), send("b", 2), "x", "y", "z", "x"]
      const { events, outcome, sent } = yield* play(turns)
      assert.deepStrictEqual(sent, ["b"])
      assert.deepStrictEqual(outcome.stop, { _tag: "Completed", text: "x" })
      const [choice] = events.filter(({ event_type }) => event_type === "proposal_scored")
      assert.strictEqual(choice!.data["chosen"], "sample-1")
      const scores = (choice!.data["candidates"] as Array<{ id: string; score: number }>).map(({ id, score }) => [
        id,
        score
      ])
      assert.deepStrictEqual(scores, [
        ["sample-0", 5],
        ["sample-1", 8],
        ["sample-2", 6],
        ["do_nothing", 0]
      ])
      const samples = events.filter(({ event_type }) => event_type === "candidate_sampled")
      assert.strictEqual(new Set(samples.slice(0, 3).map(({ data }) => data["seed"])).size, 3)
      const kept = events.find(({ event_type }) => event_type === "model_call_started")
      assert.strictEqual(kept?.data["seed"], samples[1]?.data["seed"])
    })
  )

  it.effect("an illegal sample is never chosen, however cheap it is, and losers leave nothing in the context", () =>
    Effect.gen(function* () {
      const turns = [send("nobody", 0), '<tool_call>\n{"name": "send"', send("b", 9), send("b", 9), "x", "y", "z", "x"]
      const { events, sent } = yield* play(turns)
      assert.deepStrictEqual(sent, ["b"])
      const [choice] = events.filter(({ event_type }) => event_type === "proposal_scored")
      const legal = (choice!.data["candidates"] as Array<{ id: string; legal: boolean }>).map(({ legal }) => legal)
      assert.deepStrictEqual(legal, [false, false, true, true])
      assert.strictEqual(choice!.data["chosen"], "sample-2")
      const started = events.filter(({ event_type }) => event_type === "model_call_started")
      assert.strictEqual(started.length, 2)
    })
  )

  it.effect("where nothing is worth doing, the gates of the first sample say so", () =>
    Effect.gen(function* () {
      const turns = [send("a", 50), send("b", 20), send("c", 40), send("a", 50), "x", "y", "z", "x"]
      const { events, sent } = yield* play(turns)
      assert.deepStrictEqual(sent, [])
      const rejected = events.find(({ event_type }) => event_type === "tool_call_rejected")
      assert.deepInclude(rejected?.data, {
        kind: "not_chosen",
        class: "authorization",
        stage: "governor",
        effect: "none"
      })
    })
  )

  it.effect("samples at temperature 0 would all be the same, and that is refused before anything is generated", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(play(["x"], { sampling: { temperature: 0 } }))
      assert.match(String(error), /temperature above 0/)
    })
  )
})
