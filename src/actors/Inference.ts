/**
 * Owns the inference thread: a `Model` whose native half runs elsewhere. Starting it loads the model; leaving the scope
 * cancels what runs, closes the model and waits for the thread's end. The thread is never terminated while native code
 * runs, and the process's own exit waits for it (bounded), so that no exit ends in an abort.
 */

import { Worker } from "node:worker_threads"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type * as RpcClient from "effect/rpc/RpcClient"
import type { RpcClientError } from "effect/rpc/RpcClientError"
import type { FromServerEncoded } from "effect/rpc/RpcMessage"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { EngineError } from "../engine/EngineError.ts"
import type { GenerationEvent } from "../engine/Generation.ts"
import { isBusy, makeBuffer, raiseStop, waitIdle } from "../engine/LlamaControl.ts"
import type { EmbeddingOptions, LlamaEmbedder } from "../engine/LlamaEmbedding.ts"
import type { LlamaOptions } from "../engine/LlamaModel.ts"
import { Model, type ModelSession, type Progress } from "../engine/Model.ts"
import type { Segment } from "../engine/Prompt.ts"
import type { OpenEvent, Snapshot, Stats, Wire } from "../engine/Wire.ts"

export type { LlamaOptions } from "../engine/LlamaModel.ts"

/** Milliseconds the process's exit waits for native code at most. */
const exitWaitMillis = 10_000
/** How long leaving the scope waits for the thread's end before it stops waiting. */
const closeWait = "30 seconds"

type Client = RpcClient.FromGroup<typeof Wire, RpcClientError>

/** A `Model` in a thread, and what tests and benchmarks may look at. */
export interface WorkerModel {
  readonly model: Model["Service"]
  readonly stats: Effect.Effect<Stats, EngineError>
  /** Evaluated and pending tokens of a session of this model. */
  readonly snapshot: (session: ModelSession) => Effect.Effect<Snapshot, EngineError>
}

/** A `Model` that lives in this thread: the scripted one, or any other value of the seam. */
export const layerInProcess = (model: Model["Service"]): Layer.Layer<Model> => Layer.succeed(Model, model)

/** A model file in a thread of its own. Fails typed where the file, the library or the memory is not what it must be. */
export const layerWorker = (options: LlamaOptions): Layer.Layer<Model, EngineError> =>
  Layer.effect(
    Model,
    Effect.map(makeWorker(options), ({ model }) => model)
  )

/** `layerWorker` as a scoped value. `loading` is told the share of the weights that is there, from 0 to 1. */
export const makeWorker = Effect.fnUntraced(function* (
  options: LlamaOptions,
  loading: (share: number) => void = () => {}
): Effect.fn.Return<WorkerModel, EngineError, Scope.Scope> {
  const { client, lost } = yield* startServing
  const identity = yield* lost(opened(client.Open(options), loading))
  const ids = new WeakMap<ModelSession, number>()
  return {
    stats: client.Stats().pipe(lost),
    snapshot: (session) => client.Snapshot({ session: ids.get(session) ?? 0 }).pipe(lost),
    model: {
      identity,
      tokenize: (segments) => client.Tokenize({ segments }).pipe(lost),
      session: Effect.map(
        Effect.acquireRelease(client.SessionOpen().pipe(lost), (id) =>
          Effect.ignore(client.SessionClose({ session: id }))
        ),
        (id) => {
          const session = makeSession(client, id, lost)
          ids.set(session, id)
          return session
        }
      )
    }
  }
})

/** A model file that makes vectors, in a thread of its own; scoped and told of as in `makeWorker`. */
export const makeEmbedder = Effect.fnUntraced(function* (
  options: EmbeddingOptions,
  loading: (share: number) => void = () => {}
): Effect.fn.Return<LlamaEmbedder, EngineError, Scope.Scope> {
  const { client, lost } = yield* startServing
  const identity = yield* lost(opened(client.EmbedOpen(options), loading))
  return { identity, embed: (texts) => client.Embed({ texts }).pipe(lost) }
})

