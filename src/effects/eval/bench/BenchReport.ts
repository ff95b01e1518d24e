/**
 * What a matrix came to: a report per contestant, policy and repeat (as `writ eval` writes them), a row per contestant and policy with
 * shares, intervals, cost and latency, and each row against the first. Computes; writes nothing.
 */
import { compare } from "../Comparison.ts"
import type { Evaluated } from "../Evaluation.ts"
import * as Repeats from "../Repeats.ts"
import * as Report from "../Report.ts"
import type { Suite } from "../Suite.ts"
import type { CellOutcome } from "./Bench.ts"
import type { Cell } from "./Cell.ts"

type Done = Extract<CellOutcome, { readonly _tag: "Done" }>

export interface Row {
  readonly contestant: string
  readonly policy: string
  /** Ids of its reports, one per repeat. */
  readonly reports: ReadonlyArray<string>
  readonly total: Repeats.Share
  /** By column; one that has nothing is absent. */
  readonly columns: Readonly<Record<string, Repeats.Share>>
  /** Sums over all conversations; absent where no turn has a trace. */
  readonly metrics?: Report.Metrics
  readonly cells: { readonly done: number; readonly cached: number; readonly not_done: number }
  /** How the runs stopped, and how many so. */
  readonly stops: Readonly<Record<string, number>>
  /** Assertions that passed in some repeats and not in others. */
  readonly flaky: ReadonlyArray<Repeats.RepeatedCell>
}

export interface Versus {
  readonly a: string
  readonly b: string
  readonly improved: number
  readonly regressed: number
  /** Of conversations: the assertions about one stand and fall together. */
  readonly p: number
}

export interface BenchReport {
  readonly id: string
  readonly suite: string
  /** ISO 8601, UTC. */
  readonly timestamp: string
  readonly repeats: number
  readonly seed: number
  /** Names of prompts, or of their groups where there are many. */
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Row>
  readonly versus: ReadonlyArray<Versus>
  readonly not_done: ReadonlyArray<{ readonly cell: string; readonly message: string }>
}

export interface Named {
  readonly id: string
  readonly timestamp: string
  readonly seed: number
  readonly repeats: number
}

/** More columns than this are nothing to look at. */
const mostColumns = 12

const columnOf = (cells: ReadonlyArray<Cell>): ((cell: Cell) => string) => {
  const labels = new Set(cells.map(({ prompt }) => prompt.label))
  return labels.size <= mostColumns ? ({ prompt }) => prompt.label : ({ prompt }) => prompt.group
}

const rowName = ({ contestant, policy }: Cell): string => JSON.stringify([contestant.name, policy.name])

/** A part of a file's name. */
const slug = (text: string): string => text.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+/, "") || "x"

const evaluatedOf = (suite: Suite, outcomes: ReadonlyArray<Done>): Evaluated => {
  const byCase = new Map<number, Array<Evaluated["cases"][number]["matches"][number]>>()
  for (const { cell, verdicts } of outcomes) {
    for (const { assertions, index } of verdicts.cases) {
      const matches = byCase.get(index) ?? []
      matches.push({
        conversation: cell.prompt.label,
        assertions: assertions.map(({ class: kind, outcome, reason }) => ({
          class: kind,
          verdict: { outcome, ...(reason === undefined ? {} : { reason }) }
        }))
      })
      byCase.set(index, matches)
    }
  }
  return {
    suite: suite.name,
    cases: suite.cases.map(({ name }, index) => ({ name, matches: byCase.get(index) ?? [] })),
    conversations: outcomes
      .filter(({ verdicts }) => verdicts.cases.length > 0)
      .map(({ cell, done }) => ({ name: cell.prompt.label, conversation: done.conversation }))
  }
}

const outcomesIn = (some: ReadonlyArray<Done>) =>
  some.flatMap(({ verdicts }) => verdicts.cases.flatMap(({ assertions }) => assertions.map(({ outcome }) => outcome)))

