/**
 * What Writ costs on top of node-llama-cpp: the same turns, bare in a worker thread and through the whole of Writ's
 * engine, with somebody who reads along and without, in alternation in one process, one thread each. Also the time to open a model and to interrupt a turn, and a
 * count that must be 0: committed tokens evaluated again.
 */
import { once } from "node:events"
import * as Path from "node:path"
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { makeWorker } from "../src/actors/Inference.ts"
import type { GenerationEvent } from "../src/engine/Generation.ts"
import type { ModelSession } from "../src/engine/Model.ts"
import { control, text } from "../src/engine/Prompt.ts"
import type { BareRequest } from "./kit/bareEngine.ts"

const modelPath = Path.resolve(import.meta.dirname, "../models/tiny-tool-agent/tiny-tool-agent-q8_0.gguf")
const prompt = [
  control("<|im_start|>system\n"),
  text("You are a small local assistant. Use the tools when they help and answer briefly."),
  control("<|im_end|>\n<|im_start|>user\n"),
  text("What is 2 + 2?"),
  control("<|im_end|>\n")
]
const opening = [control("<|im_start|>assistant\n")]
/** A turn's default length: what a turn costs once is shared by this many tokens. */
const maxTokens = 512
const contextTokens = 1024
/** Pairs of engines, and turns of each kind with each pair. */
const openings = 12
const rounds = 4
const warmRounds = 2

const quantile = (values: ReadonlyArray<number>, q: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * q)]!
type Timed<A> = readonly [millis: number, value: A, cpuMillis: number]
/** By the clock, and by the processor in all threads: what a loaded machine can still tell. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Timed<A>, E, R> =>
  Effect.suspend(() => {
    const start = performance.now()
    const before = process.cpuUsage()
    return Effect.map(effect, (value) => {
      const { system, user } = process.cpuUsage(before)
      return [performance.now() - start, value, (system + user) / 1000] as const
    })
  })

const bareEngine = (tokens: ReadonlyArray<number>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const url = new URL("./kit/bareEngine.ts", import.meta.url)
      const worker = new Worker(url, { workerData: { modelPath, contextTokens, prompt: tokens } })
      await once(worker, "message")
      return worker
    }),
    (worker) =>
      Effect.promise(async () => {
        worker.postMessage("close")
        await once(worker, "exit")
      })
  )

const bareTurn = (worker: Worker, request: BareRequest) =>
  Effect.callback<ReadonlyArray<number>>((resume) => {
    const listen = (answer: { readonly tokens?: ReadonlyArray<number> }) => {
      if (answer.tokens === undefined) return
      worker.off("message", listen)
      resume(Effect.succeed(answer.tokens))
    }
    worker.on("message", listen)
    worker.postMessage(request)
  })

const writTurn = (session: ModelSession, live: boolean) =>
  Stream.runCollect(
    session.turn(opening, { maxTokens, stops: [], live, sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 1 } })
  ).pipe(
    Effect.tap(() => session.rollback),
    Effect.map((events) => events.flatMap((event) => (event._tag === "Piece" ? event.tokens : [])))
  )

/** Milliseconds from interrupting a turn that decodes until the session is back at its boundary. */
const interruption = (session: ModelSession) =>
  Effect.gen(function* () {
    const events = yield* Queue.unbounded<GenerationEvent>()
    const request = { maxTokens, stops: [], sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 1 } }
    const turn = Stream.runForEach(session.turn(opening, request), (event) => Queue.offer(events, event))
    const fiber = yield* Effect.forkChild(turn, { startImmediately: true })
    while ((yield* Queue.take(events))._tag !== "Piece") {
      /* prefill */
    }
    return (yield* timed(Fiber.interrupt(fiber)))[0]
  })

const names = ["silent", "streaming", "writ silent", "writ streaming"] as const
type Name = (typeof names)[number]
type Readings = Readonly<Record<Name, Array<number>>>
const noReadings = (): Readings => ({ silent: [], streaming: [], "writ silent": [], "writ streaming": [] })

interface Seen {
  readonly speeds: Readings
  readonly costs: Readings
  readonly openings: Array<number>
  readonly interruptions: Array<number>
  expected: string
  evaluatedAgain: number
}

