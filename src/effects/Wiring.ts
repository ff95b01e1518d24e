/**
 * Production services of a run, composed. The only file that picks implementations. Engine and pool are loaded when the
 * layer is built, so importing this costs nothing.
 */

import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ArtifactStore from "../actors/ArtifactStore.ts"
import * as EffectLedger from "../actors/EffectLedger.ts"
import { isAddress } from "../actors/EffectLedgerAddress.ts"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import * as Ids from "../actors/Ids.ts"
import type { Isolation, LlamaOptions, RestartLimits } from "../actors/Inference.ts"
import * as ModelHashes from "../actors/ModelHashes.ts"
import type { ToolPool } from "../actors/ToolPool.ts"
import * as TraceWriter from "../actors/TraceWriter.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { Tuning } from "../engine/LlamaTuning.ts"
import { Model } from "../engine/Model.ts"
import type { OpenAiOptions } from "../engine/OpenAiModel.ts"
import type { Services } from "./Agent.ts"
import * as RunDirectory from "./RunDirectory.ts"

export interface WiringOptions {
  /** An engine to run on instead of a model file: a scripted one, or one of your own. */
  readonly engine?: Layer.Layer<Model, EngineError>
  /** A GGUF file. Without it the tiny model that ships, which knows a few tasks and wordings. */
  readonly model?: string
  /** Tokens of context. Default 8192, at most what the model was trained for. */
  readonly contextTokens?: number
  /** Inference threads. Default: all processors but one; the tiny model is fastest with 1. */
  readonly threads?: number
  readonly gpu?: LlamaOptions["gpu"]
  /** Attention, the cache's numbers, adapters. */
  readonly tuning?: Tuning
  /** Where the engine runs. Default `thread`; in a `process` of its own a native crash takes nothing else along. */
  readonly isolation?: Isolation
  /** How often an engine that died is opened again. Default: 3 times within ten minutes. */
  readonly restarts?: Partial<RestartLimits>
  /** Told the share of the model file's weights that is loaded, from 0 to 1. */
  readonly loading?: (share: number) => void
  /** Sessions that may be open at a time; each costs memory. Default 4. */
  readonly sessions?: number
  /** Bytes of main memory the sessions may take; a model that needs more fails to open and says what would fit. Default: what is there. */
  readonly memoryBudget?: number
  /** A module that exports `registry`; tool threads load it. Default: the built-in tools. */
  readonly toolkit?: URL
  /** The whole environment of the tools. Empty unless given: they see nothing of this process's own. */
  readonly toolEnv?: Readonly<Record<string, string>>
  /** Tools run in this thread instead of a pool: for tools that are values and need no deadline of their own. */
  readonly inlineTools?: boolean
  /** The effect ledger's SQLite file, the address of a PostgreSQL database (`postgres://…`), or `memory`. Default `.writ/ledger.sqlite`. */
  readonly ledger?: string
  /** Puts the SHA-256 of the model file into the provenance. Default true. */
  readonly modelHash?: boolean
  /** Where hashes of model files are remembered. Default `.writ/model-hashes.json`. */
  readonly modelHashes?: string
  /** Files of a run. Default `.writ/runs/<run-id>`. */
  readonly runDirectory?: (runId: string) => RunDirectory.RunDirectory
}

/** The model that ships with the package. */
export const tinyModel: string = fileURLToPath(
  new URL("../../models/tiny-tool-agent/tiny-tool-agent-q8_0.gguf", import.meta.url)
)

/** The built-in tools as a module that threads load. */
export const builtinToolkit: URL = new URL(
  `../tools/builtin/index${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`,
  import.meta.url
)

/** The hash of the model file, known from before or computed now. A file that cannot be hashed cannot be loaded either. */
const hashOf = (options: WiringOptions): Effect.Effect<string | undefined> => {
  if (options.modelHash === false) return Effect.succeed(undefined)
  return Effect.gen(function* () {
    if (options.modelHashes === undefined) yield* Effect.ignore(RunDirectory.prepareHome)
    const cache = options.modelHashes ?? RunDirectory.modelHashes
    return yield* ModelHashes.sha256(options.model ?? tinyModel, cache)
  }).pipe(Effect.catchTag("EngineError", () => Effect.succeed(undefined)))
}

/** The engine that was given, or a model file in its own thread. */
export const layerModel = (options: WiringOptions): Layer.Layer<Model, EngineError> =>
  options.engine ?? layerFile(options)

