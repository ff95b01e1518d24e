/**
 * What a person looks at: standard output with colours where it is a terminal, and one line of progress that is gone as
 * soon as something is said. Writes whole texts at once, in order, and ends quietly when nobody reads any more.
 */

import * as Context from "effect/Context"
import { TerminalCapabilities } from "effect/cli/TerminalCapabilities"
import * as Effect from "effect/Effect"

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
  /** Characters of a line. Wide where output goes to a file. */
  readonly columns: number
  readonly write: (text: string) => void
  readonly line: (text?: string) => void
  /** Shows where things stand, on a terminal only; the next text replaces it. */
  readonly progress: (text: string) => void
}

/** Where a screen's text goes. */
export type Out = Pick<NodeJS.WriteStream, "isTTY" | "columns"> & { readonly write: (text: string) => unknown }

export const Output = Context.Reference<Out>("effect-writ/cli/Screen/Output", { defaultValue: () => process.stdout })

const paintWith = (on: boolean): Paint => {
  const wrap = (code: number) => (text: string) => (on && text !== "" ? `\u001b[${code}m${text}\u001b[0m` : text)
  return { bold: wrap(1), dim: wrap(2), red: wrap(31), green: wrap(32), cyan: wrap(36), yellow: wrap(33) }
}

/** @param color on or off for sure; undefined: on a terminal unless NO_COLOR is set */
export const make = (color: boolean | undefined): Effect.Effect<Screen> =>
  Effect.map(Effect.all([TerminalCapabilities, Output]), ([{ canAnimate, canColor }, out]) => {
    const paint = paintWith(color ?? canColor)
    let progress = false
    const clear = () => {
      if (progress) out.write("\r\u001b[2K")
      progress = false
    }
    const write = (text: string) => {
      if (text === "") return
      clear()
      out.write(text)
    }
    return {
      paint,
      columns: out.isTTY ? Math.max(40, out.columns ?? 80) : 1000,
      write,
      line: (text = "") => write(`${text}\n`),
      progress: (text) => {
        if (!canAnimate) return
        out.write(`\r\u001b[2K${paint.dim(text)}`)
        progress = true
      }
    }
  })

/** Colours for a document that is printed as a whole. */
export const paintFor = (color: boolean | undefined): Effect.Effect<Paint> =>
  Effect.map(TerminalCapabilities, ({ canColor }) => paintWith(color ?? canColor))
