/** The life of a server: it takes requests, it drains, it closes. Knows who is still inside, and tells when nobody is. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { type ChatError, unavailable } from "./ChatError.ts"

export interface ServeState {
  readonly draining: () => boolean
  /** Counts a request as inside for the scope. Refused once the server drains. */
  readonly inside: Effect.Effect<void, ChatError, Scope.Scope>
  /**
   * Announces a run, for the scope, before it is started: whoever drains waits for all that it does. The result is told when
   * it has begun, so that it can be cancelled when the time to drain is over.
   */
  readonly running: Effect.Effect<(run: Begun) => Effect.Effect<void>, never, Scope.Scope>
  /** What has not begun by the time the server closes does not begin. */
  readonly whileOpen: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | ChatError, R>
  /**
   * Takes no new requests, waits for those inside, then cancels what is left and waits for the ends of its runs. Returns how
   * many requests that were. Answers that are not taken by their clients are not waited for.
   */
  readonly drain: (millis: number) => Effect.Effect<number>
}

export interface Begun {
  readonly cancel: Effect.Effect<void>
  /** Comes back when the run has ended, whatever it came to. */
  readonly ended: Effect.Effect<void>
}

interface Run {
  begun: Begun | undefined
  readonly gone: Deferred.Deferred<void>
}

/** How long clients have to take the rest when all runs have ended. Milliseconds. */
const takeMillis = 2_000

const leaving = unavailable("shutting_down", "The server is about to end and takes no new requests", 10)

/** The run has ended, or never begins. */
const settled = ({ begun, gone }: Run): Effect.Effect<void> =>
  begun === undefined ? Deferred.await(gone) : Effect.raceFirst(Deferred.await(gone), begun.ended)

export const make: Effect.Effect<ServeState> = Effect.gen(function* () {
  const closing = yield* Deferred.make<void>()
  const idle = yield* Deferred.make<void>()
  const runs = new Set<Run>()
  let draining = false
  let closed = false
  let inside = 0
  const left = Effect.sync(() => {
    inside -= 1
    if (draining && inside === 0) Deferred.doneUnsafe(idle, Effect.void)
  })
  const enter = Effect.suspend(() => {
    if (draining) return Effect.fail(leaving)
    inside += 1
    return Effect.void
  })
  return {
    draining: () => draining,
    inside: Effect.acquireRelease(enter, () => left),
    running: Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => {
          const run: Run = { begun: undefined, gone: Deferred.makeUnsafe() }
          runs.add(run)
          return run
        }),
        (run) =>
          Effect.sync(() => {
            runs.delete(run)
            Deferred.doneUnsafe(run.gone, Effect.void)
          })
      ),
      (run) => (begun) =>
        Effect.suspend(() => {
          run.begun = begun
          return closed ? begun.cancel : Effect.void
        })
    ),
    whileOpen: (effect) => Effect.raceFirst(effect, Effect.andThen(Deferred.await(closing), Effect.fail(leaving))),
    drain: (millis) =>
      Effect.gen(function* () {
        draining = true
        if (inside === 0) return 0
        const done = yield* Effect.timeoutOption(Deferred.await(idle), millis)
        if (Option.isSome(done)) return 0
        const still = inside
        closed = true
        yield* Deferred.succeed(closing, undefined)
        const left = [...runs]
        yield* Effect.forEach(left, ({ begun }) => begun?.cancel ?? Effect.void, { discard: true })
        yield* Effect.forEach(left, settled, { discard: true, concurrency: "unbounded" })
        yield* Effect.timeoutOption(Deferred.await(idle), takeMillis)
        return still
      })
  }
})
