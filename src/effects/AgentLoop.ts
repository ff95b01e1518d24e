/**
 * The machine: dispatches each state to its own fiber, turns the fiber's exit into the next state, and closes the record.
 * It decides nothing about models or tools; see State.ts for the table.
 *
 * Stopping from outside (cancel, wall time, interruption of the caller) interrupts the current state's fiber, whose
 * finalizers leave session and record at a boundary; then the run goes to `Done`, by way of `Committing` if a turn is open.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import type { FailureClass } from "../actors/TraceEvent.ts"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { EngineError } from "../engine/EngineError.ts"
import { closeRecord } from "./Closing.ts"
import { goesOn, noteRecoveries } from "./EngineLife.ts"
import type { Restore, RunContext } from "./RunContext.ts"
import { type Active, committing, done, preparing, type State, type Stop } from "./State.ts"
import * as Acting from "./states/Acting.ts"
import * as Admitting from "./states/Admitting.ts"
import * as Committing from "./states/Committing.ts"
import * as Generating from "./states/Generating.ts"
import * as Preparing from "./states/Preparing.ts"

type StateError = EngineError | TraceError | LedgerError

const step = (run: RunContext, state: Active): Effect.Effect<State, StateError> => {
  switch (state._tag) {
    case "Preparing":
      return Preparing.preparing(run, state.turn)
    case "Generating":
      return Generating.generating(run, state.turn)
    case "Admitting":
      return Admitting.admitting(run, state.turn)
    case "Acting":
      return Acting.acting(run, state.turn)
    case "Committing":
      return Committing.committing(run, state.turn, state.stop)
  }
}

/** Asks the run to stop. The first reason counts; the current state's fiber is interrupted and not waited for. */
export const requestStop = (run: RunContext, stop: (point: RunContext["point"]) => Stop): void => {
  if (run.stopRequest !== undefined) return
  run.stopRequest = stop(run.point)
  run.current?.interruptUnsafe()
}

export const cancelled = (at: RunContext["point"]): Stop => ({ _tag: "Cancelled", at })

const classes = { EngineError: "engine", TraceError: "trace", LedgerError: "ledger" } as const

const classOf = (error: StateError): FailureClass => classes[error._tag]

const stopOf = (error: StateError): Stop =>
  error._tag === "EngineError" && error.reason === "context_overflow"
    ? { _tag: "ContextExhausted", detail: error.message }
    : { _tag: "Failed", class: classOf(error), message: error.message }

/** The way to `Done` from anywhere: an open turn gets its answers first, unless giving them is what went wrong. */
const towards = (run: RunContext, state: Active, stop: Stop): State =>
  run.open !== undefined && !(state._tag === "Committing" && state.stop !== undefined)
    ? committing(state.turn, stop)
    : done(stop)

interface Next {
  readonly state: State
  readonly defect?: Cause.Cause<never>
}

/** @param recovered the engine was opened again, and the session is at the boundary before `state` */
const next = (run: RunContext, state: Active, exit: Exit.Exit<State, StateError>, recovered: boolean): Next => {
  if (Exit.isSuccess(exit)) {
    const arrived = exit.value
    if (arrived._tag === "Done" || run.stopRequest === undefined) return { state: arrived }
    if (arrived._tag === "Committing" && arrived.stop !== undefined) return { state: arrived }
    return { state: towards(run, state, run.stopRequest) }
  }
  const { cause } = exit
  if (Cause.hasDies(cause)) {
    const stop: Stop = { _tag: "Failed", class: "defect", message: String(Cause.squash(cause)) }
    return { state: towards(run, state, stop), defect: cause as Cause.Cause<never> }
  }
  const error = Cause.findErrorOption(cause)
  if (error._tag === "Some") {
    const again = recovered && goesOn(run, state, error.value)
    return { state: again ? preparing(state.turn) : towards(run, state, stopOf(error.value)) }
  }
  return { state: towards(run, state, run.stopRequest ?? cancelled(run.point)) }
}

/** The exit of a state's fiber. If the caller is interrupted meanwhile, that is a request to stop, and the exit still comes. */
const settle = Effect.fnUntraced(function* (run: RunContext, active: Active, restore: Restore) {
  // Known before its first step: what asks for a stop during that step stops it there.
  const started = Effect.withFiber<State, StateError>((fiber) => {
    run.current = fiber
    return step(run, active)
  })
  // On the way to `Done` a further stop changes nothing: the first reason counts.
  const fiber = yield* Effect.forkChild(started, { startImmediately: true, uninterruptible: stops(active) })
  const awaited = yield* Effect.exit(restore(Fiber.await(fiber)))
  if (Exit.isFailure(awaited)) requestStop(run, cancelled)
  const exit = Exit.isSuccess(awaited) ? awaited.value : yield* Fiber.await(fiber)
  run.current = undefined
  return { exit, interrupted: Exit.isFailure(awaited) }
})

/**
 * Runs the machine from its first state to `Done` and closes the record; call it in an uninterruptible region with that
 * region's `restore`. The result is how the run stopped. An interrupted caller gets its interruption and a defect stays
 * one, both after the record is closed.
 */
export const drive = Effect.fnUntraced(function* (run: RunContext, restore: Restore): Effect.fn.Return<Stop> {
  let state: State = run.stopRequest === undefined ? preparing(run.firstTurn) : done(run.stopRequest)
  let defect: Cause.Cause<never> | undefined
  let interrupted = false
  while (state._tag !== "Done") {
    const active: Active = state
    run.emit({ _tag: "StateEntered", state: active._tag, turn: active.turn })
    // Asked for before this state had a fiber, by whoever saw it coming.
    if (run.stopRequest !== undefined && !stops(active)) {
      state = towards(run, active, run.stopRequest)
      continue
    }
    const settled = yield* settle(run, active, restore)
    interrupted ||= settled.interrupted
    const following = next(run, active, settled.exit, noteRecoveries(run))
    defect ??= following.defect
    state = yield* watched(run, active, following.state)
  }
  const stop = yield* closeRecord(run, state.stop)
  run.emit({ _tag: "Finished", stop })
  if (defect !== undefined) return yield* Effect.failCause(defect)
  if (interrupted) return yield* Effect.interrupt
  return stop
})

/** The step is with whoever keeps a record of its own, before the next one begins. */
const watched = Effect.fnUntraced(function* (run: RunContext, active: Active, following: State) {
  if (run.watch === undefined) return following
  const stop = yield* run.watch(run, active._tag, following)
  if (stop === undefined) return following
  return following._tag === "Done" ? done(stop) : towards(run, active, stop)
})

/** A state that is already on the way to `Done`. */
const stops = (state: Active): boolean => state._tag === "Committing" && state.stop !== undefined
