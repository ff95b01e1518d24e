/**
 * The inference thread, or process: serves one model over `Wire` to whoever started it, and ends when told to. It never ends
 * while native code runs, also not after a fault: see `LlamaControl.ts`. A process ends with the program that started it.
 */

import { setImmediate } from "node:timers"
import { isMainThread, Worker, workerData } from "node:worker_threads"
import * as NodeWorkerRunner from "@effect/platform-node/NodeWorkerRunner"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as RpcServer from "effect/rpc/RpcServer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { badRequest, type EngineError } from "./EngineError.ts"
import { makeBuffer, makeControl, waitIdle } from "./LlamaControl.ts"
import type { EmbeddingOptions, LlamaEmbedder } from "./LlamaEmbedding.ts"
import { accuse } from "./LlamaFaults.ts"
import { type LlamaEngine, type LlamaOptions, load } from "./LlamaModel.ts"
import type { LlamaSession } from "./LlamaSession.ts"
import type { ModelIdentity } from "./Model.ts"
import type { Span } from "./Prompt.ts"
import { type CommitEvent, type Grown, type OpenEvent, Wire } from "./Wire.ts"

const buffer = (workerData as { readonly control?: SharedArrayBuffer } | null)?.control ?? makeBuffer()
const control = makeControl(buffer)

const bad = (message: string) => Effect.fail(badRequest(message))

/** The requests that open the one model of this thread, for turns or for vectors, and what answers for it. */
const openModels = (root: Scope.Scope) => {
  let engine: LlamaEngine | undefined
  let embedder: LlamaEmbedder | undefined
  const free = (open: () => Stream.Stream<OpenEvent, EngineError>) =>
    Stream.suspend(() =>
      engine === undefined && embedder === undefined ? open() : Stream.fail(badRequest("A model is already open."))
    )
  const openTurns = (options: LlamaOptions) =>
    opening(
      (tell) => load(options, control, tell),
      root,
      (loaded) => {
        engine = loaded
      }
    )
  const openVectors = (options: EmbeddingOptions) =>
    opening(
      // Only here: a thread that serves turns does without.
      (tell) =>
        Effect.flatMap(
          Effect.promise(() => import("./LlamaEmbedding.ts")),
          (embedding) => embedding.load(options, control, tell)
        ),
      root,
      (loaded) => {
        embedder = loaded
      }
    )
  return {
    opened: Effect.suspend(() => (engine === undefined ? bad("No model is open.") : Effect.succeed(engine))),
    Open: (options: LlamaOptions) => free(() => openTurns(options)),
    EmbedOpen: (options: EmbeddingOptions) => free(() => openVectors(options)),
    Embed: ({ texts }: { readonly texts: ReadonlyArray<string> }) =>
      Effect.suspend(() => (embedder === undefined ? bad("No model is open for vectors.") : embedder.embed(texts)))
  }
}

const handlers = Effect.gen(function* () {
  const root = yield* Effect.scope
  const { opened, ...models } = openModels(root)
  const sessions = new Map<number, { readonly session: LlamaSession; readonly scope: Scope.Closeable }>()
  let nextSession = 1

  const find = (id: number) => {
    const found = sessions.get(id)
    return found === undefined ? bad("The session is closed.") : Effect.succeed(found.session)
  }

  return Wire.of({
    ...models,
    Tokenize: ({ segments }) => Effect.flatMap(opened, (model) => model.tokenize(segments)),
    Stats: () => Effect.map(opened, (model) => ({ ...model.counters })),
    SessionOpen: () =>
      Effect.uninterruptible(
        Effect.gen(function* () {
          const model = yield* opened
          const scope = yield* Scope.fork(root)
          const session = yield* Scope.provide(model.session, scope)
          const id = nextSession++
          sessions.set(id, { session, scope })
          return id
        })
      ),
    SessionClose: ({ session: id }) =>
      Effect.suspend(() => {
        const found = sessions.get(id)
        sessions.delete(id)
        return found === undefined ? Effect.void : Scope.close(found.scope, Exit.void)
      }),
    Commit: ({ priority, segments, session }) =>
      telling<CommitEvent>((tell) =>
        Effect.gen(function* () {
          const found = yield* find(session)
          const told = (done: number, total: number) => tell({ _tag: "Prefill", done, total })
          const span = yield* found.commit(segments, told, priority)
          return { _tag: "Committed", ...grown(found, span) }
        })
      ),
    Turn: ({ opening, request, session }) =>
      Stream.unwrap(Effect.map(find(session), (found) => found.turn(opening, request))),
    Keep: ({ closing, session }) =>
      Effect.flatMap(find(session), (found) => Effect.map(found.keep(closing), (span) => grown(found, span))),
    Restore: ({ boundaries, session, tokens }) =>
      Effect.flatMap(find(session), (found) => found.restore(tokens, boundaries)),
    Rollback: ({ session }) => Effect.flatMap(find(session), (found) => found.rollback),
    Rewind: ({ length, session }) => Effect.flatMap(find(session), (found) => found.rewind(length)),
    Save: ({ label, path, session }) => Effect.flatMap(find(session), (found) => found.save(path, label)),
    Load: ({ path, session }) => Effect.flatMap(find(session), (found) => found.load(path)),
    Revert: ({ length, session }) => Effect.flatMap(find(session), (found) => found.revert(length)),
    Measure: ({ segments, session }) => Effect.flatMap(find(session), (found) => found.measure(segments)),
    Length: ({ session }) => Effect.flatMap(find(session), (found) => found.length),
    Snapshot: ({ session }) => Effect.flatMap(find(session), (found) => found.snapshot)
  })
})

