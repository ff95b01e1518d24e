/**
 * Keeps an engine there: opens it, and opens it again when it died, within limits. Knows nothing of sessions; whoever has one
 * asks for the present link and puts back what the one before held.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { EngineError } from "../engine/EngineError.ts"
import { type End, endOf, type Gone, type Host } from "./InferenceHost.ts"
import { connect, type Link } from "./InferenceLink.ts"

/** How often an engine that died is opened again. */
export interface RestartLimits {
  /** Default 3; 0: never. */
  readonly times: number
  /** Within so many seconds. Default 600. */
  readonly withinSeconds: number
  /** Milliseconds before the first one; each further one within the time waits twice as long, up to half a minute. Default 100. */
  readonly waitMillis: number
}

const longestWaitMillis = 30_000

export const defaultRestarts: RestartLimits = { times: 3, withinSeconds: 600, waitMillis: 100 }

export interface Opening<Opened> {
  readonly start: Effect.Effect<Host, Gone, Scope.Scope>
  /** What makes an engine usable. */
  readonly open: (link: Link) => Effect.Effect<Opened, EngineError | Gone>
  /** Why what was opened again is not what was there before. */
  readonly differs: (before: Opened, now: Opened) => EngineError | undefined
  readonly restarts: RestartLimits
  /** Seconds without an answer after which it counts as hung. */
  readonly stallSeconds: number
}

export interface Engine<Opened> {
  readonly opened: Opened
  /** The link to the engine that is there; waits while one is being opened. Fails once there will be none. */
  readonly link: Effect.Effect<Link, EngineError>
}

interface Live<Opened> {
  readonly link: Link
  readonly opened: Opened
  readonly scope: Scope.Closeable
}

const openIn = <Opened>(
  { open, stallSeconds, start }: Opening<Opened>,
  restarts: number,
  scope: Scope.Closeable
): Effect.Effect<Live<Opened>, EngineError | Gone> =>
  Effect.gen(function* () {
    const link = yield* connect(yield* start, restarts, stallSeconds)
    return { link, opened: yield* open(link), scope }
  }).pipe(Scope.provide(scope))

/** Opens an engine into the scope. Leaving the scope closes it, or ends its opening. */
export const keepOpen = Effect.fnUntraced(function* <Opened>(
  opening: Opening<Opened>
): Effect.fn.Return<Engine<Opened>, EngineError, Scope.Scope> {
  const keeper = new Keeper(opening)
  yield* Effect.addFinalizer(() => keeper.close)
  const first = yield* keeper.open.pipe(Effect.catchTag("Gone", ({ end }) => Effect.fail(end.error)))
  keeper.publish(first)
  yield* Effect.forkScoped(keeper.run(first))
  return { opened: first.opened, link: keeper.link }
})

class Keeper<Opened> {
  readonly #opening: Opening<Opened>
  #live: Live<Opened> | undefined
  /** Why there will be no engine any more. */
  #over: EngineError | undefined
  #changed = Deferred.makeUnsafe<void>()
  /** Of engines that are open or on the way. */
  readonly #scopes = new Set<Scope.Closeable>()
  /** When an engine died that was opened again, by the clock. */
  #deaths: Array<number> = []
  #opened = 0
  #abandoned = 0

  constructor(opening: Opening<Opened>) {
    this.#opening = opening
  }

  /** One more engine, known from its first step: whatever stops this, `close` ends it. */
  readonly open: Effect.Effect<Live<Opened>, EngineError | Gone> = Effect.suspend(() => {
    const scope = Scope.makeUnsafe()
    this.#scopes.add(scope)
    return openIn(this.#opening, this.#opened++, scope)
  })

  /** What is there now. */
  readonly publish = (live: Live<Opened> | undefined): void => {
    this.#live = live
    this.#tell()
  }

  #tell(): void {
    const before = this.#changed
    this.#changed = Deferred.makeUnsafe()
    Deferred.doneUnsafe(before, Exit.void)
  }

