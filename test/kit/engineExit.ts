/**
 * Run as a program, not imported: opens a model in a thread and leaves in one of several ways in one of several phases.
 * `engineExit.ts MODEL PHASE(load|prefill|decode|embed|close) WAY(exit|error|SIGINT) DELAY_MILLIS`
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { makeEmbedder, makeWorker } from "../../src/actors/Inference.ts"
import { text } from "../../src/engine/Prompt.ts"

const [modelPath = "", phase, way, delay] = process.argv.slice(2)

const leave = () => {
  if (way === "exit") process.exit(0)
  if (way === "SIGINT") process.kill(process.pid, "SIGINT")
  if (way === "error") throw new Error("uncaught on purpose")
}
/** Outside of any fiber, as a crash is. */
const leaveSoon = Effect.sync(() => {
  setImmediate(leave)
})

const program = Effect.scoped(
  Effect.gen(function* () {
    if (phase === "load") yield* Effect.forkChild(Effect.andThen(Effect.sleep(Number(delay)), leaveSoon))
    if (phase === "embed") {
      const { embed } = yield* makeEmbedder({ modelPath, threads: 1, gpu: false })
      yield* embed(["abc"])
      const texts = Array.from({ length: 20 }, () => "abcdfg ".repeat(570))
      return yield* Effect.all([embed(texts), Effect.andThen(Effect.sleep(Number(delay)), leaveSoon)], {
        concurrency: "unbounded"
      })
    }
    const worker = yield* makeWorker({ modelPath, threads: 1, gpu: false })
    // a load that was faster than the delay waits for it
    if (phase === "load") return yield* Effect.never
    const session = yield* worker.model.session
    const long = [text("many words and more ".repeat(170))]
    if (phase === "prefill") {
      const watch = Effect.gen(function* () {
        while ((yield* worker.stats).evaluatedTokens === 0) yield* Effect.yieldNow
        yield* leaveSoon
      })
      yield* Effect.all([session.commit(long), watch], { concurrency: "unbounded" })
    }
    yield* session.commit([text("abc")])
    const turn = session.turn([], {
      maxTokens: phase === "decode" ? 3000 : 3,
      stops: [],
      sampling: { temperature: 1, topK: 40, topP: 0.95, seed: 1 }
    })
    let leaving = false
    yield* Stream.runForEach(turn, (event) => {
      if (phase !== "decode" || event._tag !== "Piece" || leaving) return Effect.void
      leaving = true
      return leaveSoon
    })
    process.stdout.write("finished\n")
  })
)

NodeRuntime.runMain(program, { disableErrorReporting: true })
