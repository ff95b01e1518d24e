/**
 * Ten tasks with a tool, one after another in one conversation: the whole of Writ (loop, gates, record in memory) against the
 * library's own chat session with the same function, the same questions and the same limit of tokens, both in a thread of
 * their own, in alternation. The two do not write the same words, so the time is told as it is and per generated token. And
 * a count: tokens that Writ evaluated more than once.
 */
import { once } from "node:events"
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeWorker } from "../src/actors/Inference.ts"
import * as Agent from "../src/effects/Agent.ts"
import { tinyModel } from "../src/effects/Wiring.ts"
import { Model } from "../src/engine/Model.ts"
import { layerScripted } from "../src/testing.ts"
import { registry } from "../src/tools/builtin/index.ts"
import { pick } from "../src/tools/Registry.ts"
import type { ChatAnswer, ChatRequest } from "./kit/chatSession.ts"

const system = "You are a small local assistant. Use the tools when they help and answer briefly."
const tasks = Array.from({ length: 10 }, (_, index) => `What is ${index + 12} plus ${2 * index + 3}?`)
const maxTokens = 64
const contextTokens = 2048
const rounds = 9

const median = (values: ReadonlyArray<number>): number => [...values].sort((a, b) => a - b)[values.length >> 1]!

const chatSession = Effect.acquireRelease(
  Effect.promise(async () => {
    const url = new URL("./kit/chatSession.ts", import.meta.url)
    const worker = new Worker(url, { workerData: { modelPath: tinyModel, contextTokens, system } })
    await once(worker, "message")
    return worker
  }),
  (worker) =>
    Effect.promise(async () => {
      worker.postMessage("close")
      await once(worker, "exit")
    })
)

/** Milliseconds of processor time, of all threads: what a loaded machine can still tell. */
const costing = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const before = process.cpuUsage()
    return Effect.map(effect, (value) => {
      const { system: inKernel, user } = process.cpuUsage(before)
      return { ...value, cpu: (inKernel + user) / 1000 }
    })
  })

const asked = (worker: Worker): Effect.Effect<ChatAnswer> =>
  Effect.promise(async () => {
    worker.postMessage({ tasks, maxTokens } satisfies ChatRequest)
    const [answer] = (await once(worker, "message")) as [ChatAnswer]
    return answer
  })

const program = Effect.gen(function* () {
  // Without flash attention, as `Wiring` opens this model.
  const own = { threads: 1, gpu: false, flashAttention: false } as const
  const options = { modelPath: tinyModel, contextTokens, sequences: 1, ...own, reuse: "never" } as const
  const worker = yield* makeWorker(options)
  const peer = yield* chatSession
  const writ = Effect.gen(function* () {
    const tools = yield* pick(yield* registry, ["calculate"])
    const before = yield* worker.stats
    const session = yield* Agent.session({ tools, system })
    const start = performance.now()
    let generated = 0
    let calls = 0
    for (const task of tasks) {
      const { stop, toolCalls, usage } = yield* Agent.runIn(session, task, { limits: { outputTokens: maxTokens } })
      if (stop._tag !== "Completed") return yield* Effect.die(new Error(`${task}: ${stop._tag}`))
      generated += usage.outputTokens
      calls += toolCalls
    }
    const millis = performance.now() - start
    const { kv } = yield* worker.snapshot(session.context)
    const evaluated = (yield* worker.stats).evaluatedTokens - before.evaluatedTokens
    return { millis, generated, evaluated, calls, again: evaluated - kv.length }
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(layerScripted({ turns: [] }), Layer.succeed(Model, worker.model))))
  const ratios: Array<number> = []
  const each: Array<number> = []
  const cpu: Array<number> = []
  const millis: Array<readonly [number, number]> = []
  let last: { readonly ours: Effect.Success<typeof writ>; readonly theirs: ChatAnswer } | undefined
  for (let round = 0; round < rounds; round++) {
    const first = round % 2 === 0
    const before = first ? yield* costing(writ) : undefined
    const theirs = yield* costing(asked(peer))
    const ours = before ?? (yield* costing(writ))
    last = { ours, theirs }
    if (round === 0) continue
    ratios.push(ours.millis / theirs.millis)
    each.push(ours.millis / ours.generated / (theirs.millis / theirs.generated))
    cpu.push(ours.cpu / theirs.cpu)
    millis.push([ours.millis, theirs.millis])
  }
  return {
    "ten tasks, time to the chat session's": median(ratios),
    "ten tasks, time per generated token to the chat session's": median(each),
    "ten tasks, processor time to the chat session's": median(cpu),
    "ten tasks, tokens evaluated again": last!.ours.again,
    "ten tasks, ms": median(millis.map(([ours]) => ours)),
    "ten tasks, ms, chat session": median(millis.map(([, theirs]) => theirs)),
    "ten tasks, tokens generated": last!.ours.generated,
    "ten tasks, tokens generated, chat session": last!.theirs.generated,
    "ten tasks, calls": last!.ours.calls,
    "ten tasks, calls, chat session": last!.theirs.calls
  }
}).pipe(Effect.scoped)

export const conversationBench = (): Promise<Record<string, number>> => Effect.runPromise(program)

if (import.meta.main) process.stdout.write(`${JSON.stringify(await conversationBench(), null, 2)}\n`)