const countOf = (words: ReadonlyArray<string>): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const word of words.toSorted()) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

const sum = (reports: ReadonlyArray<Report.Report>): Report.Metrics | undefined =>
  Report.sumOfMetrics(reports.flatMap(({ metrics }) => metrics ?? []))

const sharesOf = (done: ReadonlyArray<Done>, columnFor: (cell: Cell) => string): Row["columns"] => {
  const columns = new Map<string, Array<Done>>()
  for (const one of done) {
    const column = columns.get(columnFor(one.cell)) ?? []
    column.push(one)
    columns.set(columnFor(one.cell), column)
  }
  return Object.fromEntries([...columns].map(([column, some]) => [column, Repeats.shareOf(outcomesIn(some))]))
}

const isDone = (outcome: CellOutcome): outcome is Done => outcome._tag === "Done"

interface Made {
  readonly row: Row
  readonly reports: ReadonlyArray<Report.Report>
}

const rowOf = (
  all: ReadonlyArray<CellOutcome>,
  suite: Suite,
  { id, repeats, timestamp }: Named,
  columnFor: (cell: Cell) => string
): Made => {
  const { contestant, policy } = all[0]!.cell
  const done = all.filter(isDone)
  const reports = Array.from({ length: repeats }, (_, repeat) => {
    const some = done.filter(({ cell }) => cell.repeat === repeat)
    const name = `${id}.${slug(contestant.name)}.${slug(policy.name)}.${repeat + 1}`
    return { ...Report.of(evaluatedOf(suite, some), name, timestamp), model: contestant.name }
  })
  const metrics = sum(reports)
  const row: Row = {
    contestant: contestant.name,
    policy: policy.name,
    reports: reports.map(({ run_id }) => run_id),
    total: Repeats.shareOf(outcomesIn(done)),
    columns: sharesOf(done, columnFor),
    ...(metrics === undefined ? {} : { metrics }),
    cells: {
      done: done.length,
      cached: done.filter(({ cached }) => cached).length,
      not_done: all.length - done.length
    },
    stops: countOf(done.map(({ done: { ran } }) => ran.stop)),
    flaky: repeats > 1 ? Repeats.of(reports).flaky : []
  }
  return { row, reports }
}

const called = ({ contestant, policy }: Row): string => `${contestant}, ${policy}`

/** @param outcomes at least one, in the order of the cells */
export const of = (
  outcomes: ReadonlyArray<CellOutcome>,
  suite: Suite,
  named: Named
): { readonly bench: BenchReport; readonly reports: ReadonlyArray<Report.Report> } => {
  const cells = outcomes.map(({ cell }) => cell)
  const columnFor = columnOf(cells)
  const rows = new Map<string, Array<CellOutcome>>()
  for (const outcome of outcomes) {
    const row = rows.get(rowName(outcome.cell)) ?? []
    row.push(outcome)
    rows.set(rowName(outcome.cell), row)
  }
  const made = [...rows.values()].map((all) => rowOf(all, suite, named, columnFor))
  const [first, ...others] = made
  return {
    reports: made.flatMap(({ reports }) => reports),
    bench: {
      id: named.id,
      suite: suite.name,
      timestamp: named.timestamp,
      repeats: named.repeats,
      seed: named.seed,
      columns: [...new Set(cells.map(columnFor))],
      rows: made.map(({ row }) => row),
      versus: others.map(({ reports, row }) => {
        const { improved, regressed, significance } = compare(first!.reports, reports)
        return { a: called(first!.row), b: called(row), improved, regressed, p: significance.conversations.p }
      }),
      not_done: outcomes.flatMap((outcome) =>
        isDone(outcome) ? [] : [{ cell: cellName(outcome.cell), message: outcome.message }]
      )
    }
  }
}

/** `tiny, default, sum (2)` */
export const cellName = ({ contestant, policy, prompt, repeat }: Cell): string =>
  `${contestant.name}, ${policy.name}, ${prompt.label} (${repeat + 1})`
