/**
 * What Writ costs on top of node-llama-cpp: the same turns, bare in a worker thread and through the whole of Writ's
 * engine, in alternation in one process, one thread each. Also the time to open a model and to interrupt a turn, and a
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
const rounds = 34

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

const writTurn = (session: ModelSession, seed: number, temperature: number) =>
  Stream.runCollect(
    session.turn(opening, { maxTokens, stops: [], sampling: { temperature, topK: 40, topP: 0.95, seed } })
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

const program = Effect.gen(function* () {
  const [openMillis, worker] = yield* timed(
    makeWorker({ modelPath, contextTokens, sequences: 1, threads: 1, gpu: false })
  )
  const session = yield* worker.model.session
  yield* session.commit(prompt)
  const bare = yield* bareEngine(yield* worker.model.tokenize(prompt))
  const openingTokens = (yield* worker.model.tokenize(opening)) as BareRequest["opening"]
  const start = (yield* worker.stats).evaluatedTokens
  const speeds: Record<"silent" | "streaming" | "writ", Array<number>> = { silent: [], streaming: [], writ: [] }
  const costs: Record<"silent" | "streaming" | "writ", Array<number>> = { silent: [], streaming: [], writ: [] }
  const names = ["silent", "streaming", "writ"] as const
  let asked = 0
  let expected = ""
  for (let round = 0; round < rounds; round++) {
    // who goes first rotates, so that nobody always meets the warmer machine
    for (let place = 0; place < names.length; place++) {
      const name = names[(round + place) % names.length]!
      const bareRequest = {
        opening: openingTokens,
        maxTokens,
        temperature: 0,
        seed: 1,
        streaming: name === "streaming"
      }
      const [millis, tokens, cpu] = yield* timed(
        name === "writ" ? writTurn(session, 1, 0) : bareTurn(bare, bareRequest)
      )
      if (expected === "") expected = tokens.join()
      if (expected !== tokens.join()) return yield* Effect.die(new Error("bare and Writ disagree on the tokens"))
      if (name === "writ") asked += openingTokens.length + tokens.length
      if (round < 4) continue
      speeds[name].push((tokens.length / millis) * 1000)
      costs[name].push(cpu / tokens.length)
    }
  }
  const evaluated = (yield* worker.stats).evaluatedTokens - start
  const interruptions: Array<number> = []
  for (let i = 0; i < 10; i++) interruptions.push(yield* interruption(session))
  // the fastest tenth: what each can do when the machine is left alone, which is what a shared machine can still tell
  const silent = quantile(speeds.silent, 0.9)
  const streaming = quantile(speeds.streaming, 0.9)
  const writ = quantile(speeds.writ, 0.9)
  // the same by neighbours: a round's turns follow one another
  const ofRounds = quantile(
    speeds.writ.map((speed, round) => speed / speeds.silent[round]!),
    0.5
  )
  return {
    "engine ratio to bare": writ / silent,
    "engine ratio to bare, median of rounds": ofRounds,
    "engine ratio to bare, streaming": writ / streaming,
    "engine processor time to bare": quantile(costs.writ, 0.5) / quantile(costs.silent, 0.5),
    "engine tokens per second": writ,
    "engine tokens per second, bare": silent,
    "engine tokens per second, bare, streaming": streaming,
    // each turn evaluates its opening, the pending token, and all but the last of what it generates
    "engine tokens evaluated again": evaluated - asked,
    "engine open ms": openMillis,
    "engine interrupt ms": quantile(interruptions, 0.5)
  }
}).pipe(Effect.scoped)

export const engineBench = (): Promise<Record<string, number>> => Effect.runPromise(program)

if (import.meta.main) process.stdout.write(`${JSON.stringify(await engineBench(), null, 2)}\n`)
