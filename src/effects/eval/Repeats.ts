/** Several reports of the same suite over repeated runs: shares with their intervals, and what does not come out the same. */
import { type Cell, cellsOf, keyOf } from "./Cells.ts"
import { type Metrics, type Report, sizeOf } from "./Report.ts"
import { type Interval, wilson } from "./Statistics.ts"
import type { Outcome } from "./Verdict.ts"

/** Passes among decided assertions. Deferred ones were not tried. */
export interface Share {
  readonly passes: number
  readonly tries: number
  /** Absent where nothing was tried. */
  readonly interval?: Interval
}

export interface RepeatedCell extends Cell, Share {
  /** One per run that has the assertion, in the order of the runs. */
  readonly outcomes: ReadonlyArray<Outcome>
}

export interface RepeatedRun extends Share {
  readonly run_id: string
  readonly model: string | undefined
  readonly conversations: number
  readonly assertions: number
  readonly metrics: Metrics | undefined
}

export interface Repeats {
  readonly suite: string
  readonly runs: ReadonlyArray<RepeatedRun>
  readonly total: Share
  readonly per_class: Readonly<Record<string, Share>>
  readonly cells: ReadonlyArray<RepeatedCell>
  /** Those that passed in some runs and not in others. */
  readonly flaky: ReadonlyArray<RepeatedCell>
}

export const shareOf = (found: ReadonlyArray<Outcome>): Share => {
  const tries = found.filter((outcome) => outcome !== "deferred").length
  const passes = found.filter((outcome) => outcome === "pass").length
  const interval = wilson(passes, tries)
  return { passes, tries, ...(interval === undefined ? {} : { interval }) }
}

const runOf = (report: Report): RepeatedRun => ({
  run_id: report.run_id,
  model: report.model,
  conversations: report.totals.conversations_matched,
  assertions: sizeOf(report.totals.assertions),
  metrics: report.metrics,
  ...shareOf(cellsOf(report).map(({ outcome }) => outcome))
})

/** Every assertion that some run has, in the order of the first that has it. */
export const cellsAcross = (reports: ReadonlyArray<Report>): ReadonlyArray<RepeatedCell> => {
  const found = new Map<string, { readonly cell: Cell; readonly outcomes: Array<Outcome> }>()
  for (const report of reports) {
    for (const { outcome, reason: _, ...cell } of cellsOf(report)) {
      const key = keyOf(cell)
      const one = found.get(key) ?? { cell, outcomes: [] }
      one.outcomes.push(outcome)
      found.set(key, one)
    }
  }
  return [...found.values()].map(({ cell, outcomes }) => ({ ...cell, outcomes, ...shareOf(outcomes) }))
}

/** @param reports at least one */
export const of = (reports: ReadonlyArray<Report>): Repeats => {
  const cells = cellsAcross(reports)
  const classes = [...new Set(cells.map((one) => one.class))].sort()
  const outcomesOf = (some: ReadonlyArray<RepeatedCell>) => some.flatMap(({ outcomes }) => outcomes)
  return {
    suite: reports[0]!.suite,
    runs: reports.map(runOf),
    total: shareOf(outcomesOf(cells)),
    per_class: Object.fromEntries(
      classes.map((kind) => [kind, shareOf(outcomesOf(cells.filter((one) => one.class === kind)))])
    ),
    cells,
    flaky: cells.filter(({ passes, tries }) => passes > 0 && passes < tries)
  }
}