const grown = (session: LlamaSession, span: Span): Grown => ({ span, tokens: session.last(span.end - span.start) })

/** Work that says how far it is, and last what it came to. Whoever stops listening interrupts it. */
const telling = <A>(work: (tell: (event: A) => void) => Effect.Effect<A, EngineError>): Stream.Stream<A, EngineError> =>
  Stream.callback<A, EngineError>((queue) =>
    Effect.flatMap(
      work((event) => void Queue.offerUnsafe(queue, event)),
      (last) => Effect.andThen(Queue.offer(queue, last), Queue.end(queue))
    )
  )

/** Loads a model into the scope. */
const opening = <Loaded extends { readonly identity: ModelIdentity }>(
  load: (tell: (share: number) => void) => Effect.Effect<Loaded, EngineError, Scope.Scope>,
  scope: Scope.Scope,
  keep: (loaded: Loaded) => void
) =>
  telling<OpenEvent>((tell) =>
    Effect.map(
      Scope.provide(
        load((share) => tell({ _tag: "Loading", share })),
        scope
      ),
      (loaded) => {
        keep(loaded)
        return { _tag: "Opened", identity: loaded.identity }
      }
    )
  )

const serve = Effect.scoped(
  Effect.gen(function* () {
    const context = yield* Wire.toHandlers(handlers)
    const protocol = yield* RpcServer.makeProtocolWorkerRunner
    return yield* RpcServer.make(Wire, { disableTracing: true, disableFatalDefects: true }).pipe(
      // A turn's length bounds what is in flight, so nobody waits for acknowledgements.
      Effect.provideService(RpcServer.Protocol, { ...protocol, supportsAck: false }),
      Effect.provideContext(context)
    )
  })
)

/** A fault nobody awaits (a native callback that threw): let running calls end, then end the thread, not the process. */
const fault = (cause: unknown): void => {
  control.stop()
  setImmediate(() => {
    const said = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
    process.stderr.write(`inference: ${said}\n`)
    void ended(10_000).then(() => process.exit(1))
  })
}
const ended = async (limitMillis: number): Promise<void> => {
  const end = performance.now() + limitMillis
  while (!waitIdle(buffer, 0) && performance.now() < end) await new Promise((resolve) => setImmediate(resolve))
}
process.on("uncaughtException", fault)
process.on("unhandledRejection", (cause) => {
  if (!accuse(cause)) fault(cause)
})

const serving = Effect.runFork(
  serve.pipe(Effect.provide(NodeWorkerRunner.layer), Effect.ensuring(Effect.sync(() => control.stop())))
)

/** What a process that was told to end, or whose program is gone, gets for closing what it has open. */
const closeMillis = 2_000

/** Ends this process when its program does, also where its own loop is blocked: then a thread that only looks for that does. */
const endWith = (parent: number): void => {
  const look = `let gone = 0
setInterval(() => {
  if (process.ppid !== ${parent} && ++gone > 10) process.kill(process.pid, "SIGKILL")
}, 500)`
  new Worker(look, { eval: true }).unref()
  process.on("disconnect", () => {
    control.stop()
    serving.interruptUnsafe()
  })
  serving.addObserver(() => {
    void ended(closeMillis).then(() => (waitIdle(buffer, 0) ? process.exit(0) : process.kill(process.pid, "SIGKILL")))
  })
}
// Whoever forks names itself: by the time it is asked for, the parent of an orphan is another.
if (isMainThread) endWith(Number(process.argv[2]))
