/**
 * An engine that dies and is opened again, as `HostedSession` (src/actors/InferenceSessions.ts) has it: all of its sessions
 * die with it, each is put back to its last boundary before its next call, and a call that was out, or that is about a turn
 * that died, fails as `restarted` then.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { EngineError } from "../../../src/engine/EngineError.ts"
import type { ModelSession, Recovery } from "../../../src/engine/Model.ts"
import type { EngineOperation } from "./scenario.ts"

/** How it dies: under the call, or before it, when nobody was there to be told. */
export type Death = "restarted" | "reopened"

/** How often the engine of some sessions was opened again. */
export interface EngineLives {
  restarts: number
}

/** Opening an engine again takes so long. */
const openingMillis = 100

const restarted = new EngineError({ reason: "restarted", message: "the engine died and was opened again" })

class Mortal {
  readonly #lives: EngineLives
  readonly #inner: ModelSession
  readonly #dies: (on: EngineOperation) => Death | undefined
  readonly #recoveries: Array<Recovery> = []
  /** The engine that the session is on. */
  #on: number
  /** A finished turn waits to be kept, on this engine. */
  #turnOn: number | undefined

  constructor(lives: EngineLives, inner: ModelSession, dies: (on: EngineOperation) => Death | undefined) {
    this.#lives = lives
    this.#inner = inner
    this.#dies = dies
    this.#on = lives.restarts
  }

  readonly #die = (death: Death | undefined): Effect.Effect<void, EngineError> =>
    Effect.suspend(() => {
      if (death === undefined) return Effect.void
      this.#lives.restarts++
      return Effect.void
    })

  /** On the engine that is there. */
  readonly #attached: Effect.Effect<void, EngineError> = Effect.suspend(() => {
    const { restarts } = this.#lives
    if (this.#on === restarts) return Effect.void
    return Effect.andThen(
      Effect.sleep(openingMillis),
      Effect.uninterruptible(
        Effect.gen({ self: this }, function* () {
          yield* this.#inner.rollback
          this.#recoveries.push({ cause: "crashed", restarts, tokens: yield* this.#inner.length })
          this.#on = restarts
        })
      )
    )
  })

  readonly #recovered: Effect.Effect<never, EngineError> = Effect.suspend(() => {
    this.#turnOn = undefined
    return Effect.andThen(Effect.interruptible(this.#attached), Effect.fail(restarted))
  })

  readonly #whole: Effect.Effect<void, EngineError> = Effect.suspend(() => {
    const lost = this.#turnOn !== undefined && this.#turnOn !== this.#lives.restarts
    if (!lost) return this.#attached
    this.#turnOn = undefined
    return Effect.andThen(this.#attached, Effect.fail(restarted))
  })

  #grow<A>(on: EngineOperation, effect: Effect.Effect<A, EngineError>): Effect.Effect<A, EngineError> {
    return Effect.suspend(() => {
      const death = this.#dies(on)
      const before = death === "reopened" ? this.#die(death) : Effect.void
      const call =
        death === "restarted"
          ? Effect.andThen(this.#die(death), this.#recovered)
          : Effect.tap(effect, () => Effect.sync(() => void (this.#turnOn = undefined)))
      return before.pipe(Effect.andThen(this.#whole), Effect.andThen(call))
    })
  }

  readonly #drop = (on: EngineOperation, effect: Effect.Effect<void, EngineError>): Effect.Effect<void, EngineError> =>
    Effect.suspend(() => {
      this.#turnOn = undefined
      return Effect.andThen(this.#die(this.#dies(on)), effect)
    })

  readonly #turn: ModelSession["turn"] = (opening, request) =>
    Stream.unwrap(
      Effect.gen({ self: this }, function* () {
        yield* this.#die(this.#dies("turn"))
        yield* this.#whole
        const on = this.#lives.restarts
        return this.#inner.turn(opening, request).pipe(
          Stream.tap((event) =>
            Effect.sync(() => {
              if (event._tag === "End") this.#turnOn = on
            })
          ),
          Stream.catch((error) =>
            Stream.fromEffect(
              error.reason === "restarted"
                ? Effect.andThen(this.#die("restarted"), this.#recovered)
                : Effect.fail(error)
            )
          )
        )
      })
    )

  get session(): ModelSession {
    const { length, measure } = this.#inner
    return {
      commit: (segments) => this.#grow("commit", this.#inner.commit(segments)),
      turn: this.#turn,
      keep: (closing) => this.#grow("keep", this.#inner.keep(closing)),
      rollback: this.#drop("rollback", this.#inner.rollback),
      rewind: (to) => this.#drop("rewind", this.#inner.rewind(to)),
      recoveries: () => this.#recoveries,
      length,
      // Asked again where the engine died over it: nobody is told.
      measure: (segments) =>
        Effect.suspend(() => this.#die(this.#dies("measure"))).pipe(
          Effect.andThen(this.#attached),
          Effect.andThen(measure(segments))
        )
    }
  }
}

/** @param dies asked before each call */
export const mortal = (
  lives: EngineLives,
  inner: ModelSession,
  dies: (on: EngineOperation) => Death | undefined
): ModelSession => new Mortal(lives, inner, dies).session
