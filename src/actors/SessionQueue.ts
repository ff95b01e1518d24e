/**
 * Places of a model that has only so many sessions: whoever finds all of them taken waits in line, the more urgent first, and
 * among equals in the order they came. The line is bounded and so is the wait. Opens and frees nothing by itself.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { EngineError } from "../engine/EngineError.ts"
import type { Priority } from "../engine/Generation.ts"
import type { Model, ModelSession } from "../engine/Model.ts"
import { SessionWait, type Wait } from "../engine/SessionWait.ts"

/** How many may wait. */
const defaultLimit = 64

interface Waiter {
  readonly priority: Priority
  /** Done when there may be a place. */
  turn: Deferred.Deferred<void>
}

const noSession = (message: string) => Effect.fail(new EngineError({ reason: "no_session", message }))

class Line {
  readonly #limit: number
  /** Whoever is next comes first. */
  readonly #waiting: Array<Waiter> = []

  constructor(limit: number) {
    this.#limit = limit
  }

  get length(): number {
    return this.#waiting.length
  }

  get full(): boolean {
    return this.#waiting.length >= this.#limit
  }

  /** Somebody who may not be overtaken waits already. */
  readonly ahead = (priority: Priority): boolean => this.#waiting.some((waiter) => waiter.priority >= priority)

  readonly enter = (priority: Priority): Waiter => {
    const waiter: Waiter = { priority, turn: Deferred.makeUnsafe() }
    const behind = this.#waiting.findIndex((other) => other.priority < priority)
    this.#waiting.splice(behind < 0 ? this.#waiting.length : behind, 0, waiter)
    return waiter
  }

  /** Whoever leaves passes on what may have been meant for it. */
  readonly leave = (waiter: Waiter): void => {
    const at = this.#waiting.indexOf(waiter)
    if (at >= 0) this.#waiting.splice(at, 1)
    this.next()
  }

  readonly isFirst = (waiter: Waiter): boolean => this.#waiting[0] === waiter

  /** A place may be free: the first one looks. */
  readonly next = (): void => {
    const [first] = this.#waiting
    if (first !== undefined) Deferred.doneUnsafe(first.turn, Exit.void)
  }
}

type Open = Model["Service"]["session"]

/** Waits for its turn until a session could be opened. Only the first in line looks. */
const inLine = (line: Line, open: Open, priority: Priority): Open =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const waiter = line.enter(priority)
      const attempt: Open = Effect.suspend(() => {
        waiter.turn = Deferred.makeUnsafe()
        return Effect.catchIf(
          open,
          ({ reason }) => reason === "no_session",
          () => Effect.andThen(Deferred.await(waiter.turn), attempt)
        )
      })
      // A place may have become free before anybody stood here to be told.
      const first = line.isFirst(waiter) ? attempt : Effect.andThen(Deferred.await(waiter.turn), attempt)
      return Effect.ensuring(
        restore(first),
        Effect.sync(() => line.leave(waiter))
      )
    })
  )

/** The model with a line before its sessions. `limit` says how many may stand in it. */
export const queued = (model: Model["Service"], limit: number = defaultLimit): Model["Service"] => {
  const line = new Line(limit)
  const waited = ({ priority, seconds }: Wait): Open => {
    const others = line.length === 1 ? "1 other waits" : `${line.length} others wait`
    if (line.full)
      return noSession(`No session of ${model.identity.name} is free, and ${others} already. Try again later.`)
    return inLine(line, model.session, priority).pipe(
      Effect.timeoutOrElse({
        duration: seconds * 1000,
        orElse: () =>
          noSession(
            `No session of ${model.identity.name} was free for ${seconds} s. Close one, or open the model with more.`
          )
      })
    )
  }
  const session: Effect.Effect<ModelSession, EngineError, Scope.Scope> = Effect.gen(function* () {
    const wait = yield* SessionWait
    // Comes before the session, so it runs after the session's end: then its place is free.
    yield* Effect.addFinalizer(() => Effect.sync(line.next))
    if (!(wait.seconds > 0)) return yield* model.session
    if (line.ahead(wait.priority)) return yield* waited(wait)
    return yield* Effect.catchIf(
      model.session,
      ({ reason }) => reason === "no_session",
      () => waited(wait)
    )
  })
  return { ...model, session }
}
