/** How whoever opens a session of a model waits for it while all of the model's are in use. Who makes the line is another matter. */
import * as Context from "effect/Context"
import type { Priority } from "./Generation.ts"

export interface Wait {
  /** 5 goes first. */
  readonly priority: Priority
  /** Seconds at most. 0: where no session is free it fails at once. */
  readonly seconds: number
}

/** Nobody waits unless they say so: a keeper of sessions has some of its own to give back first. */
export const SessionWait = Context.Reference<Wait>("effect-writ/engine/SessionWait", {
  defaultValue: () => ({ priority: 3, seconds: 0 })
})
