/**
 * What a thread and a child process that run an engine have in common for whoever talks to them: messages go in and out, and
 * it ends once, for one reason. Starts neither.
 */
import * as Data from "effect/Data"
import type * as Deferred from "effect/Deferred"
import { EngineError } from "../engine/EngineError.ts"
import type { Recovery } from "../engine/Model.ts"

/** Where native code runs: `thread` is cheaper, a `process` can crash or be ended without taking this one along. */
export type Isolation = "thread" | "process"

/** Why an engine is not there any more. */
export interface End {
  readonly cause: Recovery["cause"] | "closed"
  readonly error: EngineError
}

/** The engine is not there any more, or cannot be started. Stays inside of the actor: callers get what follows from it. */
export class Gone extends Data.TaggedError("Gone")<{ readonly end: End }> {}

export interface Host {
  readonly isolation: Isolation
  /** Of a child process. */
  readonly pid: number | undefined
  /** Never throws: what is said to one that has ended is lost. */
  readonly post: (message: unknown) => void
  readonly hear: (listener: (message: unknown) => void) => void
  /** Set first; from then on nothing is asked of it. */
  end: End | undefined
  /** Done when it has ended, or was given up because it cannot be ended. */
  readonly gone: Deferred.Deferred<void>
  /** Ends it for this reason, whatever it is doing; a thread within native code is given up instead. */
  readonly condemn: (end: End) => void
  /** It runs on, in native code that does not come back, and nobody waits for it. */
  readonly abandoned: () => boolean
}

/** The program of both. */
export const engineEntry = (): URL =>
  new URL(`../engine/worker.${import.meta.url.endsWith(".ts") ? "ts" : "js"}`, import.meta.url)

export const endOf = (cause: End["cause"], message: string, more?: unknown): End => ({
  cause,
  error: new EngineError({ reason: "lost", message, ...(more === undefined ? {} : { cause: more }) })
})
