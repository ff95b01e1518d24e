/**
 * Who is let in: so many requests of one key at a time and per minute, so many of all of them in sessions and waiting for one.
 * Whoever is not let in is told when to come again. Counts only; it neither runs nor waits for anything.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type ChatError, tooMuch, unavailable } from "./ChatError.ts"
import type { Refusal } from "./ServeMetrics.ts"

export interface AdmissionLimits {
  /** Requests that have a session at a time. */
  readonly sessions: number
  /** Requests that may wait for one. */
  readonly queue: number
  /** Requests of one key at a time, waiting ones included. */
  readonly keyConcurrency: number
  /** Requests of one key in any 60 seconds. `Infinity`: as many as it likes. */
  readonly keyPerMinute: number
}

export interface Admission {
  /** Lets a request in for the scope. */
  readonly enter: (key: string) => Effect.Effect<void, ChatError, Scope.Scope>
  /** Those inside, and those of them that must be waiting. */
  readonly inside: () => number
  readonly waiting: () => number
}

interface Key {
  active: number
  /** When its requests of the last minute came, by a clock that nobody sets. */
  readonly recent: Array<number>
}

const minute = 60_000

/** Milliseconds. */
const now = Effect.map(Clock.monotonicTimeNanos, (nanos) => Number(nanos / 1_000_000n))

/** Seconds until a session is likely to be free: nobody knows how long a run takes. */
const soon = 2

export const make = (limits: AdmissionLimits, refused: (reason: Refusal) => void): Admission => {
  const keys = new Map<string, Key>()
  let inside = 0
  const keyOf = (name: string): Key => {
    const known = keys.get(name) ?? { active: 0, recent: [] }
    keys.set(name, known)
    return known
  }
  const refuse = (reason: Refusal, error: ChatError) =>
    Effect.andThen(
      Effect.sync(() => refused(reason)),
      Effect.fail(error)
    )
  const check = (key: Key, at: number): Effect.Effect<void, ChatError> => {
    while (key.recent.length > 0 && key.recent[0]! <= at - minute) key.recent.shift()
    const { keyConcurrency, keyPerMinute, queue, sessions } = limits
    if (key.recent.length >= keyPerMinute) {
      const wait = Math.max(1, Math.ceil(((key.recent[0] ?? at) + minute - at) / 1000))
      return refuse("rate", tooMuch("rate_limit_exceeded", `This key may make ${keyPerMinute} requests a minute`, wait))
    }
    if (key.active >= keyConcurrency) {
      const text = `This key may have ${keyConcurrency} requests open at a time`
      return refuse("concurrency", tooMuch("concurrency_limit_exceeded", text, soon))
    }
    if (inside >= sessions + queue) {
      const text = `All ${sessions} sessions are taken and ${queue} requests wait already`
      return refuse("overloaded", unavailable("overloaded", text, soon))
    }
    return Effect.void
  }
  const leave = (key: Key): Effect.Effect<void> =>
    Effect.sync(() => {
      key.active -= 1
      inside -= 1
    })
  return {
    enter: (name) =>
      Effect.acquireRelease(
        Effect.gen(function* () {
          const at = yield* now
          const key = keyOf(name)
          yield* check(key, at)
          if (Number.isFinite(limits.keyPerMinute)) key.recent.push(at)
          key.active += 1
          inside += 1
          return key
        }),
        leave
      ).pipe(Effect.asVoid),
    inside: () => Math.min(inside, limits.sessions),
    waiting: () => Math.max(0, inside - limits.sessions)
  }
}
