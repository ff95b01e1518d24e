/** Tokens where nobody counts them: four characters each, and ids that are all the same, since none is known. */
import type { Segment } from "./Prompt.ts"

/** Characters of a token. */
export const unit = 4

export const tokensIn = (text: string): number => Math.ceil(text.length / unit)

/** Tokens that segments may take, the same for ours and theirs. */
export const sizeOf = (segments: ReadonlyArray<Segment>): number =>
  segments.reduce((size, { text }) => size + tokensIn(text), 0)

/** Stand for ids nobody told. */
export const unknownIds = (tokens: number): ReadonlyArray<number> => Array.from({ length: tokens }, () => 0)
