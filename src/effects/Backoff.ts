/**
 * How long to wait before the next attempt, and when to stop: each wait is `factor` times the one before, without jitter.
 * It decides neither whether a failure may be retried nor does it sleep; deadlines and cancellation are the caller's.
 */

/** `attempts`: all of them, the first included. `delayMillis`: the wait after the first. `factor`: what each wait grows by. */
export interface RetryPolicy {
  readonly attempts: number
  readonly delayMillis: number
  readonly factor: number
}

/** Attempts at 0, 1, 3 and 7 seconds. */
export const standard: RetryPolicy = { attempts: 4, delayMillis: 1000, factor: 2 }

/** Most attempts a policy may ask for, and the longest wait in milliseconds (what a timer can hold, about 24 days). */
export const maxAttempts = 100
export const maxDelayMillis = 2 ** 31 - 1

/** `n`: attempts already made. `d`: milliseconds to wait before the next one. */
export interface BackoffState {
  readonly n: number
  readonly d: number
}

/** `state` holds once the wait is over and the next attempt was made. */
export type Step =
  | { readonly _tag: "Wait"; readonly state: BackoffState; readonly delayMillis: number }
  | { readonly _tag: "Escalate" }

/** What is wrong with a policy, in words; empty if it can be used. */
export const validate = (policy: RetryPolicy): ReadonlyArray<string> => {
  const { attempts, delayMillis, factor } = policy
  const problems: Array<string> = []
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > maxAttempts) {
    problems.push(`attempts must be a whole number from 1 to ${maxAttempts}, not ${attempts}`)
  }
  if (!Number.isFinite(delayMillis) || delayMillis <= 0) {
    problems.push(`the delay must be more than 0 ms, not ${delayMillis}`)
  }
  if (!Number.isFinite(factor) || factor <= 1) {
    problems.push(`the factor must be more than 1, so that waits grow, not ${factor}`)
  }
  if (problems.length === 0 && attempts > 1 && delayMillis * factor ** (attempts - 2) > maxDelayMillis) {
    problems.push(
      `the last wait would be longer than ${maxDelayMillis} ms: fewer attempts, or a smaller delay or factor`
    )
  }
  return problems
}

/** Before anything was tried: the first attempt waits for nothing. */
const untried: BackoffState = { n: 0, d: 0 }

/**
 * After a failure: wait `d`, then attempt number `n + 1`; or, when all attempts are made, escalate. With four attempts
 * doubling, (1,1) goes to (2,2), (3,4) and (4,8), and the next step escalates: the last `d` is computed, never waited.
 */
export const next = (state: BackoffState, policy: RetryPolicy): Step => {
  if (state.n >= policy.attempts) return { _tag: "Escalate" }
  const d = state.n < 1 ? policy.delayMillis : state.d * policy.factor
  return { _tag: "Wait", state: { n: state.n + 1, d }, delayMillis: state.n < 1 ? 0 : state.d }
}

/** Where the count stands after a restart: the state that as many attempts led to, however long ago. */
export const resume = (attemptsOnRecord: number, policy: RetryPolicy): BackoffState => {
  let state = untried
  while (state.n < attemptsOnRecord) {
    const step = next(state, policy)
    if (step._tag === "Escalate") break
    state = step.state
  }
  return state
}
