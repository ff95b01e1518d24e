/**
 * The `Model` over node-llama-cpp: checks the file, loads it, and hands out sessions. Runs in whatever thread it is called
 * in; `worker.ts` calls it in a thread of its own. Nothing here renders templates or understands calls.
 */

import * as Os from "node:os"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { LlamaContext, LlamaModel as NativeModel, Token } from "node-llama-cpp"
import { EngineError } from "./EngineError.ts"
import * as GgufFile from "./GgufFile.ts"
import { Constraints } from "./LlamaConstraint.ts"
import type { Control } from "./LlamaControl.ts"
import { type Gpu, importLibrary, type Library, LogTail, start } from "./LlamaLibrary.ts"
import { type Counters, LlamaSequence } from "./LlamaSequence.ts"
import * as LlamaSession from "./LlamaSession.ts"
import type { Detokenize } from "./LlamaText.ts"
import { markers, type Tokenizer, tokenize } from "./LlamaTokenizer.ts"
import type { Model, ModelIdentity } from "./Model.ts"
import type { Segment } from "./Prompt.ts"

export interface LlamaOptions {
  readonly modelPath: string
  /** Tokens a session holds. Default: 8192, and never more than the model was trained for. */
  readonly contextTokens?: number
  /** Sessions at a time. Default 4. */
  readonly sequences?: number
  /** Default: all processors but one. More than there are processors is ruinous. */
  readonly threads?: number
  readonly gpu?: Gpu
  /** Tokens evaluated between two looks at cancellation. Default 64 on the processor, 256 on a GPU. */
  readonly chunkTokens?: number
  /** A native call that takes longer counts as hung. Default 120. */
  readonly stallSeconds?: number
  /** Compare cache and log in full after every operation. For tests. */
  readonly verify?: boolean
}

/** A loaded model: the seam, and what its owner may look at. */
export interface LlamaEngine {
  readonly identity: ModelIdentity
  readonly tokenize: Model["Service"]["tokenize"]
  readonly session: Effect.Effect<LlamaSession.LlamaSession, EngineError, Scope.Scope>
  readonly counters: Readonly<Counters>
}

const defaults = { contextTokens: 8192, sequences: 4, stallSeconds: 120, batchTokens: 512 }
/** Milliseconds a native object gets for its end; one that failed to load can hold on for ever. */
const disposeMillis = 5_000

/** Loads a model into the scope. The file is checked before native code sees it. Interruption aborts the load. */
export const load = Effect.fnUntraced(function* (
  options: LlamaOptions,
  control: Control
): Effect.fn.Return<LlamaEngine, EngineError, Scope.Scope> {
  const file = yield* GgufFile.read(options.modelPath)
  const library = yield* importLibrary
  const log = new LogTail()
  const explain = loadError(options.modelPath, log)
  const threads = Math.max(1, options.threads ?? Os.availableParallelism() - 1)
  const llama = yield* native(control, () => start(library, options.gpu ?? "auto", threads, log), explain)
  // The instance is not disposed: a load that failed natively makes that hang, and the thread's end frees it.
  const model = yield* Effect.acquireRelease(
    native(control, (signal) => llama.loadModel({ modelPath: options.modelPath, loadSignal: signal }), explain),
    (model) => Effect.promise(() => control.closing(disposeMillis, () => model.dispose())),
    { interruptible: true }
  )
  const sequences = options.sequences ?? defaults.sequences
  const contextTokens = Math.max(8, Math.min(options.contextTokens ?? defaults.contextTokens, model.trainContextSize))
  yield* affordable(model, contextTokens, sequences, Path.basename(file.path))
  const context = yield* Effect.acquireRelease(
    native(
      control,
      (signal) =>
        model.createContext({
          contextSize: contextTokens,
          sequences,
          threads,
          batchSize: Math.min(defaults.batchTokens, contextTokens),
          swaFullCache: true,
          createSignal: signal
        }),
      explain
    ),
    (context) => Effect.promise(() => control.closing(disposeMillis, () => context.dispose())),
    { interruptible: true }
  )
  const version = yield* Effect.promise(() => library.getModuleVersion())
  const chunkTokens = Math.max(1, options.chunkTokens ?? (llama.gpu === false ? 64 : 256))
  const release = llama.llamaCppRelease
  const identity = identityOf(file, {
    contextTokens,
    build: {
      library: `node-llama-cpp ${version}`,
      llamaCpp: `${release.repo} ${release.release}`,
      gpu: llama.gpu === false ? "none" : llama.gpu,
      gpuLayers: model.gpuLayers,
      threads,
      chunkTokens,
      batchTokens: context.batchSize,
      contextTokens,
      sequences,
      flashAttention: context.flashAttention,
      swaFullCache: true,
      headerHash: file.headerHash
    }
  })
  return engine({ ...options, contextTokens, chunkTokens }, control, { library, model, context }, identity)
})

