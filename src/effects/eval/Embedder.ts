/** The seam to an engine that turns texts into vectors, for `text_semantic_match`. Knows no engine. */
import type * as Effect from "effect/Effect"
import type { EngineError } from "../../engine/EngineError.ts"

export interface Embedder {
  /** For reasons. */
  readonly name: string
  /** One vector per text, in order; all of one length. */
  readonly embed: (texts: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<ReadonlyArray<number>>, EngineError>
}

/** The cosine of the angle between two vectors, −1 to 1. `undefined` where one has no direction or they do not fit. */
export const cosine = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): number | undefined => {
  if (a.length !== b.length) return undefined
  let [dot, left, right] = [0, 0, 0]
  for (let at = 0; at < a.length; at++) {
    dot += a[at]! * b[at]!
    left += a[at]! ** 2
    right += b[at]! ** 2
  }
  // One root of the product: equal vectors come to exactly 1, which two roots miss.
  const length = Math.sqrt(left * right)
  return length > 0 && Number.isFinite(length) ? dot / length : undefined
}
