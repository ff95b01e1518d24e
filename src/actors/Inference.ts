/**
 * The inference actor: a `Model` whose native half runs in a thread or a process of its own. Starting it loads the model;
 * leaving the scope cancels what runs, closes the model and waits for the end of where it ran. An engine that dies is opened
 * again within limits, and its sessions get their logs back: see `InferenceRestarts.ts` and `InferenceSessions.ts`.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { RpcClientError } from "effect/rpc/RpcClientError"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { EngineError } from "../engine/EngineError.ts"
import type { EmbeddingOptions, LlamaEmbedder } from "../engine/LlamaEmbedding.ts"
import type { LlamaOptions } from "../engine/LlamaModel.ts"
import { Model, type ModelIdentity, type ModelSession } from "../engine/Model.ts"
import type { OpenEvent, Snapshot, Stats } from "../engine/Wire.ts"
import type { Host, Isolation } from "./InferenceHost.ts"
import type { Client } from "./InferenceLink.ts"
import { defaultRestarts, type Engine, keepOpen, type RestartLimits } from "./InferenceRestarts.ts"
import { HostedSession, lastOf, openSession } from "./InferenceSessions.ts"
import { startThread } from "./InferenceThread.ts"
import { queued } from "./SessionQueue.ts"

export type { LlamaOptions } from "../engine/LlamaModel.ts"
export type { Isolation } from "./InferenceHost.ts"
export type { RestartLimits } from "./InferenceRestarts.ts"

/** Seconds without an answer after which an engine counts as hung, where nothing else is said. */
const defaultStallSeconds = 120

/** Where an engine runs, and how often it is opened again when it dies. */
export interface WorkerOptions {
  /** Default `thread`. A native crash in a thread ends the whole program; a `process` of its own does not. */
  readonly isolation?: Isolation
  readonly restarts?: Partial<RestartLimits>
}

/** A `Model` in a thread or process, and what tests and benchmarks may look at. */
export interface WorkerModel {
  readonly model: Model["Service"]
  /** Of the engine that is there: they begin anew when it was opened again. */
  readonly stats: Effect.Effect<Stats, EngineError>
  /** Evaluated and pending tokens of a session of this model. */
  readonly snapshot: (session: ModelSession) => Effect.Effect<Snapshot, EngineError>
  /** Where the engine that is there runs. */
  readonly host: Effect.Effect<Host, EngineError>
}

/** A `Model` that lives in this thread: the scripted one, or any other value of the seam. */
export const layerInProcess = (model: Model["Service"]): Layer.Layer<Model> => Layer.succeed(Model, model)

/** A model file in a thread or process of its own. Fails typed where file, library or memory is not what it must be. */
export const layerWorker = (options: LlamaOptions & WorkerOptions): Layer.Layer<Model, EngineError> =>
  Layer.effect(
    Model,
    Effect.map(makeWorker(options), ({ model }) => model)
  )

/** `layerWorker` as a scoped value. `loading` is told the share of the weights that is there, from 0 to 1. */
export const makeWorker = Effect.fnUntraced(function* (
  { isolation, restarts, ...options }: LlamaOptions & WorkerOptions,
  loading: (share: number) => void = () => {}
): Effect.fn.Return<WorkerModel, EngineError, Scope.Scope> {
  const engine = yield* keep((client) => client.Open(options), loading, { isolation, restarts }, options.stallSeconds)
  const { read } = asking(engine)
  const places = { most: Number(engine.opened.build?.["sequences"] ?? Infinity), taken: 0 }
  return {
    stats: read((client) => client.Stats()),
    snapshot: (session) =>
      session instanceof HostedSession ? session.snapshot : Effect.die(new Error("a session of another model")),
    host: Effect.map(engine.link, ({ host }) => host),
    model: queued({
      identity: engine.opened,
      tokenize: (segments) => read((client) => client.Tokenize({ segments })),
      session: openSession(engine.link, places)
    })
  }
})

/** A model file that makes vectors, in a thread or process of its own; scoped and told of as in `makeWorker`. */
export const makeEmbedder = Effect.fnUntraced(function* (
  { isolation, restarts, ...options }: EmbeddingOptions & WorkerOptions,
  loading: (share: number) => void = () => {}
): Effect.fn.Return<LlamaEmbedder, EngineError, Scope.Scope> {
  const engine = yield* keep((client) => client.EmbedOpen(options), loading, { isolation, restarts })
  const { read } = asking(engine)
  return { identity: engine.opened, embed: (texts) => read((client) => client.Embed({ texts })) }
})

/** Where asking for it is cheap: a program whose engine is a thread loads nothing of processes. */
const startAs = (isolation: Isolation | undefined) =>
  isolation === "process"
    ? Effect.flatMap(
        Effect.promise(() => import("./InferenceProcess.ts")),
        ({ startProcess }) => startProcess
      )
    : startThread

const keep = (
  opening: (client: Client) => Stream.Stream<OpenEvent, EngineError | RpcClientError>,
  loading: (share: number) => void,
  { isolation, restarts }: { readonly [K in keyof WorkerOptions]: WorkerOptions[K] | undefined },
  stallSeconds = defaultStallSeconds
) =>
  keepOpen<ModelIdentity>({
    start: startAs(isolation),
    open: ({ call, client }) =>
      call(
        lastOf(opening(client), (event) => {
          if (event._tag === "Opened") return event.identity
          loading(event.share)
          return undefined
        })
      ),
    differs,
    restarts: { ...defaultRestarts, ...restarts },
    stallSeconds
  })

/** Asks something that changes nothing, and once more where the engine died over it. */
const asking = (engine: Engine<ModelIdentity>) => ({
  read: <A>(
    call: (client: Client) => Effect.Effect<A, EngineError | RpcClientError>
  ): Effect.Effect<A, EngineError> => {
    const once = Effect.flatMap(engine.link, (link) => link.call(call(link.client)))
    return once.pipe(
      Effect.catchTag("Gone", () => once),
      Effect.catchTag("Gone", ({ end }) => Effect.fail(end.error))
    )
  }
})

/** Token ids are only worth something to the model they were made by; numbers, to the library that made them. */
const differs = (before: ModelIdentity, now: ModelIdentity): EngineError | undefined => {
  const other = (name: string) => before.build?.[name] !== now.build?.[name]
  if (before.fileBytes !== now.fileBytes || other("headerHash")) {
    const message = `${now.name} is not the file it was. Open it as a new model, and begin anew.`
    return new EngineError({ reason: "bad_file", message })
  }
  if (!other("library") && !other("llamaCpp") && before.contextTokens === now.contextTokens) return undefined
  const versions = `${before.build?.["library"]}, now ${now.build?.["library"]}`
  return new EngineError({
    reason: "unavailable",
    message: `The engine is not the one it was (${versions}). Start the program again.`
  })
}
