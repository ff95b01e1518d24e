/**
 * A session of an engine that may die: the log of token ids is kept on this side, so that a session is more than the sequence
 * it happens to have over there. Where the engine was opened again, the log is put back before the next call; a call that was
 * out fails as `restarted` once it is.
 *
 * ```text
 *   place: none --attach--> sequence on a link --link ends--> none (log, boundaries stay) --attach--> on the next link
 * ```
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { RpcClientError } from "effect/rpc/RpcClientError"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { allInUse, badRequest, EngineError } from "../engine/EngineError.ts"
import type { GenerationEvent } from "../engine/Generation.ts"
import type { Log, ModelSession, Recovery } from "../engine/Model.ts"
import type { Segment, Span } from "../engine/Prompt.ts"
import type { Grown, Snapshot } from "../engine/Wire.ts"
import type { End, Gone } from "./InferenceHost.ts"
import type { Client, Link } from "./InferenceLink.ts"

/** The session's name over there, on the link it was opened on. */
interface Place {
  readonly link: Link
  readonly id: number
}

type Call<A> = (client: Client, session: number) => Effect.Effect<A, EngineError | RpcClientError>

/** Work over there that says how far it is: runs it to its end, which is what `see` takes for one. */
export const lastOf = <Event, A, E>(events: Stream.Stream<Event, E>, see: (event: Event) => A | undefined) =>
  Effect.suspend(() => {
    let last: A | undefined
    const listen = Stream.runForEach(events, (event) =>
      Effect.sync(() => {
        last = see(event) ?? last
      })
    )
    return Effect.flatMap(listen, () =>
      last === undefined
        ? Effect.fail(new EngineError({ reason: "lost", message: "The engine ended its work without a result." }))
        : Effect.succeed(last)
    )
  })

const isThere = (link: Link): boolean => link.host.end === undefined

const closed = () => badRequest("The session is closed.")

const restarted = ({ error }: End): EngineError =>
  new EngineError({
    reason: "restarted",
    message: `${error.message} It was opened again, and the session is at its last boundary: the same may be asked again.`
  })

/** The sessions of an engine, counted on this side: over there, one that was opened again knows only those that came back. */
export interface Places {
  readonly most: number
  taken: number
}

/** Opens a session, whose sequence and place are freed with the scope. `link` is the engine that is there. */
export const openSession = (
  link: Effect.Effect<Link, EngineError>,
  places: Places
): Effect.Effect<HostedSession, EngineError, Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      if (places.taken >= places.most) return Effect.fail(allInUse(places.most))
      places.taken++
      const session = new HostedSession(link)
      const left = Effect.ensuring(
        session.close,
        Effect.sync(() => {
          places.taken--
        })
      )
      return restore(session.attached).pipe(
        // It may have got its sequence in the moment it was interrupted.
        Effect.onError(() => left),
        Effect.andThen(Effect.addFinalizer(() => left)),
        Effect.as(session)
      )
    })
  )

/**
 * Interruption of a call crosses to the engine as a message that nobody answers, so each interrupted call is followed by one
 * `Revert`, which is answered when the session is back at its boundary.
 */
export class HostedSession implements ModelSession {
  readonly #link: Effect.Effect<Link, EngineError>
  readonly #owner = Semaphore.makeUnsafe(1)
  readonly #attaching = Semaphore.makeUnsafe(1)
  readonly #log: Array<number> = []
  /** Where each commit and keep ended, ascending. */
  readonly #boundaries: Array<number> = []
  readonly #recoveries: Array<Recovery> = []
  #place: Place | undefined
  #closed = false
  /** Where a finished turn waits to be kept. It goes with its engine. */
  #turnOn: Link | undefined

  constructor(link: Effect.Effect<Link, EngineError>) {
    this.#link = link
  }

