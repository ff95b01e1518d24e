import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { Tool, Toolkit } from "effect/ai"
import { TestClock } from "effect/testing"
import { Agent, Contract, Registry } from "../src/index.ts"
import { layerScripted } from "../src/testing.ts"

const parameters = Schema.Struct({ city: Schema.String })
const weather = Tool.make("weather", { parameters, success: Schema.String }).annotate(Contract.Risk, "read")
const call = '<tool_call>\n{"name":"weather","arguments":{"city":"Oslo"}}\n</tool_call>'

it.effect("a service that does not answer is given up after 30 seconds", () =>
  Effect.gen(function* () {
    const tools = yield* Registry.fromToolkit(Toolkit.make(weather), { weather: () => Effect.never })
    const run = yield* Effect.forkChild(Agent.run({ task: "Weather in Oslo?", tools, limits: { toolMillis: 30_000 } }))
    yield* TestClock.adjust("30 seconds")
    const outcome = yield* Fiber.join(run)
    assert.deepStrictEqual([outcome.text, outcome.millis.tools], ["The service is down.", 30_000])
  }).pipe(Effect.provide(layerScripted({ turns: [call, "The service is down."] })))
)
