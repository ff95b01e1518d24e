/**
 * Ctrl-C, SIGTERM and a terminal that is closed. The first one asks: a run is cancelled and closes its record; where nothing
 * runs the program is interrupted. The second one ends the process at once.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { writeWhole } from "./StandardOutput.ts"

/** Who is told first. Without a handler the program itself is interrupted. */
export interface StopSlot {
  handler: ((signal: string) => void) | undefined
  /** Requests so far; the second one ends the process. Whoever goes on after the first sets it back to 0. */
  asked?: number
  /** Takes the line of progress away; false where none is shown. */
  clear?: () => boolean
  /** Why standard output could not be written, other than that its reader went away. */
  lost?: Error
}

export const StopSlot = Context.Reference<StopSlot>("effect-writ/cli/StopRequests/StopSlot", {
  defaultValue: () => ({ handler: undefined })
})

/** While the scope is open, a request to stop runs `stop` instead of interrupting the program. */
export const onStop = Effect.fnUntraced(function* (
  stop: Effect.Effect<void>
): Effect.fn.Return<void, never, Scope.Scope> {
  const slot = yield* StopSlot
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      slot.handler = () => void fork(stop)
    }),
    () =>
      Effect.sync(() => {
        slot.handler = undefined
      })
  )
})

/** Listens to signals and to a standard output that was closed, until the returned function is called. */
export const listen = (slot: StopSlot, interrupt: () => void): (() => void) => {
  const ask = (signal: string): void => {
    slot.asked = (slot.asked ?? 0) + 1
    // Half a line of an answer stays; one of progress would look as if it went on.
    const fresh = slot.clear?.() === true
    if (slot.asked > 1) process.exit(130)
    if (signal === "SIGINT" && process.stderr.isTTY) {
      process.stderr.write(`${fresh ? "" : "\n"}stopping; once more to quit at once\n`)
    }
    if (slot.handler === undefined) interrupt()
    else slot.handler(signal)
  }
  // A shell passes on what the kernel has said already: that is no second request.
  const hungUp = (signal: string): void => {
    if ((slot.asked ?? 0) === 0) ask(signal)
  }
  const closed = (error: Error & { readonly code?: string }): void => {
    // That nobody reads any more is not worth a message.
    if (error.code !== "EPIPE") slot.lost ??= error
    // But a run must not go on unseen.
    if ((slot.asked ?? 0) === 0) ask(String(error.code))
  }
  process.on("SIGINT", ask)
  process.on("SIGTERM", ask)
  process.on("SIGHUP", hungUp)
  writeWhole(process.stdout)
  process.stdout.on("error", closed)
  process.stderr.on("error", () => {})
  return () => {
    process.off("SIGINT", ask)
    process.off("SIGTERM", ask)
    process.off("SIGHUP", hungUp)
  }
}
