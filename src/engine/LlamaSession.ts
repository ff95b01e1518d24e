/**
 * A `ModelSession` over one sequence: boundaries, the speculative turn, and coming back from whatever ends it early. One
 * operation at a time; every operation either finishes or leaves the session at the boundary before it.
 *
 * ```text
 *   Boundary --turn--> Running --End pulled--> Finished --keep | rollback--> Boundary
 *                        '-- interrupted, failed, not read to its end --> Boundary
 * ```
 */
import { setImmediate } from "node:timers"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { EngineError } from "./EngineError.ts"
import type { GenerationEvent, TurnRequest } from "./Generation.ts"
import type { Constraints } from "./LlamaConstraint.ts"
import { Stopped } from "./LlamaControl.ts"
import type { Cancel, Counters, LlamaSequence, Mark } from "./LlamaSequence.ts"
import { type Detokenize, TurnText } from "./LlamaText.ts"
import { TokenClock } from "./LlamaThinking.ts"
import type { ModelSession, Progress } from "./Model.ts"
import type { Segment, Span } from "./Prompt.ts"

/** What a session adds for its owner: coming back over a thread boundary, and a look at its tokens. */
export interface LlamaSession extends ModelSession {
  /**
   * Back to the boundary at `length`, if that is the present one, the one before an open turn, or the one before the last
   * operation: for a caller that was interrupted and cannot know whether the operation had finished.
   */
  readonly revert: (length: number) => Effect.Effect<void, EngineError>
  /** Evaluated tokens, and the one that is known but not yet evaluated. */
  readonly snapshot: Effect.Effect<{ readonly kv: ReadonlyArray<number>; readonly pending: ReadonlyArray<number> }>
  /** Ends what runs, then frees the sequence. The session is useless afterwards. */
  readonly close: Effect.Effect<void>
}

export interface SessionParts {
  readonly sequence: LlamaSequence
  readonly counters: Counters
  readonly detokenize: Detokenize
  readonly constraints: Constraints
  /** May throw; `first`: the log is empty. */
  readonly tokenize: (segments: ReadonlyArray<Segment>, first: boolean) => ReadonlyArray<number>
}

type End = GenerationEvent & { readonly _tag: "End" }

export const toEngineError = (cause: unknown): EngineError => {
  if (cause instanceof EngineError) return cause
  if (cause instanceof Stopped) return new EngineError({ reason: "lost", message: "The engine was closed." })
  const said = cause instanceof Error ? cause.message : String(cause)
  return new EngineError({ reason: "failed", message: `The inference library failed: ${said}.`, cause })
}

const badRequest = (message: string) => new EngineError({ reason: "bad_request", message })

export const make = (parts: SessionParts): LlamaSession => new Session(parts)

class Session implements LlamaSession {
  readonly #parts: SessionParts
  readonly #owner = Semaphore.makeUnsafe(1)
  /** The boundary before an open turn, while there is one. */
  #open: Mark | undefined
  /** The boundary before the last finished commit or keep. */
  #previous: Mark | undefined
  #boundary = 0
  #running: Cancel | undefined
  #closed = false

