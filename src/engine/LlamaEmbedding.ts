/**
 * Vectors of texts over node-llama-cpp: one per text, of the text as it stands, pooled as the model file says and by its last
 * token where it says nothing. Runs in whatever thread it is called in, as `LlamaModel.ts` does. Compares nothing.
 */

import * as Path from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { CustomBatchingPrioritizationStrategy, LlamaEmbeddingContext, LlamaModel, Token } from "node-llama-cpp"
import { badRequest, EngineError } from "./EngineError.ts"
import type { GgufInfo } from "./GgufFile.ts"
import { type Control, Stopped } from "./LlamaControl.ts"
import {
  buildOf,
  chunkOf,
  disposeMillis,
  identityOf,
  type Loaded,
  type LoadOptions,
  native,
  open
} from "./LlamaLoading.ts"
import type { ModelIdentity } from "./Model.ts"

export interface EmbeddingOptions extends LoadOptions {
  /**
   * Tokens a text may have. Default: 8192, or 2048 where the model has to see a text as a whole, which takes memory for all of
   * it at once. Never more than the model was trained for.
   */
  readonly contextTokens?: number
}

/** A loaded model that makes vectors. */
export interface LlamaEmbedder {
  /** `contextTokens`: of one text, with the tokens the model puts around it. */
  readonly identity: ModelIdentity
  /**
   * One vector per text, in order, all of one length; the same text makes the same vector. Fails with `context_overflow` where a
   * text is too long and with `bad_request` where it has no token, before any is evaluated. Interruptible between texts and,
   * where the model reads forwards, within one; calls wait for each other.
   */
  readonly embed: (texts: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<ReadonlyArray<number>>, EngineError>
}

/** As `LlamaEmbedder`, with what tests and benchmarks may look at. */
export interface CountedEmbedder extends LlamaEmbedder {
  /** Tokens given to the model since it was opened, only growing. */
  readonly counters: { readonly evaluatedTokens: number }
}

const defaults = { forwards: 8192, whole: 2048 }
const poolings = ["none", "mean", "cls", "last", "rank"]

/** What the file says about how vectors are made. */
interface Pooling {
  readonly name: string
  /** Texts must be evaluated in one batch: what is pooled, or what each token sees, lies all over the text. */
  readonly whole: boolean
}

/** Models in two halves: the library makes no vectors with them, and says so only after it has loaded gigabytes. */
const halves: ReadonlyArray<string> = ["t5"]

const unsupported = (name: string, why: string): EngineError =>
  new EngineError({
    reason: "unsupported",
    message: `${name} makes no vectors: ${why}. Choose a model made for embeddings, or one that reads forwards.`
  })

const fits = ({ architecture = "", path }: GgufInfo): Effect.Effect<void, EngineError> =>
  halves.includes(architecture)
    ? Effect.fail(unsupported(Path.basename(path), "it has an encoder and a decoder"))
    : Effect.void

const poolingOf = (model: LlamaModel, name: string): Effect.Effect<Pooling, EngineError> => {
  const said = model.fileInfo.architectureMetadata as {
    readonly pooling_type?: number
    readonly attention?: { readonly causal?: boolean }
  }
  const pooling = poolings[said.pooling_type ?? 0] ?? "none"
  if (pooling === "rank") return Effect.fail(unsupported(name, "it grades pairs of texts"))
  const forwards = said.attention?.causal !== false && (pooling === "none" || pooling === "last")
  return Effect.succeed({ name: pooling === "none" ? "last" : pooling, whole: !forwards })
}

/** Loads a model into the scope, to make vectors only. Interruption aborts the load; `progress` as in `LlamaModel.load`. */
export const load = Effect.fnUntraced(function* (
  options: EmbeddingOptions,
  control: Control,
  progress: (share: number) => void = () => {}
): Effect.fn.Return<CountedEmbedder, EngineError, Scope.Scope> {
  const loaded = yield* open(options, control, progress, fits)
  const { file, model } = loaded
  const name = Path.basename(file.path)
  const pooling = yield* poolingOf(model, name)
  const asked = options.contextTokens ?? (pooling.whole ? defaults.whole : defaults.forwards)
  const contextTokens = Math.max(8, Math.min(asked, model.trainContextSize))
  const batchTokens = pooling.whole ? contextTokens : Math.min(contextTokens, chunkOf(loaded, undefined))
  const evaluator = new Evaluator(loaded, control, contextTokens, batchTokens)
  yield* Effect.addFinalizer(() => Effect.promise(() => evaluator.drop()))
  // What cannot make a context fails here, not at the first text.
  yield* evaluator.ready
  const build = yield* buildOf(loaded)
  const one = Semaphore.makeUnsafe(1)
  return {
    counters: evaluator.counters,
    identity: identityOf(file, {
      contextTokens,
      build: { ...build, contextTokens, batchTokens, pooling: pooling.name }
    }),
    embed: (texts) =>
      Effect.suspend(() => evaluator.tokens(texts)).pipe(
        Effect.flatMap((all) => Effect.forEach(all, (tokens) => evaluator.vector(tokens))),
        one.withPermit
      )
  }
})

/** Owns the native context. One caller at a time. */
class Evaluator {
  readonly counters = { evaluatedTokens: 0 }
  readonly #loaded: Loaded
  readonly #control: Control
  readonly #contextTokens: number
  readonly #batchTokens: number
  #context: LlamaEmbeddingContext | undefined
  /** Of the text that is being evaluated. */
  #signal: AbortSignal | undefined

