/**
 * The `Model` over node-llama-cpp: checks the file, loads it, and hands out sessions. Runs in whatever thread it is called
 * in; `worker.ts` calls it in a thread of its own. Nothing here renders templates or understands calls.
 */

import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { LlamaContext, LlamaModel as NativeModel, Token } from "node-llama-cpp"
import { allInUse, EngineError } from "./EngineError.ts"
import { Constraints } from "./LlamaConstraint.ts"
import type { Control } from "./LlamaControl.ts"
import { toEngineError } from "./LlamaFailure.ts"
import { Lanes } from "./LlamaLanes.ts"
import type { Library } from "./LlamaLibrary.ts"
import { buildOf, chunkOf, disposeMillis, identityOf, type LoadOptions, native, open } from "./LlamaLoading.ts"
import { affordable } from "./LlamaMemory.ts"
import { Prefixes, type Reuse } from "./LlamaPrefixes.ts"
import type { Facts } from "./LlamaSaved.ts"
import { type Counters, LlamaSequence } from "./LlamaSequence.ts"
import * as LlamaSession from "./LlamaSession.ts"
import type { Detokenize } from "./LlamaText.ts"
import { markers, type Tokenizer, tokenize } from "./LlamaTokenizer.ts"
import * as LlamaTuning from "./LlamaTuning.ts"
import type { Model, ModelIdentity } from "./Model.ts"
import type { Segment } from "./Prompt.ts"

export interface LlamaOptions extends LoadOptions, LlamaTuning.Tuning {
  /** Tokens a session holds. Default: 8192, and never more than the model was trained for. */
  readonly contextTokens?: number
  /** Sessions at a time. Default 4. */
  readonly sequences?: number
  /** Tokens evaluated between two looks at cancellation. Default 64 on the processor, 256 on a GPU. */
  readonly chunkTokens?: number
  /** Bytes of main memory the sessions may take. Default: what is there. */
  readonly memoryBytes?: number
  /** A native call that takes longer counts as hung. Default 120. */
  readonly stallSeconds?: number
  /** Load what sessions begin with in common instead of evaluating it again. Default `measured`: where it pays. */
  readonly reuse?: Reuse
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

/**
 * Loads a model into the scope. The file is checked before native code sees it. Interruption aborts the load. `progress` is
 * told the share of the weights that is there, from 0 to 1, in whole hundredths.
 */
export const load = Effect.fnUntraced(function* (
  options: LlamaOptions,
  control: Control,
  progress: (share: number) => void = () => {}
): Effect.fn.Return<LlamaEngine, EngineError, Scope.Scope> {
  yield* LlamaTuning.check(options)
  const loaded = yield* open(options, control, progress)
  const { explain, file, library, model, threads } = loaded
  const sequences = options.sequences ?? defaults.sequences
  const contextTokens = Math.max(8, Math.min(options.contextTokens ?? defaults.contextTokens, model.trainContextSize))
  const cache = LlamaTuning.estimateOptions(loaded.library, options)
  yield* affordable(
    model,
    { ...cache, contextSize: contextTokens, sequences },
    Path.basename(file.path),
    options.memoryBytes
  )
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
          ...LlamaTuning.contextOptions(options),
          createSignal: signal
        }),
      LlamaTuning.explained(options, Path.basename(file.path), explain)
    ),
    (context) => Effect.promise(() => control.closing(disposeMillis, () => context.dispose())),
    { interruptible: true }
  )
  const chunkTokens = chunkOf(loaded, options.chunkTokens)
  const { headerHash, ...build } = yield* buildOf(loaded)
  const identity = identityOf(file, {
    contextTokens,
    build: {
      ...build,
      chunkTokens,
      batchTokens: context.batchSize,
      contextTokens,
      sequences,
      flashAttention: context.flashAttention,
      swaFullCache: true,
      ...(yield* LlamaTuning.buildOf(options)),
      headerHash
    }
  })
  const prefixes = yield* Effect.acquireRelease(
    Effect.sync(() => new Prefixes({ reuse: options.reuse ?? "measured", chunkTokens })),
    (made) => Effect.sync(() => made.close())
  )
  const parts = { library, model, context, prefixes, facts: factsOf(identity, options.modelPath) }
  return engine({ ...options, contextTokens, chunkTokens }, control, parts, identity)
})

/** What may differ between a saved state and whoever loads it. */
const free = new Set(["threads", "contextTokens"])

/** Two files can have the same header and length, so it counts when the file was written as well. */
const factsOf = ({ build, fileBytes = 0 }: ModelIdentity, modelPath: string): Facts => ({
  ...Object.fromEntries(Object.entries(build ?? {}).filter(([name]) => !free.has(name))),
  fileBytes,
  fileWritten: Fs.statSync(modelPath).mtimeMs
})

interface EngineParts {
  readonly library: Library
  readonly model: NativeModel
  readonly context: LlamaContext
  readonly prefixes: Prefixes
  readonly facts: Facts
}

const engine = (
  options: LlamaOptions & { readonly contextTokens: number; readonly chunkTokens: number },
  control: Control,
  { context, facts, library, model, prefixes }: EngineParts,
  identity: ModelIdentity
): LlamaEngine => {
  const tokenizer = tokenizerOf(model)
  const lanes = new Lanes()
  const counters: Counters = { evaluatedTokens: 0, reusedTokens: 0, erasedTokens: 0, turns: 0 }
  // A native call like others: a thread that ends within it takes the process along.
  const encode = (segments: ReadonlyArray<Segment>, first: boolean) => {
    control.enter()
    try {
      return tokenize(tokenizer, segments, first)
    } finally {
      control.leave()
    }
  }
  const detokenize = detokenizer(model)
  const constraints = new Constraints({ library, model, tokenizer, detokenize })
  const open = Effect.try({
    try: () =>
      new LlamaSequence({
        model,
        control,
        counters,
        lanes,
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
    catch: () => allInUse(context.totalSequences)
  })
  return {
    identity,
    counters,
    tokenize: (segments) => Effect.try({ try: () => encode(segments, true), catch: toEngineError }),
    session: Effect.acquireRelease(
      Effect.map(open, (sequence) =>
        LlamaSession.make({ sequence, counters, tokenize: encode, detokenize, constraints, prefixes, facts })
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
