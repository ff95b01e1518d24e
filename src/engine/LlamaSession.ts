/**
 * A `ModelSession` over one sequence: boundaries, the speculative turn, and coming back from whatever ends it early. One
 * operation at a time; every operation either finishes or leaves the session at the boundary before it.
 *
 * ```text
 *   Boundary --turn--> Running --End pulled--> Finished --keep | rollback--> Boundary
 *                        '-- interrupted, failed, not read to its end --> Boundary
 * ```
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { badRequest, type EngineError } from "./EngineError.ts"
import type { GenerationEvent, TurnRequest } from "./Generation.ts"
import { toEngineError } from "./LlamaFailure.ts"
import type { Prefixes } from "./LlamaPrefixes.ts"
import * as Saved from "./LlamaSaved.ts"
import type { Appending, Cancel, Mark } from "./LlamaSequence.ts"
import { Speculation, type TurnParts } from "./LlamaTurn.ts"
import type { Log, ModelSession } from "./Model.ts"
import type { Segment, Span } from "./Prompt.ts"

/** What a session adds for its owner: coming back over a thread boundary, and a look at its tokens. */
export interface LlamaSession extends ModelSession {
  readonly save: NonNullable<ModelSession["save"]>
  readonly load: NonNullable<ModelSession["load"]>
  /**
   * Back to the boundary at `length`, if that is the present one, the one before an open turn, or the one before the last
   * operation: for a caller that was interrupted and cannot know whether the operation had finished.
   */
  readonly revert: (length: number) => Effect.Effect<void, EngineError>
  /** The log's last tokens, at most `count`. */
  readonly last: (count: number) => ReadonlyArray<number>
  /** Fills an empty session with the log of another, with its boundaries: where each commit and keep ended, ascending. */
  readonly restore: (
    tokens: ReadonlyArray<number>,
    boundaries: ReadonlyArray<number>
  ) => Effect.Effect<void, EngineError>
  /** Evaluated tokens, and the one that is known but not yet evaluated. */
  readonly snapshot: Effect.Effect<{ readonly kv: ReadonlyArray<number>; readonly pending: ReadonlyArray<number> }>
  /** Ends what runs, then frees the sequence. The session is useless afterwards. */
  readonly close: Effect.Effect<void>
}

export interface SessionParts extends TurnParts {
  /** Of all sessions of the engine. */
  readonly prefixes: Prefixes
  /** What a saved session must have been evaluated with. */
  readonly facts: Saved.Facts
  /** May throw; `first`: the log is empty. */
  readonly tokenize: (segments: ReadonlyArray<Segment>, first: boolean) => ReadonlyArray<number>
}

export const make = (parts: SessionParts): LlamaSession => new Session(parts)

class Session implements LlamaSession {
  readonly #parts: SessionParts
  readonly #owner = Semaphore.makeUnsafe(1)
  /** The boundary before an open turn, while there is one. */
  #open: Mark | undefined
  /** Every place a commit or keep ended at, and the empty log: ascending, the last one is the present boundary. */
  readonly #boundaries: Array<Mark> = [{ length: 0, fed: 0 }]
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

