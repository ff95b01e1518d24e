/**
 * One program at a time goes on with a run. While it does, `running.json` in the run's directory says who it is; a file whose
 * process is gone, as a crash leaves it, counts for nothing. Tells processes of one machine (and one container) apart: what
 * another machine does on a shared disk it cannot see, there the trace's own name decides, which is taken once.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { reasonOf } from "../actors/Directories.ts"
import { lives, newOwner, type Owner } from "../actors/EffectLedgerOwner.ts"
import { RunDirectoryError, shown } from "./RunDirectory.ts"

const Claim = Schema.fromJsonString(
  Schema.Struct({ id: Schema.String, place: Schema.String, pid: Schema.Int, started: Schema.String })
)

export const fileIn = (directory: string): string => join(directory, "running.json")

/** Who goes on with the run in `directory`, if that can be seen from here. */
export const holder = (directory: string, me: Owner = newOwner()): Owner | undefined => {
  let text: string
  try {
    text = readFileSync(fileIn(directory), "utf8")
  } catch {
    return undefined
  }
  const claim = Option.getOrUndefined(Schema.decodeUnknownOption(Claim)(text))
  if (claim === undefined || claim.place !== me.place) return undefined
  // Nothing is renewed here, so nothing is ever too old: the process table decides.
  return lives(me, claim, 0, 0) ? claim : undefined
}

/** Refuses a run that is under way. */
export const refuseHeld = (directory: string): Effect.Effect<void, RunDirectoryError> =>
  Effect.suspend(() => {
    const other = holder(directory)
    if (other === undefined) return Effect.void
    const message =
      `${shown(directory)}: the run is still going on, in process ${other.pid}: wait for its end, or end it first ` +
      `(kill -INT ${other.pid})`
    return Effect.fail(new RunDirectoryError({ message }))
  })

/** Takes the run in `directory`, which is there, until the scope closes. Refuses one that is under way. */
export const hold = (directory: string): Effect.Effect<void, RunDirectoryError, Scope.Scope> => {
  const path = fileIn(directory)
  const taken = Effect.try({
    try: () => {
      rmSync(path, { force: true })
      writeFileSync(path, `${JSON.stringify(newOwner())}\n`, { flag: "wx" })
    },
    catch: (cause) => new RunDirectoryError({ message: `${shown(path)} cannot be written: ${reasonOf(cause)}` })
  })
  return Effect.acquireRelease(Effect.andThen(refuseHeld(directory), taken), () =>
    // What cannot be removed names a process that is gone.
    Effect.ignore(Effect.try(() => rmSync(path, { force: true })))
  )
}