  constructor(parts: SessionParts) {
    this.#parts = parts
  }

  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#closed = true
      if (this.#running !== undefined) this.#running.cancelled = true
      return this.#owner.withPermit(Effect.promise(() => this.#parts.sequence.dispose()))
    })
  }

  readonly commit = (segments: ReadonlyArray<Segment>, progress?: Progress): Effect.Effect<Span, EngineError> =>
    this.#owner.withPermit(
      Effect.suspend(() =>
        this.#open === undefined
          ? this.#append(segments, "The prompt", undefined, progress)
          : Effect.fail(badRequest("A turn is open: keep it or roll it back before committing."))
      )
    )

  readonly keep = (closing: ReadonlyArray<Segment>): Effect.Effect<Span, EngineError> =>
    this.#owner.withPermit(
      Effect.suspend(() =>
        this.#open === undefined
          ? Effect.fail(badRequest("There is no finished turn to keep."))
          : this.#append(closing, "The turn's closing", this.#open)
      )
    )

  readonly turn = (opening: ReadonlyArray<Segment>, request: TurnRequest) => Stream.unwrap(this.#turn(opening, request))

  get rollback(): Effect.Effect<void, EngineError> {
    return this.#owner.withPermit(
      Effect.suspend(() => (this.#open === undefined ? Effect.void : this.#return(this.#open)))
    )
  }

  readonly revert = (length: number): Effect.Effect<void, EngineError> =>
    this.#owner.withPermit(
      Effect.suspend(() => {
        if (this.#open !== undefined) return this.#return(this.#open)
        const previous = this.#previous
        return this.#boundary !== length && previous?.length === length ? this.#return(previous) : Effect.void
      })
    )

  get length(): Effect.Effect<number> {
    return Effect.sync(() => this.#boundary)
  }

  readonly measure = (segments: ReadonlyArray<Segment>): Effect.Effect<number, EngineError> =>
    Effect.try({ try: () => this.#tokens(segments).length, catch: toEngineError })

  get snapshot() {
    return Effect.sync(() => this.#parts.sequence.snapshot())
  }

  #tokens(segments: ReadonlyArray<Segment>): ReadonlyArray<number> {
    if (this.#closed) throw badRequest("The session is closed.")
    return this.#parts.tokenize(segments, this.#parts.sequence.length === 0)
  }

  /** Appends behind the boundary, or behind the open turn whose beginning is `turn`. */
  #append(
    segments: ReadonlyArray<Segment>,
    what: string,
    turn?: Mark,
    progress?: Progress
  ): Effect.Effect<Span, EngineError> {
    const { sequence } = this.#parts
    const run = async (cancel: Cancel): Promise<Span> => {
      this.#running = cancel
      let before = turn
      try {
        const tokens = this.#tokens(segments)
        const tooLong = sequence.room(tokens.length, what)
        if (tooLong !== undefined) throw tooLong
        before ??= await sequence.mark()
        await sequence.append(tokens, cancel, { progress })
      } catch (cause) {
        if (before !== undefined) await this.#back(before)
        throw cause
      }
      this.#open = undefined
      this.#previous = before
      this.#boundary = sequence.length
      return { start: before.length, end: sequence.length }
    }
    return interruptible(run, () => (this.#previous === undefined ? Promise.resolve() : this.#back(this.#previous)))
  }

  async #back(mark: Mark): Promise<void> {
    this.#open = undefined
    this.#previous = undefined
    await this.#parts.sequence.rollback(mark)
    this.#boundary = mark.length
  }

  #return(mark: Mark): Effect.Effect<void, EngineError> {
    return Effect.uninterruptible(Effect.tryPromise({ try: () => this.#back(mark), catch: toEngineError }))
  }

  readonly #turn = Effect.fnUntraced(
    { self: this },
    function* (this: Session, opening: ReadonlyArray<Segment>, request: TurnRequest) {
      let held = true
      const release = Effect.suspend(() => {
        if (!held) return Effect.void
        held = false
        return this.#owner.release(1)
      })
      yield* Effect.acquireRelease(this.#owner.take(1), () => release, { interruptible: true })
      const tokens = yield* Effect.try({ try: () => this.#begin(opening, request), catch: toEngineError })
      const events = yield* Queue.unbounded<GenerationEvent, EngineError | Cause.Done>()
      const speculation = new Speculation(this.#parts, request, events)
      this.#running = speculation.cancel
      const running = speculation.run(tokens)
      let pulled = false
      yield* Effect.addFinalizer((exit) => {
        const before = speculation.before
        if (!pulled) {
          speculation.cancel.cancelled = true
          // a failed turn has rolled itself back
          return Effect.promise(() => running).pipe(
            Effect.flatMap((end) => (end === undefined || before === undefined ? Effect.void : this.#return(before))),
            Effect.ignore
          )
        }
        if (Exit.isSuccess(exit) || before === undefined) return Effect.void
        const mine = Effect.suspend(() => (this.#open === before ? this.#return(before) : Effect.void))
        return Effect.ignore(this.#owner.withPermit(mine))
      })
      const last = Stream.unwrap(
        Effect.suspend(() => {
          pulled = true
          this.#open = speculation.before
          return Effect.as(release, Stream.fromEffect(Effect.promise(() => running as Promise<GenerationEvent>)))
        })
      )
      return Stream.concat(Stream.fromQueue(events), last)
    }
  )

  /** Checks a turn before anything is evaluated. */
  #begin(opening: ReadonlyArray<Segment>, request: TurnRequest): ReadonlyArray<number> {
    const { sequence } = this.#parts
    if (this.#open !== undefined) throw badRequest("A turn is open: keep it or roll it back before the next one.")
    if (!(request.maxTokens >= 1)) throw badRequest("A turn must be allowed at least one token.")
    const tokens = this.#tokens(opening)
    if (sequence.length + tokens.length === 0) throw badRequest("A turn needs a prompt: commit something first.")
    const tooLong = sequence.room(tokens.length + request.maxTokens, "The turn")
    if (tooLong !== undefined) throw tooLong
    return tokens
  }
}

/** One turn while it runs: tells its events to a queue. */
class Speculation {
  readonly cancel: Cancel = { cancelled: false }
  /** The boundary before the turn, once it has begun. */
  before: Mark | undefined
  readonly #parts: SessionParts
  readonly #request: TurnRequest
  readonly #events: Queue.Queue<GenerationEvent, EngineError | Cause.Done>
  #outbox: Array<GenerationEvent> = []

  constructor(
    parts: SessionParts,
    request: TurnRequest,
    events: Queue.Queue<GenerationEvent, EngineError | Cause.Done>
  ) {
    this.#parts = parts
    this.#request = request
    this.#events = events
  }

  /** Ends the queue and returns the turn's end, or fails the queue and returns nothing. Never rejects. */
  async run(opening: ReadonlyArray<number>): Promise<End | undefined> {
    try {
      this.before = await this.#parts.sequence.mark()
      const end = await this.#generate(opening, this.before)
      this.#deliver()
      Queue.endUnsafe(this.#events)
      return end
    } catch (cause) {
      let failure = cause
      if (this.before !== undefined)
        await this.#parts.sequence.rollback(this.before).catch((worse) => {
          failure = worse
        })
      Queue.failCauseUnsafe(this.#events, Cause.fail(toEngineError(failure)))
      return undefined
    }
  }

  /**
   * Events wait for two turns of the loop: by then the next evaluation runs on its own thread, and telling a reader about
   * the last one costs no time of the model's.
   */
  #tell(event: GenerationEvent): void {
    this.#outbox.push(event)
    if (this.#outbox.length === 1) setImmediate(() => setImmediate(() => this.#deliver()))
  }

  #deliver(): void {
    Queue.offerAllUnsafe(this.#events, this.#outbox)
    this.#outbox = []
  }

  async #generate(opening: ReadonlyArray<number>, before: Mark): Promise<End> {
    const { constraints, counters, detokenize, sequence } = this.#parts
    const request = this.#request
    counters.turns++
    const started = performance.now()
    let decoding = started
    let outputTokens = 0
    // everything known and not yet in the cache is evaluated before the first new token
    const total = before.length - before.fed + opening.length
    const prefilled = (done: number) => this.#tell({ _tag: "Prefill", done, total })
    await sequence.append(opening, this.cancel, { generates: true, progress: prefilled })
    const constraint = request.grammar === undefined ? undefined : constraints.make(request.grammar, sequence.last(16))
    const thinking =
      request.thinking === undefined
        ? undefined
        : new TokenClock(request.thinking, constraints.parts, sequence.last(16))
    const text = new TurnText(detokenize, request.stops, sequence.last(4), (piece, tokens) => {
      this.#tell({ _tag: "Piece", text: piece, tokens })
    })
    let reason = await sequence.generate(
      request.sampling,
      request.maxTokens,
      this.cancel,
      (token) => {
        if (outputTokens++ === 0) {
          decoding = performance.now()
          prefilled(total)
        }
        return text.push(token)
      },
      constraint,
      thinking
    )
    if (text.end()) reason = "stop"
    const ended = performance.now()
    if (outputTokens === 0) decoding = ended
    const usage = {
      prefillTokens: total,
      outputTokens,
      prefillMillis: decoding - started,
      decodeMillis: ended - decoding
    }
    return { _tag: "End", reason, usage, ...(thinking?.closed === undefined ? {} : { thinkClosed: thinking.closed }) }
  }
}

/** Runs a promise that can be asked to end: interruption asks, waits, and undoes what finished all the same. */
const interruptible = <A>(
  run: (cancel: Cancel) => Promise<A>,
  undo: () => Promise<void>
): Effect.Effect<A, EngineError> =>
  Effect.callback<A, EngineError>((resume) => {
    const cancel: Cancel = { cancelled: false }
    let finished = false
    const running = run(cancel).then(
      (value) => {
        finished = true
        resume(Effect.succeed(value))
      },
      (cause) => resume(Effect.fail(toEngineError(cause)))
    )
    return Effect.ignore(
      Effect.tryPromise({
        try: async () => {
          cancel.cancelled = true
          await running
          if (finished) await undo()
        },
        catch: toEngineError
      })
    )
  })
