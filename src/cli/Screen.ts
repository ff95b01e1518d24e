/**
 * What a person looks at: standard output with colours where it is a terminal, and one line of progress that is gone as
 * soon as something is said; elsewhere a plain line, if nothing was said for a while. Writes whole texts at once, in order,
 * and ends quietly when nobody reads any more.
 */

import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Effect from "effect/Effect"
import { cut } from "./Printable.ts"
import { StopSlot } from "./StopRequests.ts"

export interface Paint {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly cyan: (text: string) => string
  readonly yellow: (text: string) => string
}

export interface Screen {
  readonly paint: Paint
  /** Somebody looks at it. Elsewhere text is written as it is, for other programs. */
  readonly terminal: boolean
  /** The terminal is told which way paragraphs read. */
  readonly directions: boolean
  /** Characters of a line, now: a window may be resized. Wide where output goes to a file. */
  readonly columns: number
  readonly write: (text: string) => void
  readonly line: (text?: string) => void
  /**
   * Shows where long work stands. On a terminal the next text replaces it, and an empty one takes it away; elsewhere it is a
   * line, if nothing was written for ten seconds.
   */
  readonly progress: (text: string) => void
  /** A question is open: while it is, no progress is drawn over it. */
  readonly hold: (on: boolean) => void
  /** Milliseconds, for telling how long something goes on. */
  readonly now: () => number
}

/** How long a screen that cannot draw says nothing of long work. */
const silenceMillis = 10_000

/** A narrower window is written to as if it were this wide: nothing could be read in it anyway. */
const leastColumns = 20

/** Where a screen's text goes. */
export type Out = Pick<NodeJS.WriteStream, "isTTY" | "columns"> & { readonly write: (text: string) => unknown }

export const Output = Context.Reference<Out>("effect-writ/cli/Screen/Output", { defaultValue: () => process.stdout })

const paintWith = (on: boolean): Paint => {
  const wrap = (code: number) => (text: string) => (on && text !== "" ? `\u001b[${code}m${text}\u001b[0m` : text)
  return { bold: wrap(1), dim: wrap(2), red: wrap(31), green: wrap(32), cyan: wrap(36), yellow: wrap(33) }
}

const termOf = Effect.orElseSucceed(Config.String("TERM"), () => "")

/** @param color on or off for sure; undefined: on a terminal unless NO_COLOR is set */
export const make = (color: boolean | undefined): Effect.Effect<Screen> =>
  Effect.map(Effect.all([TerminalCapabilities, Output, Clock.Clock, termOf, StopSlot]), (given) => {
    const [capabilities, out, clock, term, slot] = given
    const { canAnimate, canColor } = capabilities
    const paint = paintWith(color ?? canColor)
    const width = () => (out.isTTY ? out.columns || 80 : 1000)
    const columns = () => Math.max(leastColumns, width())
    const now = () => clock.currentTimeMillisUnsafe()
    let progress = false
    let held = false
    let last = now()
    const clear = () => {
      if (!progress) return false
      out.write("\r\u001b[2K")
      progress = false
      return true
    }
    slot.clear = clear
    const write = (text: string) => {
      if (text === "") return
      clear()
      out.write(text)
      last = now()
    }
    const draw = (text: string) => {
      clear()
      if (text === "") return
      out.write(`\r${paint.dim(cut(text, width() - 1))}`)
      progress = true
    }
    return {
      paint,
      terminal: out.isTTY === true,
      // The console of a kernel prints a part of what it does not understand.
      directions: out.isTTY === true && term !== "linux",
      get columns() {
        return columns()
      },
      write,
      line: (text = "") => write(`${text}\n`),
      progress: (text) => {
        if (held) return
        if (canAnimate) draw(text)
        else if (text !== "" && now() - last >= silenceMillis) write(`${text}\n`)
      },
      hold: (on) => {
        held = on
      },
      now
    }
  })

/** Colours for a document that is printed as a whole. */
export const paintFor = (color: boolean | undefined): Effect.Effect<Paint> =>
  Effect.map(TerminalCapabilities, ({ canColor }) => paintWith(color ?? canColor))
