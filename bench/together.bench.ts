/**
 * Four sessions at once: tokens per second of all together through Writ's engine, in its thread as in production and in this
 * thread, against the shortest loop over four sequences of the library; in alternation, one thread each. Also what it costs to
 * roll back four thousand tokens in, and what is still evaluated once a prompt was told to stop.
 */
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { makeWorker } from "../src/actors/Inference.ts"
import { makeControl } from "../src/engine/LlamaControl.ts"
import { load } from "../src/engine/LlamaModel.ts"
import type { ModelSession } from "../src/engine/Model.ts"
import { control, text } from "../src/engine/Prompt.ts"
import { makeGguf } from "../test/kit/gguf.ts"
import type { BatchRequest } from "./kit/bareBatch.ts"

const modelPath = Path.resolve(import.meta.dirname, "../models/tiny-tool-agent/tiny-tool-agent-q8_0.gguf")
const prompt = [
  control("<|im_start|>system\n"),
  text("You are a small local assistant. Use the tools when they help and answer briefly."),
  control("<|im_end|>\n<|im_start|>user\n"),
  text("What is 2 + 2?"),
  control("<|im_end|>\n")
]
const opening = [control("<|im_start|>assistant\n")]
const sampling = { temperature: 0, topK: 40, topP: 0.95, seed: 1 }
const sequences = 4
const maxTokens = 256
const contextTokens = 512
const rounds = 22

const quantile = (values: ReadonlyArray<number>, q: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * q)]!
const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)
/** Milliseconds of the clock, and of the processor in all threads: what a loaded machine can still tell. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const start = performance.now()
    const before = process.cpuUsage()
    return Effect.map(effect, (value) => {
      const { system, user } = process.cpuUsage(before)
      return [performance.now() - start, value, (system + user) / 1000] as const
    })
  })

const bareBatch = (tokens: ReadonlyArray<number>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const url = new URL("./kit/bareBatch.ts", import.meta.url)
      const worker = new Worker(url, { workerData: { modelPath, contextTokens, sequences, prompt: tokens } })
      await once(worker, "message")
      return worker
    }),
    (worker) =>
      Effect.promise(async () => {
        worker.postMessage("close")
        await once(worker, "exit")
      })
  )

const bareTurns = (worker: Worker, request: BatchRequest) =>
  Effect.promise(async () => {
    worker.postMessage(request)
    const [answer] = (await once(worker, "message")) as [{ readonly said: ReadonlyArray<{ tokens: Array<number> }> }]
    return answer.said.map(({ tokens }) => tokens)
  })

const turn = (session: ModelSession) =>
  Stream.runCollect(session.turn(opening, { maxTokens, stops: [], sampling })).pipe(
    Effect.tap(() => session.rollback),
    Effect.map((events) => events.flatMap((event) => (event._tag === "Piece" ? event.tokens : [])))
  )
const turns = (sessions: ReadonlyArray<ModelSession>) => Effect.forEach(sessions, turn, { concurrency: "unbounded" })

const aggregate = Effect.gen(function* () {
  const options = { modelPath, contextTokens, sequences, threads: 1, gpu: false } as const
  const { model } = yield* makeWorker(options)
  const engine = yield* load(options, makeControl())
  const bare = yield* bareBatch(yield* model.tokenize(prompt))
  const asked = { opening: (yield* model.tokenize(opening)) as BatchRequest["opening"], maxTokens }
  const open = <E, R>(session: Effect.Effect<ModelSession, E, R>) =>
    Effect.replicateEffect(
      Effect.tap(session, (one) => Effect.orDie(one.commit(prompt))),
      sequences
    )
  const [there, here] = [yield* open(model.session), yield* open(engine.session)]
  const ways = { bare: bareTurns(bare, asked), thread: turns(there), here: turns(here) }
  const names = ["bare", "thread", "here"] as const
  const speeds: Record<(typeof names)[number], Array<number>> = { bare: [], thread: [], here: [] }
  const costs: Record<(typeof names)[number], Array<number>> = { bare: [], thread: [], here: [] }
  const ratios: Record<"thread" | "here", Array<number>> = { thread: [], here: [] }
  let expected = ""
  // Not all rounds say the same: what is in a batch together decides how its sums are rounded.
  let others = 0
  for (let round = 0; round < rounds; round++) {
    const seen: Partial<Record<(typeof names)[number], number>> = {}
    for (let place = 0; place < names.length; place++) {
      const name = names[(round + place) % names.length]!
      const [millis, said, cpu] = yield* timed(ways[name])
      costs[name].push(cpu / said.flat().length)
      if (expected === "") expected = said.join()
      if (expected !== said.join()) others++
      seen[name] = (said.flat().length / millis) * 1000
    }
    if (round < 2) continue
    for (const name of names) speeds[name].push(seen[name]!)
    for (const name of ["thread", "here"] as const) ratios[name].push(seen[name]! / seen.bare!)
  }
  return {
    // the fastest tenth: what each can do when the machine is left alone; and what rounds had in common with their neighbours
    "four sessions, ratio to bare": quantile(speeds.thread, 0.9) / quantile(speeds.bare, 0.9),
    "four sessions, ratio to bare, in this thread": quantile(speeds.here, 0.9) / quantile(speeds.bare, 0.9),
    "four sessions, median of the rounds' ratios": median(ratios.thread),
    "four sessions, processor time to bare": median(costs.thread) / median(costs.bare),
    "four sessions, turns of other tokens": others,
    "four sessions, tokens per second": quantile(speeds.thread, 0.9),
    "four sessions, tokens per second, bare": quantile(speeds.bare, 0.9)
  }
}).pipe(Effect.scoped)

/** A session of random weights with 4,000 tokens in its log. */
const coming = Effect.gen(function* () {
  const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "writ-bench-"))
  yield* Effect.addFinalizer(() => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true })))
  const path = Path.join(directory, "random.gguf")
  Fs.writeFileSync(path, makeGguf({ ctx: 8192, muteEog: true }))
  const engine = yield* load(
    { modelPath: path, contextTokens: 8192, sequences: 1, threads: 1, gpu: false },
    makeControl()
  )
  const session = yield* engine.session
  yield* session.commit([text("x".repeat(4000))])
  const request = { maxTokens: 64, stops: [], sampling }
  const rollbacks: Array<number> = []
  for (let round = 0; round < 40; round++) {
    yield* Stream.runDrain(session.turn([], request))
    rollbacks.push((yield* timed(session.rollback))[0])
  }
  const after: Array<number> = []
  for (let round = 0; round < 10; round++) {
    const before = engine.counters.evaluatedTokens
    const fiber = yield* Effect.forkChild(session.commit([text("y".repeat(3000))]), { startImmediately: true })
    while (engine.counters.evaluatedTokens - before < 64 * (1 + round)) yield* Effect.yieldNow
    const told = engine.counters.evaluatedTokens
    yield* Fiber.interrupt(fiber)
    after.push((engine.counters.evaluatedTokens - told) / 64)
  }
  return {
    "rollback at 4000 tokens ms": median(rollbacks),
    "batches evaluated after a cancel, most": Math.max(...after)
  }
}).pipe(Effect.scoped)

export const togetherBench = (): Promise<Record<string, number>> =>
  Effect.runPromise(Effect.map(Effect.all([aggregate, coming]), ([one, other]) => ({ ...one, ...other })))

if (import.meta.main) process.stdout.write(`${JSON.stringify(await togetherBench(), null, 2)}\n`)
