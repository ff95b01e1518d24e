/**
 * Sessions that stay open between requests. A request that goes on where one of them stands gets that one and evaluates only
 * what is new; any other gets a fresh one. One request has a session for itself, and gives it back at a boundary.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Codec } from "../../engine/codecs/Codec.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import { Model, type ModelIdentity } from "../../engine/Model.ts"
import * as Registry from "../../tools/Registry.ts"
import type { Session } from "../RunContext.ts"
import * as Sessions from "../Session.ts"

export interface Warm {
  readonly session: Session
  readonly scope: Scope.Closeable
  /** What the session's log holds, in order: equal keys, equal content. */
  keys: ReadonlyArray<string>
  /** Tokens in its log at that point. */
  length: number
}

export interface WarmSessions {
  /** What all of them speak. */
  readonly codec: Codec
  readonly model: ModelIdentity
  /**
   * A session whose keys are the beginning of these, for the scope. Waits while all are taken. `about` is what a fresh one
   * has besides the codec: no tools, unless it is said; the first key has to tell it from others.
   */
  readonly lease: (
    keys: ReadonlyArray<string>,
    about?: Omit<Sessions.SessionOptions, "codec">
  ) => Effect.Effect<Warm, EngineError, Scope.Scope>
}

const begins = (all: ReadonlyArray<string>, { keys }: Warm): boolean =>
  keys.length <= all.length && keys.every((key, index) => key === all[index])

/** One that holds nothing yet is still made for certain tools and a certain system text. */
const fits = ({ keys, session }: Warm, about: About): boolean =>
  keys.length > 0 || about === undefined || (session.registry === about.tools && session.system === about.system)

type About = Omit<Sessions.SessionOptions, "codec"> | undefined

type Open = (scope: Scope.Closeable, about: About) => Effect.Effect<Session, EngineError>

/** The sessions that nobody has, and how many there are at all. */
class Pool {
  readonly #home: Scope.Scope
  readonly #open: Open
  readonly #limit: number
  /** Least recently used first. */
  readonly #idle: Array<Warm> = []
  #alive = 0

  constructor(home: Scope.Scope, open: Open, limit: number) {
    this.#home = home
    this.#open = open
    this.#limit = limit
  }

  /** A new one; where the model has none left, one that nobody has makes room. */
  readonly fresh = (about?: About): Effect.Effect<Warm, EngineError> =>
    Effect.suspend(() => this.#make(about)).pipe(
      Effect.catchIf(
        ({ reason }) => reason === "no_session" && this.#idle.length > 0,
        () => Effect.andThen(this.#close(this.#idle.shift()!), this.fresh(about))
      )
    )

  readonly pick = (keys: ReadonlyArray<string>, about: About): Effect.Effect<Warm, EngineError> =>
    Effect.suspend(() => {
      const fitting = this.#idle.filter((warm) => begins(keys, warm) && fits(warm, about))
      const best = fitting.sort((a, b) => b.keys.length - a.keys.length)[0]
      if (best !== undefined) {
        this.#idle.splice(this.#idle.indexOf(best), 1)
        return Effect.succeed(best)
      }
      const old = this.#alive >= this.#limit ? this.#idle.shift() : undefined
      return old === undefined ? this.fresh(about) : Effect.andThen(this.#close(old), this.fresh(about))
    })

  /** Back to its boundary; a session that does not stand where it is believed to stand is given up. */
  readonly giveBack = (warm: Warm): Effect.Effect<void> =>
    warm.session.context.rollback.pipe(
      Effect.andThen(warm.session.context.length),
      Effect.matchEffect({
        onFailure: () => this.#close(warm),
        onSuccess: (length) =>
          length === warm.length ? Effect.sync(() => void this.#idle.push(warm)) : this.#close(warm)
      })
    )

  #make(about: About): Effect.Effect<Warm, EngineError> {
    this.#alive += 1
    return Effect.flatMap(Scope.fork(this.#home), (scope) =>
      this.#open(scope, about).pipe(
        Effect.onError(() => this.#end(scope)),
        Effect.map((session): Warm => ({ session, scope, keys: [], length: 0 }))
      )
    )
  }

  #close({ scope }: Warm): Effect.Effect<void> {
    return this.#end(scope)
  }

  #end(scope: Scope.Closeable): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#alive -= 1
      return Scope.close(scope, Exit.void)
    })
  }
}

export const make = Effect.fnUntraced(function* (options: {
  readonly codec: string | Codec | undefined
  readonly limit: number
}): Effect.fn.Return<WarmSessions, EngineError, Model | Scope.Scope> {
  const { codec, limit } = options
  const model = yield* Model
  const tools = yield* Effect.orDie(Registry.make([]))
  const spoken = codec === undefined ? {} : { codec }
  const open: Open = (scope, about = { tools }) =>
    // Not waited for: where there is none, one of these makes room.
    Sessions.open({ ...about, ...spoken, waitSeconds: 0 }).pipe(
      Scope.provide(scope),
      Effect.provideService(Model, model)
    )
  const pool = new Pool(yield* Effect.scope, open, limit)
  const places = yield* Semaphore.make(limit)
  // The first is opened at once: a model that nobody can speak to is refused here.
  const first = yield* pool.fresh()
  yield* pool.giveBack(first)
  return {
    codec: first.session.codec,
    model: model.identity,
    lease: (keys, about) =>
      Effect.acquireRelease(places.take(1), () => places.release(1), { interruptible: true }).pipe(
        Effect.andThen(Effect.acquireRelease(pool.pick(keys, about), pool.giveBack))
      )
  }
})
