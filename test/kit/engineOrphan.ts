/**
 * Run as a program, not imported: opens a model in a process of its own, says that process's number, and generates until it
 * is ended from outside.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { makeWorker } from "../../src/actors/Inference.ts"
import { text } from "../../src/engine/Prompt.ts"

const [modelPath = ""] = process.argv.slice(2)

const program = Effect.scoped(
  Effect.gen(function* () {
    const worker = yield* makeWorker({ modelPath, threads: 1, gpu: false, isolation: "process" })
    const { pid } = yield* worker.host
    const session = yield* worker.model.session
    yield* session.commit([text("abc")])
    let told = false
    const turn = session.turn([], {
      maxTokens: 3000,
      stops: [],
      sampling: { temperature: 1, topK: 40, topP: 0.95, seed: 1 }
    })
    const once = Stream.runForEach(turn, (event) =>
      Effect.sync(() => {
        if (!told && event._tag === "Piece") process.stdout.write(`${pid}\n`)
        told ||= event._tag === "Piece"
      })
    )
    return yield* Effect.forever(Effect.andThen(once, session.rollback))
  })
)

NodeRuntime.runMain(program, { disableErrorReporting: true })
