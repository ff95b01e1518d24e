/** What the page shows of one conversation, in figures: its assertions across all cases, what it took, where its details are. */
import type { Conversation } from "../../conversation/Conversation.ts"
import type { Decided, Evaluated } from "../Evaluation.ts"
import { type Metrics, metricsOf } from "../Report.ts"
import { unnamed } from "../Suite.ts"
import type { Outcome } from "../Verdict.ts"

export interface DecidedIn extends Decided {
  readonly case: string
  readonly ordinal: number
}

export interface Row {
  readonly name: string
  /** Absent for a file that a case names and that is not there. */
  readonly conversation: Conversation | undefined
  readonly decided: ReadonlyArray<DecidedIn>
  readonly metrics: Omit<Metrics, "conversations_with_trace"> | undefined
  /** The target of links to its details. */
  readonly id: string
}

/** One row per conversation in their order, then one per missing file. */
export const rowsOf = (evaluated: Evaluated): ReadonlyArray<Row> => {
  const decided = new Map<string, Array<DecidedIn>>(evaluated.conversations.map(({ name }) => [name, []]))
  for (const [index, one] of evaluated.cases.entries()) {
    for (const { assertions, conversation } of one.matches) {
      const list = decided.get(conversation) ?? []
      list.push(
        ...assertions.map((assertion, ordinal) => ({ ...assertion, case: one.name ?? unnamed(index), ordinal }))
      )
      decided.set(conversation, list)
    }
  }
  const known = new Map(evaluated.conversations.map(({ conversation, name }) => [name, conversation]))
  return [...decided].map(([name, list], index) => {
    const conversation = known.get(name)
    return {
      name,
      conversation,
      decided: list,
      metrics: conversation === undefined ? undefined : metricsOf(conversation),
      id: `c-${index}`
    }
  })
}

export const countOf = (decided: ReadonlyArray<Decided>, outcome: Outcome): number =>
  decided.filter(({ verdict }) => verdict.outcome === outcome).length

/** `5/6`: passed of decided; deferred ones are beside it. */
export const shareText = (decided: ReadonlyArray<Decided>): string => {
  const deferred = countOf(decided, "deferred")
  const tries = decided.length - deferred
  return `${countOf(decided, "pass")}/${tries}${deferred === 0 ? "" : ` +${deferred}?`}`
}

/** The step of the heat map: 0 nothing passed to 5 all passed, `x` nothing decided. Only what is all passed is a 5. */
export const heatOf = (decided: ReadonlyArray<Decided>): string => {
  const tries = decided.length - countOf(decided, "deferred")
  if (tries === 0) return "x"
  const passes = countOf(decided, "pass")
  return passes === tries ? "5" : String(Math.min(4, Math.floor((passes / tries) * 5)))
}
