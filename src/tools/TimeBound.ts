/**
 * Runs a computation that may never end, a regular expression from somewhere else say, and ends it when its time is up. Costs
 * about a millisecond, so it is for checks with patterns in them, not for everything.
 */
import { createContext, Script } from "node:vm"

const sandbox: { work: (() => unknown) | undefined } = { work: undefined }
const context = createContext(sandbox)
const script = new Script("work()")

/** The time was up before the computation was done. */
export class TimeUp extends Error {
  override readonly name = "TimeUp"
}

/** The result of `work`, which must not wait for anything. Throws `TimeUp`, or what `work` throws. */
export const within = <A>(millis: number, work: () => A): A => {
  const outer = sandbox.work
  sandbox.work = work
  try {
    return script.runInContext(context, { timeout: millis }) as A
  } catch (error) {
    if ((error as { readonly code?: unknown } | undefined)?.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") {
      throw new TimeUp(`it took longer than ${millis} ms`)
    }
    throw error
  } finally {
    sandbox.work = outer
  }
}
