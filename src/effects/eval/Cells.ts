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
  const seen = new Map<string, number>()
  return cases.map(({ name }, index) => {
    const called = name ?? unnamed(index)
    const before = seen.get(called) ?? 0
    seen.set(called, before + 1)
    return before === 0 ? called : `${called} (${before + 1})`
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