  get length(): Effect.Effect<number> {
    return Effect.sync(() => this.#log.length)
  }

  readonly recoveries = (): ReadonlyArray<Recovery> => this.#recoveries

  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const place = this.#place
      this.#place = undefined
      this.#closed = true
      return place === undefined ? Effect.void : this.#left(place)
    })
  }

  #left({ id, link }: Place): Effect.Effect<void> {
    return Effect.ignore(link.call(link.client.SessionClose({ session: id })))
  }

  /** The session on the engine that is there, with everything in its log; engines that die meanwhile are waited out. */
  readonly attached: Effect.Effect<Place, EngineError> = Effect.suspend(() => {
    const place = this.#place
    return place !== undefined && isThere(place.link) ? Effect.succeed(place) : this.#attaching.withPermit(this.#again)
  })

  readonly #again: Effect.Effect<Place, EngineError> = Effect.suspend(() => {
    const place = this.#place
    if (place !== undefined && isThere(place.link)) return Effect.succeed(place)
    return Effect.flatMap(this.#link, (link) => {
      if (this.#closed) return Effect.fail(closed())
      return Effect.catchTag(this.#attach(link, place?.link), "Gone", () => this.#again)
    })
  })

  /** @param before the engine that had it and died */
  #attach(link: Link, before: Link | undefined): Effect.Effect<Place, EngineError | Gone> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.gen({ self: this }, function* () {
        const id = yield* link.call(link.client.SessionOpen())
        const place = { link, id }
        const restoring = link.call(
          link.client.Restore({ session: id, tokens: this.#log, boundaries: this.#boundaries })
        )
        if (this.#log.length > 0) yield* restore(restoring).pipe(Effect.onError(() => this.#left(place)))
        const cause = before?.host.end?.cause
        if (cause !== undefined && cause !== "closed") {
          this.#recoveries.push({ cause, restarts: link.restarts, tokens: this.#log.length })
        }
        if (this.#closed) {
          // Whoever closed it meanwhile did not know of this place.
          yield* this.#left(place)
          return yield* closed()
        }
        this.#place = place
        return place
      })
    )
  }

  /** The engine died under a call: brings the session back, then says so. */
  readonly #recovered = ({ end }: Gone): Effect.Effect<never, EngineError> => {
    this.#turnOn = undefined
    // Also where a kept turn must not be interrupted: nothing is half done here, and waiting may take long.
    return Effect.flatMap(Effect.interruptible(this.attached), () => Effect.fail(restarted(end)))
  }

  /** What needs the turn, or would have been refused because of it, cannot go on when it died with its engine. */
  readonly #whole: Effect.Effect<Place, EngineError> = Effect.suspend(() => {
    const end = this.#turnOn?.host.end
    if (end === undefined) return this.attached
    this.#turnOn = undefined
    return Effect.andThen(this.attached, Effect.fail(restarted(end)))
  })

  #revert({ id, link }: Place): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#turnOn = undefined
      return Effect.ignore(link.call(link.client.Revert({ session: id, length: this.#log.length })))
    })
  }

  /** Asks something that changes nothing: again, where the engine died over it. */
  readonly reading = <A>(call: Call<A>): Effect.Effect<A, EngineError> => {
    const once = Effect.flatMap(this.attached, ({ id, link }) => link.call(call(link.client, id)))
    return once.pipe(
      Effect.catchTag("Gone", () => once),
      Effect.catchTag("Gone", this.#recovered)
    )
  }

  #grow(call: Call<Grown>): Effect.Effect<Span, EngineError> {
    return Effect.flatMap(this.#whole, (place) =>
      place.link.call(call(place.link.client, place.id)).pipe(
        Effect.flatMap(({ span, tokens }) =>
          span.end === this.#log.length + tokens.length && tokens.length === span.end - span.start
            ? Effect.sync(() => this.#take(span, tokens))
            : Effect.fail(new EngineError({ reason: "failed", message: "The engine lost track of a session's log." }))
        ),
        Effect.onInterrupt(() => this.#revert(place))
      )
    ).pipe(Effect.catchTag("Gone", this.#recovered), this.#owner.withPermit)
  }

  #take(span: Span, tokens: ReadonlyArray<number>): Span {
    for (const token of tokens) this.#log.push(token)
    this.#boundaries.push(span.end)
    this.#turnOn = undefined
    return span
  }

  readonly commit: ModelSession["commit"] = (segments, progress, priority) =>
    this.#grow((client, session) =>
      lastOf(client.Commit({ session, segments, ...(priority === undefined ? {} : { priority }) }), (event) => {
        if (event._tag === "Committed") return event
        progress?.(event.done, event.total)
        return undefined
      })
    )

  readonly keep = (closing: ReadonlyArray<Segment>): Effect.Effect<Span, EngineError> =>
    this.#grow((client, session) => client.Keep({ session, closing }))

  /** A turn that died with its engine is dropped as it is. */
  get rollback(): Effect.Effect<void, EngineError> {
    return this.#dropping((client, session) => client.Rollback({ session }))
  }

  readonly rewind = (length: number): Effect.Effect<void, EngineError> =>
    Effect.suspend(() => {
      if (length === 0 || this.#boundaries.includes(length)) {
        return this.#dropping(
          (client, session) => client.Rewind({ session, length }),
          () => this.#cut(length)
        )
      }
      return Effect.andThen(this.rollback, Effect.fail(badRequest(`The log has no boundary at token ${length}.`)))
    })

  readonly save = (path: string, label: string): Effect.Effect<number, EngineError> =>
    this.#done(({ id, link }) => link.call(link.client.Save({ session: id, path, label })))

  readonly load = (path: string): Effect.Effect<Log, EngineError> =>
    this.#done(({ id, link }) =>
      Effect.tap(link.call(link.client.Load({ session: id, path })), ({ boundaries, tokens }) =>
        Effect.sync(() => {
          for (const token of tokens) this.#log.push(token)
          for (const end of boundaries) if (end > 0) this.#boundaries.push(end)
        })
      )
    )

  /** What is done once it was asked for, or not at all; whoever only waits for an engine can leave. */
  #done<A>(call: (place: Place) => Effect.Effect<A, EngineError | Gone>): Effect.Effect<A, EngineError> {
    return Effect.uninterruptibleMask((restore) =>
      Effect.catchTag(Effect.flatMap(restore(this.#whole), call), "Gone", this.#recovered)
    ).pipe(this.#owner.withPermit)
  }

  #cut(length: number): void {
    this.#log.length = length
    while ((this.#boundaries.at(-1) ?? 0) > length) this.#boundaries.pop()
  }

  /** Drops what is there over there, then what is here. Where nothing is there, nothing is left to drop. */
  #dropping(call: Call<void>, then: () => void = () => {}): Effect.Effect<void, EngineError> {
    return Effect.suspend(() => {
      const place = this.#place
      this.#turnOn = undefined
      if (place === undefined || !isThere(place.link)) return Effect.void
      return Effect.catchTag(place.link.call(call(place.link.client, place.id)), "Gone", () => Effect.void)
    }).pipe(
      Effect.tap(() => Effect.sync(then)),
      Effect.uninterruptible,
      this.#owner.withPermit
    )
  }

  readonly measure = (segments: ReadonlyArray<Segment>): Effect.Effect<number, EngineError> =>
    this.reading((client, session) => client.Measure({ session, segments }))

  /** Evaluated and pending tokens over there. */
  get snapshot(): Effect.Effect<Snapshot, EngineError> {
    return this.reading((client, session) => client.Snapshot({ session }))
  }

  readonly turn: ModelSession["turn"] = (opening, request) =>
    Stream.unwrap(
      Effect.gen({ self: this }, function* () {
        // A scope of its own: it is given back before the turn's scope ends, and once.
        const held = yield* Scope.fork(yield* Effect.scope)
        const release = Scope.close(held, Exit.void)
        yield* Scope.provide(this.#owner.takeScoped(1), held)
        const place = yield* this.#whole
        let end: GenerationEvent | undefined
        // "failed": over there the session is back already, or the turn was refused and nothing has changed
        let state: "running" | "failed" | "pulled" = "running"
        yield* Effect.addFinalizer((exit) => {
          if (state === "failed" || (state === "pulled" && Exit.isSuccess(exit))) return Effect.void
          return state === "running" ? this.#revert(place) : this.#owner.withPermit(this.#revert(place))
        })
        const failed = (error: EngineError | RpcClientError | Gone) => {
          state = "failed"
          return Effect.catchTag(place.link.call(Effect.fail(error)), "Gone", this.#recovered)
        }
        const asked = place.link.call(
          place.link.client.Turn({ session: place.id, opening, request }, { asQueue: true })
        )
        const events = yield* Effect.catch(asked, failed)
        const last = Stream.unwrap(
          Effect.suspend(() => {
            state = "pulled"
            this.#turnOn = place.link
            return Effect.as(release, Stream.succeed(end!))
          })
        )
        return Stream.fromQueue(events).pipe(
          Stream.filter((event) => {
            if (event._tag === "End") end = event
            return event._tag !== "End"
          }),
          Stream.catch((error) => Stream.fromEffect(failed(error))),
          (parts) => Stream.concat(parts, last)
        )
      })
    )
}