/** The thread, and why it is gone once it is. */
interface Thread {
  readonly worker: Worker
  readonly gone: Deferred.Deferred<void>
  reason: EngineError | undefined
}

const startThread: Effect.Effect<Thread, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const control = makeBuffer()
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js"
    const worker = new Worker(new URL(`../engine/worker.${extension}`, import.meta.url), { workerData: { control } })
    const thread: Thread = { worker, gone: Deferred.makeUnsafe<void>(), reason: undefined }
    const hook = () => {
      raiseStop(control)
      waitIdle(control, exitWaitMillis)
    }
    process.on("exit", hook)
    worker.on("error", (cause) => {
      thread.reason = new EngineError({ reason: "lost", message: `The inference thread failed: ${cause}.`, cause })
    })
    worker.on("exit", (code) => {
      process.off("exit", hook)
      thread.reason ??= new EngineError({
        reason: "lost",
        message: `The inference thread has ended (code ${code}). Open the model again.`
      })
      Deferred.doneUnsafe(thread.gone, Exit.void)
    })
    return { thread, control }
  }),
  ({ control, thread }) =>
    Effect.suspend(() => {
      raiseStop(control)
      thread.worker.postMessage([1])
      return Deferred.await(thread.gone).pipe(
        Effect.timeoutOrElse({
          duration: closeWait,
          orElse: () =>
            // Hung in native code it must be left alone; it no longer keeps the process alive.
            isBusy(control)
              ? Effect.sync(() => thread.worker.unref())
              : Effect.asVoid(Effect.promise(() => thread.worker.terminate()))
        })
      )
    })
).pipe(Effect.map(({ thread }) => thread))

/** An RPC client over the thread's message port, without a pool: a thread that died stays dead. */
const connect = Effect.fnUntraced(function* (thread: Thread): Effect.fn.Return<Client, never, Scope.Scope> {
  const [{ Wire }, Rpc, Errors, Schema] = yield* Effect.promise(() =>
    Promise.all([
      import("../engine/Wire.ts"),
      import("effect/rpc/RpcClient"),
      import("effect/rpc/RpcClientError"),
      import("effect/Schema")
    ])
  )
  const dead = () =>
    new Errors.RpcClientError({
      reason: new Errors.RpcClientDefect({ message: "the inference thread is gone", cause: thread.reason })
    })
  const protocol = yield* Rpc.Protocol.make(
    Effect.fnUntraced(function* (write, clients) {
      const run = Effect.runForkWith(yield* Effect.context<never>())
      const deliver = (message: FromServerEncoded) =>
        run(Effect.forEach(clients, (client) => write(client, message), { discard: true }))
      thread.worker.on("message", (message: readonly [kind: number, body: FromServerEncoded]) => {
        if (message[0] === 1) deliver(message[1])
      })
      thread.worker.on("exit", () => deliver({ _tag: "ClientProtocolError", error: dead() }))
      return {
        send: (_client, message) =>
          Effect.suspend(() => {
            if (thread.reason !== undefined) return Effect.fail(dead())
            thread.worker.postMessage([0, message])
            return Effect.void
          }),
        supportsAck: false,
        supportsTransferables: false,
        codecFor: Schema.toCodecJson as typeof Rpc.Protocol.Service.codecFor
      }
    })
  )
  return yield* Rpc.make(Wire, { disableTracing: true }).pipe(Effect.provideService(Rpc.Protocol, protocol))
})

/** A thread that serves `Wire`, with nothing open yet. */
const startServing = Effect.gen(function* () {
  const thread = yield* startThread
  const client = yield* connect(thread)
  // Registered last, so first: from here on calls fail by name instead of waiting for a thread that is leaving.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      thread.reason ??= new EngineError({ reason: "lost", message: "The model was closed. Open it again." })
    })
  )
  return { client, lost: engineErrors(thread) }
})

/** Failures of the transport become the reason why the thread is gone; a dead thread is not asked at all. */
type Lost = <A, R>(call: Effect.Effect<A, EngineError | RpcClientError, R>) => Effect.Effect<A, EngineError, R>

