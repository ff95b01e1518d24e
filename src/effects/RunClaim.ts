/**
 * One program at a time goes on with a run. While it does, `running.json` in the run's directory says who it is; a file whose
 * process is gone, as a crash leaves it, counts for nothing. Tells processes of one machine (and one container) apart: what
 * another machine does on a shared disk it cannot see, there the trace's own name decides, which is taken once.
 */
import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { takeAway } from "../actors/ClaimFile.ts"
import { reasonOf } from "../actors/Directories.ts"
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
    `(kill -INT ${pid})`
  return new RunDirectoryError({ message })
}

/** Refuses a run that is under way. */
export const refuseHeld = (directory: string): Effect.Effect<void, RunDirectoryError> =>
  Effect.suspend(() => {
    const other = living(textOf(fileIn(directory)) ?? "", newOwner())
    return other === undefined ? Effect.void : Effect.fail(held(directory, other))
  })

/** Takes the run in `directory`, which is there, until the scope closes. Refuses one that is under way. */
export const hold = (directory: string): Effect.Effect<void, RunDirectoryError, Scope.Scope> => {
  const path = fileIn(directory)
  const me = newOwner()
  const mine = `${JSON.stringify(me)}\n`
  const taken = Effect.try({
    try: () => {
      const left = textOf(path)
      if (left !== undefined && living(left, me) === undefined) takeAway(path, left)
      writeFileSync(path, mine, { flag: "wx" })
    },
    catch: (cause) => {
      const other = living(textOf(path) ?? "", me)
      if (other !== undefined) return held(directory, other)
      return new RunDirectoryError({ message: `${shown(path)} cannot be written: ${reasonOf(cause)}` })
    }
  })
  // What cannot be removed names a process that is gone.
  const released = Effect.try(() => textOf(path) === mine && rmSync(path, { force: true }))
  return Effect.acquireRelease(taken, () => Effect.ignore(released))
}