const engine = (
  options: LlamaOptions & { readonly contextTokens: number; readonly chunkTokens: number },
  control: Control,
  {
    context,
    library,
    model
  }: { readonly library: Library; readonly model: NativeModel; readonly context: LlamaContext },
  identity: ModelIdentity
): LlamaEngine => {
  const tokenizer = tokenizerOf(model)
  const counters: Counters = { evaluatedTokens: 0, erasedTokens: 0, turns: 0 }
  const encode = (segments: ReadonlyArray<Segment>, first: boolean) => tokenize(tokenizer, segments, first)
  const detokenize = detokenizer(model)
  const constraints = new Constraints({ library, model, tokenizer, detokenize })
  const open = Effect.try({
    try: () =>
      new LlamaSequence({
        model,
        control,
        counters,
        open: () =>
          context.getSequence({
            contextShift: {
              strategy: () => {
                throw new EngineError({ reason: "context_overflow", message: "The context is full." })
              }
            }
          }),
        chunkTokens: options.chunkTokens,
        contextTokens: options.contextTokens,
        stallMillis: (options.stallSeconds ?? defaults.stallSeconds) * 1000,
        verify: options.verify ?? false
      }),
    catch: () =>
      new EngineError({
        reason: "no_session",
        message: `All ${context.totalSequences} sessions of the engine are in use. Close one, or open the model with more.`
      })
  })
  return {
    identity,
    counters,
    tokenize: (segments) => Effect.try({ try: () => encode(segments, true), catch: LlamaSession.toEngineError }),
    session: Effect.acquireRelease(
      Effect.map(open, (sequence) =>
        LlamaSession.make({ sequence, counters, tokenize: encode, detokenize, constraints })
      ),
      (session) => session.close
    )
  }
}

const tokenizerOf = (model: NativeModel): Tokenizer => {
  const vocabulary = model.fileInfo.metadata.tokenizer.ggml
  // Such a vocabulary starts every text with a space, which is wrong anywhere but at the beginning.
  const spaced = model.vocabularyType === "spm"
  const { bos, shouldPrependBosToken } = model.tokens
  return {
    guard: markers(vocabulary.tokens as ReadonlyArray<string>, vocabulary.token_type as ReadonlyArray<number>),
    encode: (text, special, first) =>
      spaced && !first ? model.tokenize(text, special, "trimLeadingSpace") : model.tokenize(text, special),
    ...(shouldPrependBosToken && bos !== null ? { bos } : {})
  }
}

/**
 * Token ids to text. In byte-level vocabularies a token's bytes do not depend on its neighbours, so whole characters are
 * remembered; other vocabularies put spaces according to what came before.
 */
const detokenizer = (model: NativeModel): Detokenize => {
  if (model.vocabularyType !== "bpe") {
    return (tokens, before) => model.detokenize(tokens as Array<Token>, true, before as Array<Token>)
  }
  const known = new Map<number, string>()
  return (tokens) => {
    const single = tokens.length === 1 ? tokens[0]! : -1
    const remembered = known.get(single)
    if (remembered !== undefined) return remembered
    const text = model.detokenize(tokens as Array<Token>, true)
    if (single >= 0 && !text.includes("\uFFFD")) known.set(single, text)
    return text
  }
}

/**
 * Refuses a context that does not fit the memory, before it is allocated. The cache alone is computed first, because the
 * library's full estimate takes minutes where the cache is absurdly large.
 */
const affordable = Effect.fnUntraced(function* (
  model: NativeModel,
  contextSize: number,
  sequences: number,
  name: string
): Effect.fn.Return<void, EngineError> {
  const asked = { contextSize, sequences, modelGpuLayers: model.gpuLayers, swaFullCache: true }
  const available = process.availableMemory()
  const cache = model.fileInsights.estimateContextResourceRequirements({ ...asked, includeGraphOverhead: false }).cpuRam
  const needed =
    cache > available
      ? cache
      : (yield* Effect.tryPromise({
          try: () => model.fileInsights.estimateContextResourceRequirementsV2(asked),
          catch: LlamaSession.toEngineError
        })).cpuRam
  if (needed <= available) return
  const mib = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`
  return yield* new EngineError({
    reason: "not_enough_memory",
    message:
      `${name} with ${sequences} sessions of ${contextSize} tokens needs about ${mib(needed)}, ` +
      `${mib(available)} are available. Open it with a smaller context or fewer sessions.`
  })
})

const identityOf = (
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
const native = <A>(
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
    if (kind === "Stopped") return LlamaSession.toEngineError(cause)
    return new EngineError({
      reason: "bad_file",
      message: `${name} could not be loaded: ${said}. It may be damaged or of a kind this build cannot run (${path}).${log.said}`,
      cause
    })
  }
