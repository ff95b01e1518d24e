/**
 * What every use of a model file begins with: the file is checked, the library started, the weights loaded; and what its
 * failures are called. Makes no context: what is done with the weights is said in `LlamaModel.ts` and `LlamaEmbedding.ts`.
 */

import * as Os from "node:os"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Llama, LlamaModel as NativeModel } from "node-llama-cpp"
import { EngineError } from "./EngineError.ts"
import * as GgufFile from "./GgufFile.ts"
import type { Control } from "./LlamaControl.ts"
import { toEngineError } from "./LlamaFailure.ts"
import { type Gpu, importLibrary, type Library, LogTail, start } from "./LlamaLibrary.ts"
import type { ModelIdentity } from "./Model.ts"

export interface LoadOptions {
  readonly modelPath: string
  /** Default: all processors but one. More than there are processors is ruinous. */
  readonly threads?: number
  readonly gpu?: Gpu
}

/** A file whose weights are there, and what it was made with. */
export interface Loaded {
  readonly file: GgufFile.GgufInfo
  readonly library: Library
  readonly llama: Llama
  readonly model: NativeModel
  readonly threads: number
  /** Names a native failure of this file. */
  readonly explain: (cause: unknown) => EngineError
}

/** Milliseconds a native object gets for its end; one that failed to load can hold on for ever. */
export const disposeMillis = 5_000

/**
 * Loads the weights into the scope. The file is checked before native code sees it, and `fits` asked. Interruption aborts
 * the load. `progress` is told the share of the weights that is there, from 0 to 1, in whole hundredths.
 */
export const open = Effect.fnUntraced(function* (
  options: LoadOptions,
  control: Control,
  progress: (share: number) => void,
  fits: (file: GgufFile.GgufInfo) => Effect.Effect<void, EngineError> = () => Effect.void
): Effect.fn.Return<Loaded, EngineError, Scope.Scope> {
  const file = yield* GgufFile.read(options.modelPath)
  yield* fits(file)
  const library = yield* importLibrary
  const log = new LogTail()
  const explain = loadError(options.modelPath, log)
  const threads = Math.max(1, options.threads ?? Os.availableParallelism() - 1)
  const llama = yield* native(control, () => start(library, options.gpu ?? "auto", threads, log), explain)
  yield* asAsked(options.gpu, llama)
  // The instance is not disposed: a load that failed natively makes that hang, and the thread's end frees it.
  const model = yield* weights(llama, options.modelPath, control, explain, progress)
  return { file, library, llama, model, threads, explain }
})

/** Where a GPU that was named is not there, the library takes the processor without a word. */
const asAsked = (asked: Gpu | undefined, llama: Llama): Effect.Effect<void, EngineError> =>
  asked === undefined || asked === "auto" || asked === llama.gpu
    ? Effect.void
    : Effect.fail(
        new EngineError({
          reason: "unavailable",
          message: `There is no ${String(asked)} here that llama.cpp can use. Run with gpu auto or off; writ doctor shows what there is.`
        })
      )

/** What decides the numbers and is the same for every use. */
export const buildOf = ({ file, library, llama, model, threads }: Loaded) =>
  Effect.map(
    Effect.promise(() => library.getModuleVersion()),
    (version) => ({
      library: `node-llama-cpp ${version}`,
      llamaCpp: `${llama.llamaCppRelease.repo} ${llama.llamaCppRelease.release}`,
      gpu: llama.gpu === false ? "none" : llama.gpu,
      gpuLayers: model.gpuLayers,
      threads,
      headerHash: file.headerHash
    })
  )

/** Tokens evaluated between two looks at cancellation. */
export const chunkOf = ({ llama }: Loaded, asked: number | undefined): number =>
  Math.max(1, asked ?? (llama.gpu === false ? 64 : 256))

const weights = (
  llama: Llama,
  modelPath: string,
  control: Control,
  explain: (cause: unknown) => EngineError,
  progress: (share: number) => void
) =>
  Effect.acquireRelease(
    native(
      control,
      (loadSignal) => llama.loadModel({ modelPath, loadSignal, onLoadProgress: inHundredths(progress) }),
      explain
    ),
    (model) => Effect.promise(() => control.closing(disposeMillis, () => model.dispose())),
    { interruptible: true }
  )

/** The library tells after every tensor; more than a hundred times is of no use to anybody. */
const inHundredths = (progress: (share: number) => void) => {
  let told = -1
  return (share: number): void => {
    const hundredth = Math.floor(share * 100)
    if (!(hundredth > told)) return
    told = hundredth
    progress(Math.min(1, hundredth / 100))
  }
}

/** Who answers, from what the file says and what decides the numbers. */
export const identityOf = (
  file: GgufFile.GgufInfo,
  rest: { readonly contextTokens: number; readonly build: Readonly<Record<string, string | number | boolean>> }
): ModelIdentity => ({
  engine: "llama",
  name: Path.basename(file.path),
  fileBytes: file.fileBytes,
  ...(file.template === undefined ? {} : { template: file.template }),
  ...(file.architecture === undefined ? {} : { architecture: file.architecture }),
  ...(file.quantization === undefined ? {} : { quantization: file.quantization }),
  ...rest
})

/** A native step of loading: interruption and the stop flag abort it, and both wait until it has really ended. */
export const native = <A>(
  control: Control,
  run: (signal: AbortSignal) => Promise<A>,
  explain: (cause: unknown) => EngineError
): Effect.Effect<A, EngineError> =>
  Effect.callback<A, EngineError>((resume) => {
    const abort = new AbortController()
    const running = control
      .native(() => run(AbortSignal.any([abort.signal, control.signal])))
      .then(
        (value) => resume(Effect.succeed(value)),
        (cause) => resume(Effect.fail(explain(cause)))
      )
    return Effect.promise(() => {
      abort.abort()
      return running
    })
  })

const loadError =
  (path: string, log: LogTail) =>
  (cause: unknown): EngineError => {
    const name = Path.basename(path)
    const said = cause instanceof Error ? cause.message : String(cause)
    const kind = cause instanceof Error ? cause.constructor.name : ""
    if (kind === "NoBinaryFoundError") {
      return new EngineError({
        reason: "unavailable",
        message:
          "node-llama-cpp has no binary for this machine or for the GPU that was asked for. Reinstall it, or run with gpu off." +
          log.said,
        cause
      })
    }
    if (kind === "InsufficientMemoryError") {
      return new EngineError({
        reason: "not_enough_memory",
        message: `There is not enough memory for ${name} (${said}). Use a smaller file, context or number of sessions.${log.said}`,
        cause
      })
    }
    if (kind === "Stopped") return toEngineError(cause)
    return new EngineError({
      reason: "bad_file",
      message: `${name} could not be loaded: ${said}. It may be damaged or of a kind this build cannot run (${path}).${log.said}`,
      cause
    })
  }
