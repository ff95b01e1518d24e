/**
 * An engine that died and was opened again, as a run sees it: said on the record, and the step it died under tried again,
 * within a bound. Putting the session back is the engine's actor's; here nothing is evaluated.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { LedgerError } from "../actors/EffectLedgerError.ts"
import type { TraceError } from "../actors/TraceWriter.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { ModelSession } from "../engine/Model.ts"
import { engineTries } from "./EngineTries.ts"
import type { EngineLife, RunContext } from "./RunContext.ts"
import type { Active } from "./State.ts"

const recoveriesOf = (context: ModelSession) => context.recoveries?.() ?? []

/** For a run that begins now: what came before it is not its own. */
export const engineLife = (context: ModelSession): EngineLife => ({
  context,
  seen: recoveriesOf(context).length,
  tries: 0
})

/** Puts on the record what the session was brought back from since the last look. True where there was something. */
export const noteRecoveries = (run: RunContext): boolean => {
  const { engine } = run
  const { context } = run.session
  // A talk that handed over goes on in another session.
  if (engine.context !== context) Object.assign(engine, { context, seen: 0 })
  const found = recoveriesOf(context).slice(engine.seen)
  engine.seen += found.length
  for (const { cause, restarts, tokens } of found) {
    run.trace.note({ type: "engine_restarted", step: "run", data: { cause, restarts, tokens } })
    run.emit({ _tag: "EngineRestarted", cause, restarts })
  }
  return found.length > 0
}

const isRestart = (error: { readonly _tag: string; readonly reason?: unknown }): boolean =>
  error._tag === "EngineError" && error.reason === "restarted"

/** The engine died, and nothing else is at fault. */
export const restartedIn = (cause: Cause.Cause<{ readonly _tag: string }>): boolean => {
  const error = Cause.hasDies(cause) || Cause.hasInterrupts(cause) ? undefined : Cause.findErrorOption(cause)
  return error?._tag === "Some" && isRestart(error.value)
}

/**
 * May the run go back to the boundary it is at and go on from there? Counts it where it may. A context that is being put back
 * from a record is not at one.
 */
export const goesOn = (run: RunContext, state: Active, error: EngineError | TraceError | LedgerError): boolean => {
  if (!isRestart(error) || run.stopRequest !== undefined || run.past !== undefined) return false
  if (state._tag !== "Preparing" && state._tag !== "Generating") return false
  return run.engine.tries++ < engineTries
}

/** A message that is put back, again where the engine died over it. */
export const putAgain = <A>(commit: Effect.Effect<A, EngineError>): Effect.Effect<A, EngineError> =>
  Effect.retry(commit, { times: engineTries, while: isRestart })
