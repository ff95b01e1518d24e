/** The call that a tool runs for, as far as a tool in this program may know of it. Tools of other threads see none. */
import * as Context from "effect/Context"
import type { RunContext } from "./RunContext.ts"

export interface CurrentCall {
  readonly run: RunContext
  readonly callId: string
  readonly tool: string
  /** What the call belongs to in the record. */
  readonly step: string
  /** Milliseconds the execution got. */
  readonly deadlineMillis: number
  /** Which execution of the call this is, from 1: a lost answer may be asked for again. */
  readonly attempt: number
}

export const CurrentCall = Context.Reference<CurrentCall | undefined>("effect-writ/effects/CurrentCall", {
  defaultValue: () => undefined
})
