/**
 * One program at a time goes on with a run. While it does, `running.json` in the run's directory says who it is; a file whose
 * process is gone, as a crash leaves it, counts for nothing. Tells processes of one machine (and one container) apart: what
 * another machine does on a shared disk it cannot see, there the trace's own name decides, which is taken once.
 */
import { rmSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { makeClaim, takeAway } from "../actors/ClaimFile.ts"
import { look, reasonOf } from "../actors/Directories.ts"
import { lives, newOwner, type Owner } from "../actors/EffectLedgerOwner.ts"
import { textOf } from "../actors/WholeFile.ts"
import { RunDirectoryError, shown } from "./RunDirectory.ts"

const Claim = Schema.fromJsonString(
  Schema.Struct({
    id: Schema.String,
    place: Schema.String,
    pid: Schema.Int.check(Schema.isGreaterThan(0)),
    started: Schema.String
  })
)

export const fileIn = (directory: string): string => join(directory, "running.json")

/** How often a claim is tried for that others make, leave or take away meanwhile. */
const mostTries = 100

const claimIn = (directory: string): string | undefined => {
  const path = fileIn(directory)
  return look(path)._tag === "File" ? textOf(path) : undefined
}

/** Who a claim names, if that is a process that lives and can be seen from here. */
const living = (text: string, me: Owner): Owner | undefined => {
  const claim = Option.getOrUndefined(Schema.decodeUnknownOption(Claim)(text))
  if (claim === undefined || claim.place !== me.place) return undefined
  // Nothing is renewed here, so nothing is ever too old: the process table decides.
  return lives(me, claim, 0, 0) ? claim : undefined
}

const held = (directory: string, { pid }: Owner): RunDirectoryError => {
  const message =
    `${shown(directory)}: the run is still going on, in process ${pid}: wait for its end, or end it first ` +
    `(kill -INT ${pid}). If that process is another program, remove ${shown(fileIn(directory))}`
  return new RunDirectoryError({ message })
}

/** Refuses a run that is under way. */
export const refuseHeld = (directory: string): Effect.Effect<void, RunDirectoryError> =>
  Effect.suspend(() => {
    const other = living(claimIn(directory) ?? "", newOwner())
    return other === undefined ? Effect.void : Effect.fail(held(directory, other))
  })

/** Takes the run in `directory`, which is there, until the scope closes. Refuses one that is under way. */
export const hold = (directory: string): Effect.Effect<void, RunDirectoryError, Scope.Scope> => {
  const path = fileIn(directory)
  const me = newOwner()
  const mine = `${JSON.stringify(me)}\n`
  const taken = Effect.try({
    try: () => {
      for (let tries = 0; tries < mostTries; tries++) {
        if (makeClaim(path, mine)) return undefined
        const left = claimIn(directory)
        const other = living(left ?? "", me)
        if (other !== undefined) return other
        if (left !== undefined) takeAway(path, left)
      }
      throw new Error(`something else is there, or another process is at it (${shown(path)}.taking)`)
    },
    catch: (cause) => new RunDirectoryError({ message: `${shown(path)} cannot be made: ${reasonOf(cause)}` })
  }).pipe(Effect.flatMap((other) => (other === undefined ? Effect.void : Effect.fail(held(directory, other)))))
  // What cannot be removed names a process that is gone.
  const released = Effect.try(() => claimIn(directory) === mine && rmSync(path, { force: true }))
  return Effect.acquireRelease(taken, () => Effect.ignore(released))
}