  readonly link: Effect.Effect<Link, EngineError> = Effect.suspend(() => {
    if (this.#over !== undefined) return Effect.fail(this.#over)
    const { link } = this.#live ?? {}
    if (link !== undefined && link.host.end === undefined) return Effect.succeed(link)
    return Effect.andThen(Deferred.await(this.#changed), this.link)
  })

  /** From here on calls fail by name instead of waiting for an engine that is leaving. Whoever watches is gone already. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    const closed = endOf("closed", "The model was closed. Open it again.")
    this.#over ??= closed.error
    if (this.#live !== undefined) this.#live.link.host.end ??= closed
    this.#tell()
    return Effect.forEach(this.#scopes, (scope) => this.#leave(scope), { discard: true })
  })

  #leave(scope: Scope.Closeable): Effect.Effect<void> {
    return Effect.tap(Scope.close(scope, Exit.void), () => Effect.sync(() => this.#scopes.delete(scope)))
  }

  /** Sees each engine to its end and opens the next one, until the limits say no. */
  readonly run = (first: Live<Opened>): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      let live: Live<Opened> | undefined = first
      while (live !== undefined) {
        const host: Host = live.link.host
        yield* Deferred.await(host.gone)
        if (host.abandoned()) this.#abandoned++
        live = yield* this.#again(live, host.end ?? endOf("crashed", "The engine has ended."))
        if (live !== undefined) this.publish(live)
      }
    })

  /** Another engine like `before`, or none and the reason on record. */
  readonly #again = Effect.fnUntraced(
    { self: this },
    function* (this: Keeper<Opened>, before: Live<Opened>, died: End) {
      let end = died
      for (;;) {
        this.publish(undefined)
        for (const scope of this.#scopes) yield* this.#leave(scope)
        const refused = yield* this.#refusal(end)
        if (refused !== undefined) return this.#giveUp(refused)
        yield* Effect.sleep(
          Math.min(this.#opening.restarts.waitMillis * 2 ** (this.#deaths.length - 1), longestWaitMillis)
        )
        const tried = yield* Effect.result(this.open)
        if (Result.isSuccess(tried)) {
          const other = this.#opening.differs(before.opened, tried.success.opened)
          if (other === undefined) return tried.success
          yield* this.#leave(tried.success.scope)
          return this.#giveUp(reopening(end, other))
        }
        const { failure } = tried
        // Somebody else may hold the memory, and not for long.
        if (failure._tag === "EngineError" && failure.reason !== "not_enough_memory") {
          this.#giveUp(reopening(end, failure))
          // What could not be opened runs on otherwise, with nothing to do.
          for (const scope of this.#scopes) yield* this.#leave(scope)
          return undefined
        }
        end = failure._tag === "Gone" ? failure.end : { cause: "out_of_memory", error: failure }
      }
    }
  )

  /** Why it is not opened again; counts it where it is. */
  #refusal(end: End): Effect.Effect<EngineError | undefined> {
    return Effect.map(Clock.currentTimeMillis, (now) => {
      const { times, withinSeconds } = this.#opening.restarts
      this.#deaths = this.#deaths.filter((at) => at > now - withinSeconds * 1000)
      if (this.#abandoned > 1) return lost(end, "A thread cannot be ended while it hangs: run with isolation process")
      if (this.#deaths.length >= times) {
        const often = `It was opened again ${times} ${times === 1 ? "time" : "times"} within ${withinSeconds} s already`
        return lost(end, times === 0 ? "It is not opened again, since restarts are off" : often)
      }
      this.#deaths.push(now)
      return undefined
    })
  }

  #giveUp(error: EngineError): undefined {
    this.#over = error
    this.#tell()
    return undefined
  }
}

const lost = (end: End, why: string): EngineError =>
  new EngineError({ reason: "lost", message: `${end.error.message} ${why}. Open the model again.` })

/** What came back is a failure of its own kind; what it came after is said too. */
const reopening = (end: End, error: EngineError): EngineError =>
  new EngineError({ reason: error.reason, message: `${end.error.message} It cannot be opened again: ${error.message}` })
