/** A real engine in a process of its own, and ways to end it at a chosen place of its work. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { makeWorker, type WorkerModel, type WorkerOptions } from "../../src/actors/Inference.ts"
import type { EngineError } from "../../src/engine/EngineError.ts"
import type { GenerationEvent, TurnRequest } from "../../src/engine/Generation.ts"
import type { ModelSession } from "../../src/engine/Model.ts"
import { control, text } from "../../src/engine/Prompt.ts"

export const shipped = Path.resolve(import.meta.dirname, "../../models/tiny-tool-agent/tiny-tool-agent-q8_0.gguf")

/** Opened again as often as a test likes, and at once. */
export const often = { times: 1000, waitMillis: 1 }

export const open = (
  options: WorkerOptions & {
    readonly modelPath?: string
    readonly sequences?: number
    readonly stallSeconds?: number
  } = {}
) =>
  makeWorker({
    modelPath: shipped,
    sequences: 2,
    threads: 1,
    gpu: false,
    verify: true,
    isolation: "process",
    restarts: often,
    ...options
  })

export const system = [
  control("<|im_start|>system\n"),
  text("You are a small local assistant."),
  control("<|im_end|>\n")
]
export const user = (value: string) => [control("<|im_start|>user\n"), text(value), control("<|im_end|>\n")]
export const opening = [control("<|im_start|>assistant\n")]
export const closing = [control("<|im_end|>\n")]
export const long = [text("many words and more of them ".repeat(40))]

export const request = (more: Partial<TurnRequest> = {}): TurnRequest => ({
  maxTokens: 24,
  stops: [],
  sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 1 },
  ...more
})

export const textOf = (events: ReadonlyArray<GenerationEvent>) =>
  events.map((event) => (event._tag === "Piece" ? event.text : "")).join("")

export const speak = (session: ModelSession) => Effect.map(Stream.runCollect(session.turn(opening, request())), textOf)

/** Tokens of the sequence, evaluated or not. */
export const log = (worker: WorkerModel, session: ModelSession) =>
  Effect.map(worker.snapshot(session), ({ kv, pending }) => [...kv, ...pending])

export const isThere = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Sends a signal to the engine that is there and returns its process's number. */
export const strike = (worker: WorkerModel, signal: NodeJS.Signals) =>
  Effect.map(worker.host, ({ pid }) => {
    assert.isDefined(pid)
    process.kill(pid!, signal)
    return pid!
  })

/** Waits for a process's end. */
export const ended = (pid: number): Effect.Effect<void> =>
  Effect.suspend(() => (isThere(pid) ? Effect.andThen(Effect.sleep("10 millis"), ended(pid)) : Effect.void))

/** Processes of engines that this process started. */
export const childrenOf = (parent: number): ReadonlyArray<number> =>
  Fs.readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const ppid = Fs.readFileSync(`/proc/${name}/stat`, "utf8")
          .replace(/\(.*\)/, "x")
          .split(" ")[3]
        return Number(ppid) === parent && Fs.readFileSync(`/proc/${name}/cmdline`, "utf8").includes("engine/worker.")
      } catch {
        return false
      }
    })
    .map(Number)

/** Where in its work an engine is when it is hit. Each answers with how the call it was hit under failed. */
export type Hit = (
  worker: WorkerModel,
  session: ModelSession,
  signal: NodeJS.Signals
) => Effect.Effect<EngineError | undefined>

const evaluating = (worker: WorkerModel, work: Effect.Effect<unknown, EngineError>, signal: NodeJS.Signals) =>
  Effect.gen(function* () {
    const before = (yield* worker.stats).evaluatedTokens
    const fiber = yield* Effect.forkChild(Effect.flip(work), { startImmediately: true })
    while ((yield* worker.stats).evaluatedTokens === before && fiber.pollUnsafe() === undefined) yield* Effect.yieldNow
    yield* strike(worker, signal)
    const exit = yield* Fiber.await(fiber)
    return Exit.isSuccess(exit) ? exit.value : undefined
  })

export const hits: Readonly<
  Record<string, (...args: Parameters<Hit>) => Effect.Effect<EngineError | undefined, unknown>>
> = {
  commit: (worker, session, signal) => evaluating(worker, session.commit(long), signal),
  prefill: (worker, session, signal) => evaluating(worker, Stream.runDrain(session.turn(long, request())), signal),
  decode: (worker, session, signal) =>
    Effect.gen(function* () {
      const seen = yield* Queue.unbounded<GenerationEvent>()
      const turn = session.turn(
        opening,
        request({ maxTokens: 400, sampling: { ...request().sampling, temperature: 2, topK: 0 } })
      )
      const fiber = yield* Effect.forkChild(Effect.flip(Stream.runForEach(turn, (event) => Queue.offer(seen, event))))
      while ((yield* Queue.take(seen))._tag !== "Piece") {
        // not decoding yet
      }
      yield* strike(worker, signal)
      const exit = yield* Fiber.await(fiber)
      return Exit.isSuccess(exit) ? exit.value : undefined
    }),
  keep: (worker, session, signal) =>
    Effect.andThen(speak(session), () => evaluating(worker, session.keep(long), signal)),
  "a finished turn": (worker, session, signal) =>
    Effect.gen(function* () {
      yield* speak(session)
      yield* ended(yield* strike(worker, signal))
      return yield* Effect.flip(session.keep(closing))
    })
}