/** Both opened anew: where a model's weights come to lie makes it faster or slower by a hundredth until it is closed. */
const opened = (seen: Seen, tokens: Effect.Success<typeof promptTokens>, at: number) =>
  Effect.gen(function* () {
    const writ = Effect.gen(function* () {
      const [openMillis, worker] = yield* timed(
        makeWorker({ modelPath, contextTokens, sequences: 1, threads: 1, gpu: false })
      )
      seen.openings.push(openMillis)
      const session = yield* worker.model.session
      yield* session.commit(prompt)
      return { worker, session }
    })
    const first = at % 2 === 0 ? yield* writ : undefined
    const bare = yield* bareEngine(tokens.prompt)
    const { session, worker } = first ?? (yield* writ)
    const start = (yield* worker.stats).evaluatedTokens
    let asked = 0
    for (let round = 0; round < warmRounds + rounds; round++) {
      // who goes first rotates, so that nobody always meets the warmer machine
      for (let place = 0; place < names.length; place++) {
        const name = names[(round + place) % names.length]!
        const request = { opening: tokens.opening, maxTokens, temperature: 0, seed: 1, streaming: name === "streaming" }
        const [millis, said, cpu] = yield* timed(
          name.startsWith("writ") ? writTurn(session, name === "writ streaming") : bareTurn(bare, request)
        )
        if (seen.expected === "") seen.expected = said.join()
        if (seen.expected !== said.join()) return yield* Effect.die(new Error("bare and Writ disagree on the tokens"))
        // each turn evaluates its opening, the pending token, and all but the last of what it generates
        if (name.startsWith("writ")) asked += tokens.opening.length + said.length
        if (round < warmRounds) continue
        seen.speeds[name].push((said.length / millis) * 1000)
        seen.costs[name].push(cpu / said.length)
      }
    }
    seen.evaluatedAgain += (yield* worker.stats).evaluatedTokens - start - asked
    for (let i = 0; i < 4; i++) seen.interruptions.push(yield* interruption(session))
  }).pipe(Effect.scoped)

const promptTokens = Effect.gen(function* () {
  const { model } = yield* makeWorker({ modelPath, contextTokens, sequences: 1, threads: 1, gpu: false })
  const tokens = yield* model.tokenize(opening)
  return { prompt: yield* model.tokenize(prompt), opening: tokens as BareRequest["opening"] }
}).pipe(Effect.scoped)

const program = Effect.gen(function* () {
  const seen: Seen = {
    speeds: noReadings(),
    costs: noReadings(),
    openings: [],
    interruptions: [],
    expected: "",
    evaluatedAgain: 0
  }
  const tokens = yield* promptTokens
  for (let at = 0; at < openings; at++) yield* opened(seen, tokens, at)
  const { costs, speeds } = seen
  // turns of one round follow one another: what the machine does meanwhile, it does to all of them
  const ratio = (writ: Name, bare: Name) =>
    quantile(
      speeds[writ].map((speed, round) => speed / speeds[bare][round]!),
      0.5
    )
  // the fastest tenth: what each can do when the machine is left alone, which is what a shared machine can still tell
  const fastest = (name: Name) => quantile(speeds[name], 0.9)
  return {
    "engine ratio to bare": ratio("writ silent", "silent"),
    "engine ratio to bare, streaming": ratio("writ streaming", "streaming"),
    "engine ratio of streaming to bare": ratio("writ streaming", "silent"),
    "engine ratio to bare, fastest tenth": fastest("writ silent") / fastest("silent"),
    "engine ratio to bare, streaming, fastest tenth": fastest("writ streaming") / fastest("streaming"),
    "engine processor time to bare": quantile(costs["writ silent"], 0.5) / quantile(costs.silent, 0.5),
    "engine tokens per second": fastest("writ silent"),
    "engine tokens per second, streaming": fastest("writ streaming"),
    "engine tokens per second, bare": fastest("silent"),
    "engine tokens per second, bare, streaming": fastest("streaming"),
    "engine tokens evaluated again": seen.evaluatedAgain,
    "engine open ms": quantile(seen.openings, 0.5),
    "engine interrupt ms": quantile(seen.interruptions, 0.5)
  }
})

export const engineBench = (): Promise<Record<string, number>> => Effect.runPromise(program)

if (import.meta.main) process.stdout.write(`${JSON.stringify(await engineBench(), null, 2)}\n`)