const engineErrors = (thread: Thread): Lost => {
  const named = (error: EngineError | RpcClientError): EngineError =>
    error._tag === "EngineError"
      ? error
      : (thread.reason ??
        new EngineError({ reason: "lost", message: `The inference thread does not answer: ${error.message}` }))
  return (call) =>
    Effect.suspend(() => (thread.reason === undefined ? Effect.mapError(call, named) : Effect.fail(thread.reason)))
}

/** Work over there that says how far it is: runs it to its end, which is what `see` takes for one. */
const lastOf = <Event, A, E>(events: Stream.Stream<Event, E>, see: (event: Event) => A | undefined) =>
  Effect.suspend(() => {
    let last: A | undefined
    const listen = Stream.runForEach(events, (event) =>
      Effect.sync(() => {
        last = see(event) ?? last
      })
    )
    return Effect.flatMap(listen, () =>
      last === undefined
        ? Effect.fail(
            new EngineError({ reason: "lost", message: "The inference thread ended its work without a result." })
          )
        : Effect.succeed(last)
    )
  })

/** Who answers, once the model is there. */
const opened = <E>(events: Stream.Stream<OpenEvent, E>, loading: (share: number) => void) =>
  lastOf(events, (event) => {
    if (event._tag === "Opened") return event.identity
    loading(event.share)
    return undefined
  })

const committed = (client: Client, session: number, segments: ReadonlyArray<Segment>, progress?: Progress) =>
  lastOf(client.Commit({ session, segments }), (event) => {
    if (event._tag === "Committed") return event.span
    progress?.(event.done, event.total)
    return undefined
  })

/**
 * A session here is a name over there. Interruption of a call crosses the thread as a message that nobody answers, so
 * each interrupted call is followed by one `Revert`, which is answered when the session is back at its boundary.
 */
const makeSession = (client: Client, session: number, lost: Lost): ModelSession => {
  const owner = Semaphore.makeUnsafe(1)
  let length = 0
  const revert = Effect.suspend(() => Effect.ignore(client.Revert({ session, length })))
  const grow = <A extends { readonly end: number }>(call: Effect.Effect<A, EngineError | RpcClientError>) =>
    call.pipe(
      Effect.tap((span) =>
        Effect.sync(() => {
          length = span.end
        })
      ),
      Effect.onInterrupt(() => revert),
      lost,
      owner.withPermit
    )
  const turn: ModelSession["turn"] = (opening, request) =>
    Stream.unwrap(
      Effect.gen(function* () {
        let held = true
        const release = Effect.suspend(() => {
          if (!held) return Effect.void
          held = false
          return owner.release(1)
        })
        yield* Effect.acquireRelease(owner.take(1), () => release, { interruptible: true })
        let end: GenerationEvent | undefined
        // "failed": over there the session is back already, or the turn was refused and nothing has changed
        let state: "running" | "failed" | "pulled" = "running"
        yield* Effect.addFinalizer((exit) => {
          if (state === "failed" || (state === "pulled" && Exit.isSuccess(exit))) return Effect.void
          return state === "running" ? revert : owner.withPermit(revert)
        })
        const events = yield* lost(client.Turn({ session, opening, request }, { asQueue: true }))
        const last = Stream.unwrap(
          Effect.suspend(() => {
            state = "pulled"
            return Effect.as(release, Stream.succeed(end!))
          })
        )
        return Stream.fromQueue(events).pipe(
          Stream.filter((event) => {
            if (event._tag === "End") end = event
            return event._tag !== "End"
          }),
          Stream.catch((error) => {
            state = "failed"
            return Stream.fromEffect(lost(Effect.fail(error)))
          }),
          (parts) => Stream.concat(parts, last)
        )
      })
    )
  return {
    commit: (segments, progress) => grow(committed(client, session, segments, progress)),
    keep: (closing) => grow(client.Keep({ session, closing })),
    turn,
    rollback: owner.withPermit(client.Rollback({ session }).pipe(lost)),
    length: Effect.sync(() => length),
    measure: (segments) => client.Measure({ session, segments }).pipe(lost)
  }
}