/** The file is hashed while it loads, so a hash that is not known yet costs no turn of its own. */
const layerFile = (options: WiringOptions): Layer.Layer<Model, EngineError> =>
  Layer.effect(
    Model,
    Effect.gen(function* () {
      const { makeWorker } = yield* Effect.promise(() => import("../actors/Inference.ts"))
      const load = makeWorker(
        {
          modelPath: options.model ?? tinyModel,
          ...(options.sessions === undefined ? {} : { sequences: options.sessions }),
          ...(options.contextTokens === undefined ? {} : { contextTokens: options.contextTokens }),
          ...(options.memoryBudget === undefined ? {} : { memoryBytes: options.memoryBudget }),
          ...(isTiny(options) ? { flashAttention: false } : {}),
          ...options.tuning,
          ...(options.isolation === undefined ? {} : { isolation: options.isolation }),
          ...(options.restarts === undefined ? {} : { restarts: options.restarts }),
          ...threadsOf(options),
          ...(options.gpu === undefined ? {} : { gpu: options.gpu })
        },
        options.loading
      )
      const [{ model }, fileSha256] = yield* Effect.all([load, hashOf(options)], { concurrency: 2 })
      return fileSha256 === undefined ? model : { ...model, identity: { ...model.identity, fileSha256 } }
    })
  )

/** An OpenAI-compatible server as a model, over Node's own connections; they end with the scope. */
export const makeServer = Effect.fnUntraced(function* (options: OpenAiOptions) {
  const [{ make }, { layerNodeHttpOptions }] = yield* Effect.promise(() =>
    Promise.all([import("../engine/OpenAiModel.ts"), import("@effect/platform-node/NodeHttpClient")])
  )
  const client = yield* Layer.build(layerNodeHttpOptions({ keepAlive: true }))
  return yield* Effect.provideContext(make(options), client)
})

/** The same as `engine`: `layer({ engine: layerServer({ url: "http://127.0.0.1:8080" }) })`. */
export const layerServer = (options: OpenAiOptions): Layer.Layer<Model, EngineError> =>
  Layer.effect(Model, makeServer(options))

/** A model file that makes vectors instead of turns, in its own thread: for comparing meanings. Gone with the scope. */
export const makeEmbedder = Effect.fnUntraced(function* (options: Pick<WiringOptions, "model" | "threads" | "gpu">) {
  const { makeEmbedder } = yield* Effect.promise(() => import("../actors/Inference.ts"))
  return yield* makeEmbedder({
    modelPath: options.model ?? tinyModel,
    ...threadsOf(options),
    ...(options.gpu === undefined ? {} : { gpu: options.gpu })
  })
})

/** What is made for large models, more threads and flash attention, only slows one of two million parameters down. */
const isTiny = ({ model }: WiringOptions): boolean => model === undefined || model === tinyModel

const threadsOf = (options: WiringOptions): { readonly threads?: number } => {
  if (options.threads !== undefined) return { threads: options.threads }
  return isTiny(options) ? { threads: 1 } : {}
}

/** Where tools run. */
export const layerTools = (options: WiringOptions): Layer.Layer<ToolPool> =>
  Layer.unwrap(
    Effect.promise(async () => {
      const pool = await import("../actors/ToolPool.ts")
      return options.inlineTools === true
        ? pool.layerInline()
        : pool.layerPiscina({
            module: options.toolkit ?? builtinToolkit,
            ...(options.toolEnv === undefined ? {} : { env: options.toolEnv })
          })
    })
  )

/** The record of each run in its directory. */
export const layerTrace = ({ runDirectory }: WiringOptions): Layer.Layer<TraceWriter.TraceWriter> =>
  runDirectory === undefined
    ? // What cannot be made is reported when the first trace is opened.
      Layer.unwrap(
        Effect.as(
          Effect.ignore(RunDirectory.prepareHome),
          TraceWriter.layerFile((runId) => RunDirectory.standard(runId).trace)
        )
      )
    : TraceWriter.layerFile((runId) => runDirectory(runId).trace)

/** The record of effects, which all runs of a directory share; on a server, all that name it. */
export const layerLedger = ({ ledger }: WiringOptions): Layer.Layer<EffectLedger.EffectLedger, LedgerError> => {
  if (ledger === "memory") return EffectLedger.layerMemory()
  if (ledger === undefined) {
    const inHome = layerLedgerAt(RunDirectory.ledger)
    return Layer.unwrap(Effect.as(Effect.ignore(RunDirectory.prepareHome), inHome))
  }
  return layerLedgerAt(ledger)
}

/** The ledger in a file or at an address. `create` false: one that is not there fails as `missing` and is not made. */
export const layerLedgerAt = (
  place: string,
  options: { readonly create?: boolean } = {}
): Layer.Layer<EffectLedger.EffectLedger, LedgerError> =>
  Layer.unwrap(
    Effect.promise(async () =>
      isAddress(place)
        ? (await import("../actors/EffectLedgerPostgres.ts")).layerPostgres({ ...options, url: place })
        : (await import("../actors/EffectLedgerSqlite.ts")).layerSqlite({ ...options, path: place })
    )
  )

/** Everything a run needs: a model in its thread, tools in their pool, record and artifacts on disk. */
export const layer = (options: WiringOptions = {}): Layer.Layer<Services, EngineError | LedgerError> => {
  const directory = options.runDirectory ?? RunDirectory.standard
  return Layer.mergeAll(
    layerModel(options),
    layerTools(options),
    layerTrace(options),
    ArtifactStore.layerDirectory((runId) => directory(runId).artifacts),
    layerLedger(options),
    Ids.layer
  )
}
