/** A scripted engine as the file has to know it: its turns are named by number, and may bring blocks and a trace of their own. */
import type { Scripted } from "./TurnMessage.ts"

export interface Voice {
  /** The name of the last turn that was played: `noop-0`, `noop-1`, … */
  readonly spanId: () => string
  /** What the script said of it besides its text. */
  readonly said: () => Scripted
}
