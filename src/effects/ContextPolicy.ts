/** What a run does when its next turn does not fit the model's context: stop and say so, or make room and say so. */

export interface ContextPolicy {
  /**
   * `refuse`: the run stops, `context_exhausted`. `compact`: the oldest exchanges leave the context, whole, and a marker says
   * how many; system text, tools and the last exchange stay. Where that is not enough the run stops all the same.
   */
  readonly onFull: "refuse" | "compact"
  /**
   * The share of the room behind system and tools that may be filled after a compaction, above 0 and at most 1. What is kept
   * is evaluated again each time, so a little room would have to be made often.
   */
  readonly keep: number
}

export const defaults: ContextPolicy = { onFull: "refuse", keep: 0.5 }

/** Why a policy cannot be used; `undefined` when it can. */
export const problemWith = ({ keep, onFull }: ContextPolicy): string | undefined => {
  if (onFull !== "refuse" && onFull !== "compact") return `context: onFull is "refuse" or "compact"`
  return keep > 0 && keep <= 1 ? undefined : "context: keep must be above 0 and at most 1"
}

/** The policy as the trace records it. */
export const recorded = ({ keep, onFull }: ContextPolicy) => ({ on_full: onFull, keep })