  readonly commit: ModelSession["commit"] = (segments, progress, priority) =>
    this.#owner.withPermit(
      Effect.suspend(() =>
        this.#open === undefined
          ? this.#append(segments, "The prompt", undefined, { progress, priority })
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
        const previous = this.#boundaries.at(-2)
        return this.#boundary.length !== length && previous?.length === length ? this.#return(previous) : Effect.void
      })
    )

  readonly rewind = (length: number): Effect.Effect<void, EngineError> =>
    this.#owner.withPermit(
      Effect.suspend(() => {
        const target = this.#boundaries.findLast((boundary) => boundary.length === length)
        if (target !== undefined) return this.#return(target)
        const dropped = this.#open === undefined ? Effect.void : this.#return(this.#open)
        return Effect.andThen(dropped, Effect.fail(badRequest(`The log has no boundary at token ${length}.`)))
      })
    )

  readonly last = (count: number): ReadonlyArray<number> => this.#parts.sequence.last(count)

  readonly restore = (
    tokens: ReadonlyArray<number>,
    boundaries: ReadonlyArray<number>
  ): Effect.Effect<void, EngineError> =>
    this.#owner.withPermit(
      Effect.suspend(() => {
        if (this.#closed) return Effect.fail(badRequest("The session is closed."))
        const { sequence } = this.#parts
        const tooLong = sequence.length > 0 ? badRequest("The session is in use.") : sequence.room(tokens.length, "It")
        if (tooLong !== undefined) return Effect.fail(tooLong)
        const empty = this.#boundary
        return interruptible(
          (cancel) => this.#refill(tokens, boundaries, cancel),
          () => this.#back(empty)
        )
      })
    )

  async #refill(tokens: ReadonlyArray<number>, boundaries: ReadonlyArray<number>, cancel: Cancel): Promise<void> {
    this.#running = cancel
    const { sequence } = this.#parts
    const empty = this.#boundary
    try {
      for (const end of boundaries) {
        await sequence.mark()
        await sequence.append(tokens.slice(sequence.length, end), cancel)
        this.#boundaries.push(sequence.here)
      }
    } catch (cause) {
      await this.#back(empty)
      throw cause
    }
  }

  readonly save = (path: string, label: string): Effect.Effect<number, EngineError> =>
    this.#alone(async () => {
      if (this.#open !== undefined) throw badRequest("A turn is open: keep it or roll it back before saving.")
      if (this.#boundary.length === 0) throw badRequest("There is nothing to save.")
      return Saved.write(this.#parts.sequence, { path, label, boundaries: this.#boundaries, facts: this.#parts.facts })
    })

  readonly load = (path: string): Effect.Effect<Log, EngineError> =>
    this.#alone(async () => {
      const { facts, sequence } = this.#parts
      if (sequence.length > 0) throw badRequest("The session is in use.")
      const saved = await Saved.read(path, facts)
      const tooLong = sequence.room(saved.tokens.length + saved.pending.length, "The saved session")
      if (tooLong !== undefined) throw tooLong
      await Saved.put(sequence, saved)
      this.#boundaries.splice(0, Number.POSITIVE_INFINITY, ...saved.boundaries)
      return {
        label: saved.label,
        tokens: [...saved.tokens, ...saved.pending],
        boundaries: saved.boundaries.map(({ length }) => length)
      }
    })

  /** Something short that is done or not done. */
  #alone<A>(run: () => Promise<A>): Effect.Effect<A, EngineError> {
    const checked = async () => {
      if (this.#closed) throw badRequest("The session is closed.")
      return run()
    }
    return this.#owner.withPermit(Effect.uninterruptible(Effect.tryPromise({ try: checked, catch: toEngineError })))
  }

  get length(): Effect.Effect<number> {
    return Effect.sync(() => this.#boundary.length)
  }

  get #boundary(): Mark {
    return this.#boundaries.at(-1)!
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
    more: Appending = {}
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
        if (sequence.length > 0) await sequence.append(tokens, cancel, more)
        else await this.#begun(tokens, cancel, more)
      } catch (cause) {
        if (before !== undefined) await this.#back(before)
        throw cause
      }
      this.#open = undefined
      this.#boundaries.push(sequence.here)
      return { start: before.length, end: sequence.length }
    }
    return interruptible(run, () => this.#back(this.#boundaries.at(-2)!))
  }

  /** The first prompt of a session: other sessions may have begun the same way. */
  async #begun(tokens: ReadonlyArray<number>, cancel: Cancel, more: Appending): Promise<void> {
    const { prefixes, sequence } = this.#parts
    const reused = await prefixes.into(sequence, tokens)
    const started = performance.now()
    await sequence.append(tokens.slice(reused), cancel, more)
    if (reused < tokens.length - 1) await prefixes.offer(sequence, performance.now() - started)
  }

  async #back(mark: Mark): Promise<void> {
    this.#open = undefined
    await this.#parts.sequence.rollback(mark)
    while (this.#boundary.length > mark.length) this.#boundaries.pop()
  }

  #return(mark: Mark): Effect.Effect<void, EngineError> {
    return Effect.uninterruptible(Effect.tryPromise({ try: () => this.#back(mark), catch: toEngineError }))
  }

  readonly #turn = Effect.fnUntraced(
    { self: this },
    function* (this: Session, opening: ReadonlyArray<Segment>, request: TurnRequest) {
      // A scope of its own: it is given back before the turn's scope ends, and once.
      const held = yield* Scope.fork(yield* Effect.scope)
      const release = Scope.close(held, Exit.void)
      yield* Scope.provide(this.#owner.takeScoped(1), held)
      const tokens = yield* Effect.try({ try: () => this.#begin(opening, request), catch: toEngineError })
      const events = yield* Queue.unbounded<GenerationEvent, EngineError | Cause.Done>()
      // A finished turn that goes on is one turn with what is added: it runs again, and is kept or dropped as a whole.
      const speculation = new Speculation(this.#parts, request, events, this.#open)
      let running: ReturnType<Speculation["run"]> | undefined
      let pulled = false
      // Comes before the turn begins: between the two somebody may interrupt.
      yield* Effect.addFinalizer((exit) => {
        if (running === undefined) return Effect.void
        const before = speculation.before
        const ended = running
        if (!pulled) {
          speculation.cancel.cancelled = true
          // a failed turn has rolled itself back
          return Effect.promise(() => ended).pipe(
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
      this.#open = undefined
      this.#running = speculation.cancel
      running = speculation.run(tokens)
      return Stream.concat(Stream.fromQueue(events), last)
    }
  )

  /** Checks a turn before anything is evaluated. */
  #begin(opening: ReadonlyArray<Segment>, request: TurnRequest): ReadonlyArray<number> {
    const { sequence } = this.#parts
    if (this.#open !== undefined && opening.length > 0) {
      throw badRequest("A turn is open: keep it or roll it back before the next one.")
    }
    if (!(request.maxTokens >= 1)) throw badRequest("A turn must be allowed at least one token.")
    const tokens = this.#tokens(opening)
    if (sequence.length + tokens.length === 0) throw badRequest("A turn needs a prompt: commit something first.")
    const tooLong = sequence.room(tokens.length + request.maxTokens, "The turn")
    if (tooLong !== undefined) throw tooLong
    return tokens
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
