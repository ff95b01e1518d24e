import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Agent from "../../src/effects/Agent.ts"
import { standard } from "../../src/effects/Governor.ts"
import * as Router from "../../src/effects/Router.ts"
import { layerScripted } from "../../src/testing.ts"
import { type AskedTurn, spying } from "../kit/routes.ts"
import * as TestTools from "../kit/tools.ts"

/** Which turns of it were asked for as if somebody read along. */
const livesOf = Effect.fnUntraced(function* <E, R>(
  work: (options: Agent.AgentOptions) => Effect.Effect<unknown, E, R>,
  options: Partial<Agent.AgentOptions> = {}
) {
  const { registry } = yield* TestTools.make()
  const asked: Array<AskedTurn> = []
  const engine = Layer.provideMerge(spying(asked), layerScripted({ turns: [], further: () => ({ text: "task" }) }))
  yield* Effect.provide(work({ task: "t", tools: registry, ...options }), engine)
  return asked.map(({ request }) => request.live)
})

describe("a turn is asked for as one that is read along", () => {
  it.effect("where the run has readers, and not where only its outcome is wanted", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* livesOf((options) => Stream.runDrain(Agent.stream(options))), [true])
      assert.deepStrictEqual(yield* livesOf(Agent.run), [false])
    })
  )

  it.effect("where each piece of it goes on record, with readers or without", () =>
    Effect.gen(function* () {
      const trace = { content: true, tokenEvents: true }
      assert.deepStrictEqual(yield* livesOf(Agent.run, { trace }), [true])
    })
  )

  it.effect("never where it decides the route, and never as one of several to choose among", () =>
    Effect.gen(function* () {
      const read = (options: Router.RoutedOptions) =>
        Effect.scoped(Effect.flatMap(Router.start(options), ({ outcome }) => outcome))
      assert.deepStrictEqual(yield* livesOf(read), [false, true])
      const gates = { candidates: 2, governor: standard }
      const sampled = yield* livesOf((options) => Stream.runDrain(Agent.stream(options)), {
        gates,
        sampling: { temperature: 0.8 }
      })
      assert.deepStrictEqual(sampled, [false, false, true])
    })
  )
})