  constructor(loaded: Loaded, control: Control, contextTokens: number, batchTokens: number) {
    this.#loaded = loaded
    this.#control = control
    this.#contextTokens = contextTokens
    this.#batchTokens = batchTokens
  }

  get #name(): string {
    return Path.basename(this.#loaded.file.path)
  }

  /** The context, made anew where the last one was dropped. */
  readonly ready: Effect.Effect<LlamaEmbeddingContext, EngineError> = Effect.suspend(() =>
    this.#context === undefined
      ? native(this.#control, (signal) => this.#create(signal), this.#loaded.explain)
      : Effect.succeed(this.#context)
  )

  /** Tokens of each text. Text stays text: what looks like a control token is none. */
  tokens(texts: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<ReadonlyArray<Token>>, EngineError> {
    return Effect.flatMap(this.ready, (context) =>
      Effect.forEach(texts, (text, index) =>
        Effect.try({
          try: () => this.#tokenize(context, text, texts.length === 1 ? "" : ` ${index + 1} of ${texts.length}`),
          catch: this.#explain
        })
      )
    )
  }

  /** A native call like others: a thread that ends within it takes the process along. */
  #tokenize(context: LlamaEmbeddingContext, text: string, which: string): ReadonlyArray<Token> {
    this.#control.enter()
    try {
      const tokens = this.#loaded.model.tokenize(text)
      if (tokens.length === 0) {
        throw badRequest(`Text${which} has no token, so it has no vector.`)
      }
      const length = context.calculateInputLength(tokens)
      if (length <= this.#contextTokens) return tokens
      throw new EngineError({
        reason: "context_overflow",
        message:
          `Text${which} has ${length} tokens, ${this.#name} takes ${this.#contextTokens} at a time. ` +
          "Shorten it, or use a model with a larger context."
      })
    } finally {
      this.#control.leave()
    }
  }

  vector(tokens: ReadonlyArray<Token>): Effect.Effect<ReadonlyArray<number>, EngineError> {
    return Effect.flatMap(this.ready, (context) =>
      native(this.#control, (signal) => this.#evaluate(context, tokens, signal), this.#explain)
    )
  }

  /** Frees the context, once nothing is evaluated any more. */
  async drop(): Promise<void> {
    const context = this.#context
    this.#context = undefined
    if (context !== undefined) await this.#control.closing(disposeMillis, () => context.dispose())
  }

  async #evaluate(context: LlamaEmbeddingContext, tokens: ReadonlyArray<Token>, signal: AbortSignal) {
    this.#signal = signal
    try {
      const { vector } = await context.getEmbeddingFor([...tokens])
      if (vector.length === 0 || !vector.every(Number.isFinite)) throw new Error("it is not made of numbers")
      return vector
    } catch (cause) {
      // The library no longer knows what of this text is in the cache.
      await this.drop()
      throw cause
    } finally {
      this.#signal = undefined
    }
  }

  /**
   * An embedding context cannot be told to stop, and disposing of it while it works frees memory it still reads. But the
   * library makes it with the model's `createContext`, and asks a context before each batch what to evaluate next: the place
   * to give up. Should another version not ask, a text is evaluated to its end.
   */
  async #create(createSignal: AbortSignal): Promise<LlamaEmbeddingContext> {
    const { library, llama, model, threads } = this.#loaded
    const createContext = model.createContext
    model.createContext = (options) =>
      createContext.call(model, { ...options, batching: { itemPrioritizationStrategy: this.#next } })
    try {
      this.#context = await model.createEmbeddingContext({
        // One more than a text may have, since the library keeps a place free.
        contextSize: this.#contextTokens + 1,
        batchSize: this.#batchTokens,
        threads,
        createSignal
      })
      // It warns of every batch, which is of no use to anybody.
      llama.logLevel = library.LlamaLogLevel.error
      return this.#context
    } finally {
      model.createContext = createContext
    }
  }

  readonly #next: CustomBatchingPrioritizationStrategy = ({ items, size }) => {
    if (this.#signal?.aborted === true) throw new Stopped()
    // One sequence, so one item: a text.
    return items.map((item) => {
      const processAmount = Math.min(item.tokens.length, size)
      this.counters.evaluatedTokens += processAmount
      return { item, processAmount }
    })
  }

  readonly #explain = (cause: unknown): EngineError => {
    if (cause instanceof EngineError) return cause
    if (cause instanceof Stopped) return this.#loaded.explain(cause)
    const said = cause instanceof Error ? cause.message : String(cause)
    return new EngineError({
      reason: "failed",
      message: `${this.#name} made no vector: ${said}. Try another model.`,
      cause
    })
  }
}
