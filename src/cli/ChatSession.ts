/**
 * A conversation as a list of exchanges: each message is a run of its own in the same session of the model, and the last one
 * can be taken back. Shows nothing, and undoes no effect.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Agent from "../effects/Agent.ts"
import type { AgentEvent } from "../effects/AgentEvent.ts"
import type { Outcome } from "../effects/Outcome.ts"
import type { RunOptions } from "../effects/Run.ts"
import type { Session } from "../effects/RunContext.ts"
import { type Boundary, boundary, rewind, type SessionOptions } from "../effects/Session.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { Model } from "../engine/Model.ts"
import { ChatEffects, type Left } from "./ChatEffects.ts"
import { StopSlot } from "./StopRequests.ts"

/** A message and what came of it. */
export interface Exchange {
  readonly message: string
  /** Where the conversation was before it. */
  readonly before: Boundary
  readonly outcome: Outcome
  readonly left: ReadonlyArray<Left>
}

export interface Said {
  readonly outcome: Outcome
  /** Somebody asked the whole program to stop, not only this run. */
  readonly leave: boolean
}

/** A session, and the scope that it goes with. */
interface Opened {
  readonly session: Session
  readonly scope: Scope.Closeable
}

export class ChatSession {
  readonly #options: SessionOptions
  readonly #whole: Scope.Scope
  #opened: Opened
  #exchanges: Array<Exchange> = []
  #last: Outcome | undefined

  private constructor(options: SessionOptions, whole: Scope.Scope, opened: Opened) {
    this.#options = options
    this.#whole = whole
    this.#opened = opened
  }

  /** The first session; it closes with the caller's scope. */
  static readonly open = Effect.fnUntraced(function* (
    options: SessionOptions
  ): Effect.fn.Return<ChatSession, EngineError, Model | Scope.Scope> {
    const whole = yield* Effect.scope
    return new ChatSession(options, whole, yield* openIn(options, whole))
  })

  /** The last run, taken back or not. */
  get last(): Outcome | undefined {
    return this.#last
  }

  /**
   * Runs one message. While it runs, Ctrl-C cancels it; any other request to stop cancels it and is for the whole program.
   * @param show what happens, as it happens
   * @param asked somebody asks to stop: called at once, before anything comes of it
   */
  readonly say = (
    message: string,
    options: RunOptions,
    show: (event: AgentEvent) => void,
    asked: () => void = () => {}
  ) => Effect.scoped(this.#say(message, options, show, asked))

  readonly #say = Effect.fnUntraced(
    { self: this },
    function* (message: string, options: RunOptions, show: (event: AgentEvent) => void, onStop: () => void) {
      const { session } = this.#opened
      const before = yield* boundary(session)
      const effects = new ChatEffects(session.registry)
      const running = yield* Deferred.make<Effect.Effect<void>>()
      const stopped = yield* stopping(Effect.flatten(Deferred.await(running)), onStop)
      // A question that was just asked is answered by what is said next, in the run that asked it.
      const asked = this.#exchanges.at(-1)?.outcome.stop._tag === "NeedsInput" && session.asked !== undefined
      const handle = yield* (asked ? Agent.startAnswer : Agent.startIn)(session, message, options)
      yield* Deferred.succeed(running, handle.cancel)
      yield* Stream.runForEach(handle.events, (event) =>
        Effect.sync(() => {
          effects.event(event)
          show(event)
        })
      )
      const outcome = yield* handle.outcome
      this.#last = outcome
      this.#exchanges.push({ message, before, outcome, left: effects.left })
      return { outcome, leave: stopped() } satisfies Said
    }
  )

  /** Takes the last exchange out of the conversation; `undefined` where there is none. */
  readonly undo = Effect.suspend(() => {
    const exchange = this.#exchanges.at(-1)
    if (exchange === undefined) return Effect.succeed(undefined)
    return Effect.map(rewind(this.#opened.session, exchange.before), () => {
      this.#exchanges.pop()
      return exchange
    })
  })

  /** Begins anew, in a session that knows nothing of this one. */
  readonly renew: Effect.Effect<void, EngineError, Model> = Effect.suspend(() =>
    Effect.gen({ self: this }, function* () {
      yield* Scope.close(this.#opened.scope, Exit.void)
      this.#exchanges = []
      this.#opened = yield* openIn(this.#options, this.#whole)
    })
  )
}

const openIn = Effect.fnUntraced(function* (options: SessionOptions, whole: Scope.Scope) {
  const scope = yield* Scope.fork(whole)
  return { scope, session: yield* Scope.provide(Agent.session(options), scope) }
})

/** Requests to stop are this run's until the scope closes. Says whether one was for more than this run. */
const stopping = Effect.fnUntraced(function* (cancel: Effect.Effect<void>, asked: () => void) {
  const slot = yield* StopSlot
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  let leave = false
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      slot.handler = (signal) => {
        leave ||= signal !== "SIGINT"
        asked()
        fork(cancel)
      }
    }),
    () =>
      Effect.sync(() => {
        slot.handler = undefined
        // The next run has a first request of its own.
        if (!leave) slot.asked = 0
      })
  )
  return () => leave
})
