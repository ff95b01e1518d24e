/**
 * Running an agent from Effect code. `run` is a task to its outcome, `stream` its events, `start` both with a way to cancel;
 * `session` keeps the conversation open for several tasks. Engines, pool, record and store come as layers (see Wiring).
 */
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { Model } from "../engine/Model.ts"
import type { AgentEvent } from "./AgentEvent.ts"
import type { Outcome } from "./Outcome.ts"
import { answerCall } from "./Replying.ts"
import { type Control, execute, InvalidOptions, type RunOptions, type RunServices } from "./Run.ts"
import type { Session } from "./RunContext.ts"
import { open, type SessionOptions } from "./Session.ts"

export interface AgentOptions extends SessionOptions, RunOptions {
  readonly task: string
}

/** Everything a run needs. */
export type Services = Model | RunServices

export type AgentError = EngineError | InvalidOptions | TraceError

/** A run in progress. */
export interface RunHandle<E = AgentError> {
  readonly runId: string
  /** What happens, from the start; ends with the run. Slow readers miss the oldest events, never the newest. */
  readonly events: Stream.Stream<AgentEvent>
  readonly outcome: Effect.Effect<Outcome, E>
  /** Asks the run to stop; `outcome` follows as soon as the record is closed. */
  readonly cancel: Effect.Effect<void>
}

export { type AgentTool, type AgentToolOptions, asTool } from "./AgentTool.ts"

const unwatched: Control = { emit: () => {}, started: () => {} }

/** Opens a session that several tasks can be run in, one after another. */
export const session: (options: SessionOptions) => Effect.Effect<Session, EngineError, Model | Scope.Scope> = open

/** Runs one task in an open session. */
export const runIn = (
  opened: Session,
  task: string,
  options: RunOptions = {}
): Effect.Effect<Outcome, InvalidOptions | TraceError, RunServices> => execute(opened, task, options, unwatched)

/** Runs one task in a session of its own. Interrupting it cancels the run. */
export const run = (options: AgentOptions): Effect.Effect<Outcome, AgentError, Services> =>
  Effect.scoped(Effect.flatMap(open(options), (opened) => execute(opened, options.task, options, unwatched)))

/** The control of a run that answers what the session's last run has asked; the answer is given by then. */
const answering = (
  opened: Session,
  said: string,
  control: Control
): Effect.Effect<Control & { readonly task: string }, InvalidOptions> =>
  Effect.suspend(() => {
    const { asked, busy } = opened
    if (busy) return Effect.fail(new InvalidOptions({ message: "this session runs a task; it asks nothing yet" }))
    if (asked === undefined) return Effect.fail(new InvalidOptions({ message: "this session has not asked anything" }))
    const given = answerCall(opened, said)
    return Effect.succeed({ ...control, asked, ...(given ? {} : { reply: said }), task: asked.task })
  })

/**
 * Answers what a run has asked (it stopped as `NeedsInput`), in the same session: the run goes on as its next part, with its
 * budgets continued and the time the answer took not counted. Fails where nothing was asked.
 */
export const answer = (
  opened: Session,
  said: string,
  options: RunOptions = {}
): Effect.Effect<Outcome, InvalidOptions | TraceError, RunServices> =>
  Effect.flatMap(answering(opened, said, unwatched), ({ task, ...control }) => execute(opened, task, options, control))

/** The same, started in the caller's scope. */
export const startAnswer = (
  opened: Session,
  said: string,
  options: RunOptions = {}
): Effect.Effect<RunHandle, AgentError, RunServices | Scope.Scope> =>
  startWith<AgentError, RunServices>((control) =>
    Effect.flatMap(answering(opened, said, control), ({ task, ...rest }) => execute(opened, task, options, rest))
  )

/** How many events wait for a reader before the oldest are dropped. */
const eventCapacity = 8192

/** Starts a run in the caller's scope; `running` is the whole of it. */
export const startWith = Effect.fnUntraced(function* <E, R>(
  running: (control: Control) => Effect.Effect<Outcome, E, R>
): Effect.fn.Return<RunHandle<E>, E, R | Scope.Scope> {
  const queue = yield* Queue.sliding<AgentEvent, Cause.Done>(eventCapacity)
  const ready = yield* Deferred.make<{ readonly cancel: Effect.Effect<void>; readonly runId: string }>()
  const control: Control = {
    emit: (event) => void Queue.offerUnsafe(queue, event),
    live: true,
    started: (cancel, runId) => void Deferred.doneUnsafe(ready, Effect.succeed({ cancel, runId }))
  }
  const fiber = yield* Effect.forkScoped(
    Effect.ensuring(
      running(control),
      Effect.sync(() => Queue.endUnsafe(queue))
    )
  )
  // A run that cannot even be opened ends before it is ready.
  const { cancel, runId } = yield* Effect.raceFirst(
    Deferred.await(ready),
    Effect.flatMap(Fiber.join(fiber), () => Effect.never)
  )
  return { runId, events: Stream.fromQueue(queue), outcome: Fiber.join(fiber), cancel }
})

/** Starts one task in an open session, in the caller's scope. */
export const startIn = (
  opened: Session,
  task: string,
  options: RunOptions = {}
): Effect.Effect<RunHandle, AgentError, RunServices | Scope.Scope> =>
  startWith<AgentError, RunServices>((control) => execute(opened, task, options, control))

/** Starts one task in a session of its own; both end with the caller's scope. */
export const start = (options: AgentOptions): Effect.Effect<RunHandle, AgentError, Services | Scope.Scope> =>
  Effect.flatMap(open(options), (opened) => startIn(opened, options.task, options))

/** The events of one task. Leaving the stream early cancels the run. */
export const stream = (options: AgentOptions): Stream.Stream<AgentEvent, AgentError, Services> =>
  Stream.unwrap(Effect.map(start(options), (handle) => handle.events))
