import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { Agent, Builtin, Outcome, Registry, Wiring } from "../src/index.ts"

const program = Effect.gen(function* () {
  const tools = yield* Registry.pick(yield* Builtin.registry, ["calculate", "lookup"])
  const outcome = yield* Agent.run({
    task: "What is 17.5% of 240?",
    tools,
    limits: { modelTurns: 4, wallMillis: 120_000 }
  })
  yield* Console.log(outcome.text ?? `stopped: ${outcome.stop._tag}`)
  yield* Console.log(
    `${outcome.toolCalls} call, exit code ${Outcome.exitCode(outcome.stop)}, record: ${outcome.tracePath}`
  )
})

// The model that ships, in its own thread; tools in a pool; trace and artifacts under .writ/runs.
program.pipe(Effect.provide(Wiring.layer()), NodeRuntime.runMain)
