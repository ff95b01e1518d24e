/**
 * The seam to an inference backend. A session owns one sequence of tokens. Its log only grows by `commit` and `keep`;
 * a turn is speculative until kept, and anything that ends a turn early (interruption, failure, `rollback`) puts the
 * session back to the boundary before it.
 *
 * ```text
 *   commit(segments)*  ->  turn(request): stream  ->  keep(closing) | rollback
 *        boundary             speculative                boundary
 * ```
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import type { EngineError } from "./EngineError.ts"
import type { GenerationEvent, Priority, TurnRequest } from "./Generation.ts"
import type { Segment, Span } from "./Prompt.ts"

/** Who is answering. Plain data; goes into the trace's provenance. */
export interface ModelIdentity {
  readonly engine: "llama" | "scripted" | "language-model" | "openai"
  /** A name for people: the file's base name, or what a script calls itself. */
  readonly name: string
  /** Tokens a session can hold. */
  readonly contextTokens: number
  /** The chat template the model came with, if any. */
  readonly template?: string
  readonly architecture?: string
  readonly quantization?: string
  readonly fileBytes?: number
  /** SHA-256 of the model file in hex. */
  readonly fileSha256?: string
  /** Library and build, threads, chunk size and whatever else decides the numbers. */
  readonly build?: Readonly<Record<string, string | number | boolean>>
}

/** Told how many of so many tokens are evaluated. An engine that evaluates nothing says nothing. */
export type Progress = (done: number, total: number) => void

/** The engine died, was opened again, and the session was put back to its last boundary. */
export interface Recovery {
  readonly cause: "crashed" | "stalled" | "out_of_memory"
  /** How often the engine had been opened again by then, whatever for. */
  readonly restarts: number
  /** Tokens of the session's log that were evaluated again. */
  readonly tokens: number
}

/** All tokens of a saved session, where each commit and keep ended, ascending, from 0, and what it was called when it was saved. */
export interface Log {
  readonly label: string
  readonly tokens: ReadonlyArray<number>
  readonly boundaries: ReadonlyArray<number>
}

export interface ModelSession {
  /** Appends segments to the log and returns their span. Interruptible between batches; interrupted or failed, nothing stays. */
  readonly commit: (
    segments: ReadonlyArray<Segment>,
    progress?: Progress,
    priority?: Priority
  ) => Effect.Effect<Span, EngineError>
  /**
   * One speculative turn after `opening` (the assistant prefix, part of the turn). The stream's last event is `End`.
   * If the stream is not consumed to its end, the turn is rolled back before the consumer's finalizers return.
   * Without an opening, a finished turn that is not kept goes on: what comes is part of it, and it is kept or dropped as a whole.
   */
  readonly turn: (opening: ReadonlyArray<Segment>, request: TurnRequest) => Stream.Stream<GenerationEvent, EngineError>
  /** A finished turn cannot go on here. */
  readonly endsTurns?: true
  /** Makes the finished turn part of the log, followed by `closing`, and returns the span of opening, text and closing. */
  readonly keep: (closing: ReadonlyArray<Segment>) => Effect.Effect<Span, EngineError>
  /** Drops a finished turn that was not kept. Without one it does nothing. */
  readonly rollback: Effect.Effect<void, EngineError>
  /**
   * Back to an earlier boundary: a `length` that a `commit` or `keep` ended at, or 0, the empty log. An open turn is dropped
   * first. Any other length fails `bad_request`, and only the turn is gone.
   */
  readonly rewind: (length: number) => Effect.Effect<void, EngineError>
  /** What the session was brought back from so far, oldest first. An engine that dies with its program has none. */
  readonly recoveries?: () => ReadonlyArray<Recovery>
  /**
   * Writes the log and its evaluation to `path` and to a file beside it, at a boundary, and returns their bytes. Only where an
   * engine has something to save.
   */
  readonly save?: (path: string, label: string) => Effect.Effect<number, EngineError>
  /**
   * Fills an empty session with what was saved, so that it goes on bit for bit as it would have. Anything that is not what was
   * saved, with this very model evaluated in this very way, fails `bad_file`, and where nothing is there, `missing_file`; the
   * session is still empty.
   */
  readonly load?: (path: string) => Effect.Effect<Log, EngineError>
  /** Tokens in the log. */
  readonly length: Effect.Effect<number>
  /** Tokens the segments would take, without evaluating them. */
  readonly measure: (segments: ReadonlyArray<Segment>) => Effect.Effect<number, EngineError>
}

export class Model extends Context.Service<
  Model,
  {
    readonly identity: ModelIdentity
    /** Token ids exactly as a session would commit them. */
    readonly tokenize: (segments: ReadonlyArray<Segment>) => Effect.Effect<ReadonlyArray<number>, EngineError>
    /** Opens a session; its sequence is freed with the scope. */
    readonly session: Effect.Effect<ModelSession, EngineError, Scope.Scope>
  }
>()("effect-writ/engine/Model") {}
