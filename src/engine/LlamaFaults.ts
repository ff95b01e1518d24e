/**
 * Failures that the inference library tells nobody: when sampling fails, the call that waits for a token never comes back
 * and the cause surfaces as an unhandled rejection. Whoever may be meant registers here; whoever hears of one asks here.
 */
import { setTimeout } from "node:timers/promises"

/** Somebody whose native call may be the one that failed. */
export interface Suspect {
  /** Names the native call that is out, or nothing when none is or it cannot fail this way. */
  readonly waiting: () => number | undefined
  readonly fail: (cause: unknown) => void
}

const suspects = new Set<Suspect>()
/** With several suspects, a call that is still out after this long is the one that failed. */
const patienceMillis = 10_000

/** Registers until the returned function is called. */
export const suspect = (one: Suspect): (() => void) => {
  suspects.add(one)
  return () => suspects.delete(one)
}

/** Fails the call a fault belongs to; false when it can be nobody's here. */
export const accuse = (cause: unknown): boolean => {
  const calls = [...suspects].map((one) => ({ one, call: one.waiting() })).filter(({ call }) => call !== undefined)
  if (calls.length === 0) return false
  if (calls.length === 1) calls[0]!.one.fail(cause)
  else {
    void setTimeout(patienceMillis, undefined, { ref: false }).then(() => {
      for (const { call, one } of calls) if (one.waiting() === call) one.fail(cause)
    })
  }
  return true
}
