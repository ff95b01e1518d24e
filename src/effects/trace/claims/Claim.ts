/** What a claim is, and what a check of an answer's claims says. An unsupported claim is not a lie, a supported one not a fact. */

/** Each kind has its file of rules. */
export type ClaimKind = "writing" | "acting" | "reading" | "number" | "name"

/**
 * `supported`: the record shows something that the claim can rest on. `unsupported`: the record shows nothing of the kind; it
 * may be true all the same. `unknown`: part of what happened is not in this record.
 */
export type ClaimVerdict = "supported" | "unsupported" | "unknown"

export interface Claim {
  readonly kind: ClaimKind
  /** The words that claim it: `saved report.md`, `21.57%`. */
  readonly text: string
  /** The sentence they stand in, shortened. */
  readonly quote: string
  /** Where in the answer, in UTF-16 units. */
  readonly at: number
  readonly verdict: ClaimVerdict
  readonly reason: string
  /** Calls that it rests on, or that came to nothing. */
  readonly calls: ReadonlyArray<string>
}

export interface ClaimReport {
  /** `not made`: there is no answer, or none that can be read. That is not the same as "no claims". */
  readonly status: "made" | "not made"
  /** Why it was not made, or what is missing from the record it was made on; empty if nothing is. */
  readonly reason: string
  /** In the answer's order; the first ones of very many. */
  readonly claims: ReadonlyArray<Claim>
  /** How many there are, listed or not. */
  readonly counts: Readonly<Record<ClaimVerdict, number>>
}

/** What is always said beside a list of unsupported claims. */
export const meaning =
  "Unsupported means that the record shows nothing for it: it may be true. A claim that is not listed is not thereby proved."
