/**
 * What one assertion comes to. The five outcomes keep apart who is to blame: the candidate (`fail`), the suite
 * (`malformed`), the environment (`errored`), or nobody yet (`deferred`: what it needs is not there). They are never collapsed.
 */

export const outcomes = ["pass", "fail", "deferred", "malformed", "errored"] as const

export type Outcome = (typeof outcomes)[number]

export interface Verdict {
  readonly outcome: Outcome
  /** For people; every outcome but `pass` has one. */
  readonly reason?: string
}

/** Reasons quote candidates, and a candidate may have megabytes. */
const mostReason = 2_000

/** At most so many characters, never half of a pair. */
export const cutTo = (text: string, most: number): string => {
  if (text.length <= most) return text
  const half = /[\ud800-\udbff]/.test(text.charAt(most - 1)) ? 1 : 0
  return `${text.slice(0, most - half)}…`
}

const verdict =
  (outcome: Outcome) =>
  (reason: string): Verdict => ({ outcome, reason: cutTo(reason, mostReason) })

export const pass: Verdict = { outcome: "pass" }

/** The candidate did not do it. */
export const fail = verdict("fail")

/** What the assertion needs is not there, and nothing was decided. */
export const deferred = verdict("deferred")

/** The suite asks for something that cannot be asked, or a judge gave no grade. */
export const malformed = verdict("malformed")

/** The environment got in the way: nothing is known about the candidate. */
export const errored = verdict("errored")

/** A text inside a reason: quoted, short. */
export const quote = (text: string, most = 120): string => JSON.stringify(cutTo(text, most))
