/**
 * The assertions of a report one by one, each under a name of its own: case, conversation, place in the case, class. Two of one
 * class in one case are two, and assertions of two reports that have the same name are the same assertion.
 */
import type { Report } from "./Report.ts"
import { unnamed } from "./Suite.ts"
import type { Outcome } from "./Verdict.ts"

export interface Cell {
  readonly case: string
  readonly conversation: string
  /** From 0, within the case. */
  readonly ordinal: number
  readonly class: string
}

export interface DecidedCell extends Cell {
  readonly outcome: Outcome
  readonly reason: string | undefined
}

/** What names a cell; no two cells of a report have the same. */
export const keyOf = (cell: Cell): string => JSON.stringify([cell.case, cell.conversation, cell.ordinal, cell.class])

/** Names of a report's cases in order: their own or their place, told apart where two have the same. */
export const caseNames = ({ cases }: Report): ReadonlyArray<string> => {
  const own = cases.map(({ name }, index) => name ?? unnamed(index))
  // What is made up must not be what another case is called.
  const taken = new Set(own)
  const seen = new Map<string, number>()
  return own.map((called) => {
    let before = seen.get(called) ?? 0
    let free = called
    if (before > 0) for (free = `${called} (${++before})`; taken.has(free); ) free = `${called} (${++before})`
    seen.set(called, Math.max(before, 1))
    taken.add(free)
    return free
  })
}

/** Every assertion in the report's order. */
export const cellsOf = (report: Report): ReadonlyArray<DecidedCell> => {
  const names = caseNames(report)
  return report.cases.flatMap(({ matches }, index) =>
    matches.flatMap(({ assertions, conversation }) =>
      assertions.map(({ class: kind, outcome, reason }, ordinal) => ({
        case: names[index]!,
        conversation,
        ordinal,
        class: kind,
        outcome,
        reason
      }))
    )
  )
}
