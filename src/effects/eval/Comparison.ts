/**
 * Two sides compared assertion by assertion (R-AILLY-30): one report each, or several of repeated runs. What only one side has,
 * or one side deferred, is named and not counted. Whether a difference means anything is asked of conversations, since the
 * assertions about one conversation stand and fall together.
 */
import { type Cell, keyOf } from "./Cells.ts"
import { cellsAcross, type RepeatedCell } from "./Repeats.ts"
import { type Metrics, type Report, sizeOf, sumOfMetrics } from "./Report.ts"
import { signTest } from "./Statistics.ts"

export type Change = "improved" | "regressed" | "unchanged_pass" | "unchanged_fail"

export interface Side {
  readonly label: string
  readonly run_ids: ReadonlyArray<string>
  readonly models: ReadonlyArray<string>
  readonly conversations: number
  readonly assertions: number
  readonly metrics: Metrics | undefined
}

export interface Pair extends Cell {
  readonly a: { readonly passes: number; readonly tries: number }
  readonly b: { readonly passes: number; readonly tries: number }
  readonly change: Change
}

export interface Comparison {
  readonly suite: string
  /** Whatever else reports of either side call their suite: then one name may stand for different assertions. */
  readonly other_suites: ReadonlyArray<string>
  readonly a: Side
  readonly b: Side
  readonly improved: number
  readonly regressed: number
  readonly unchanged_pass: number
  readonly unchanged_fail: number
  /** Something improved and nothing regressed. */
  readonly gate: boolean
  readonly significance: {
    readonly test: "exact sign test (McNemar), two-sided"
    readonly assertions: { readonly better: number; readonly worse: number; readonly p: number }
    readonly conversations: {
      readonly better: number
      readonly worse: number
      readonly equal: number
      readonly p: number
    }
  }
  readonly pairs: ReadonlyArray<Pair>
  readonly only_in_a: ReadonlyArray<Cell>
  readonly only_in_b: ReadonlyArray<Cell>
  /** Decided in a, and not in b. */
  readonly no_longer_decided: ReadonlyArray<Cell>
  /** Not decided in a. */
  readonly undecided: ReadonlyArray<Cell>
}

const changeOf = (a: RepeatedCell, b: RepeatedCell): Change => {
  // Cross-multiplied: shares of different numbers of runs compare without rounding.
  const difference = b.passes * a.tries - a.passes * b.tries
  if (difference !== 0) return difference > 0 ? "improved" : "regressed"
  return a.passes === a.tries ? "unchanged_pass" : "unchanged_fail"
}

const bare = ({ case: name, class: kind, conversation, ordinal }: Cell): Cell => ({
  case: name,
  conversation,
  ordinal,
  class: kind
})

const sideOf = (reports: ReadonlyArray<Report>, label: string): Side => ({
  label,
  run_ids: reports.map(({ run_id }) => run_id),
  models: [...new Set(reports.flatMap(({ model }) => model ?? []))],
  conversations: reports.reduce((all, { totals }) => all + totals.conversations_matched, 0),
  assertions: reports.reduce((all, { totals }) => all + sizeOf(totals.assertions), 0),
  metrics: sumOfMetrics(reports.flatMap(({ metrics }) => metrics ?? []))
})

/** Conversations by the share of their paired assertions that passed. */
const byConversation = (pairs: ReadonlyArray<Pair>) => {
  const differences = new Map<string, number>()
  for (const { a, b, conversation } of pairs) {
    const difference = b.passes / b.tries - a.passes / a.tries
    differences.set(conversation, (differences.get(conversation) ?? 0) + difference)
  }
  // Sums of shares are not exact; a difference of a single run is far above this.
  const signs = [...differences.values()].map((one) => (Math.abs(one) < 1e-9 ? 0 : Math.sign(one)))
  const count = (sign: number) => signs.filter((one) => one === sign).length
  return { better: count(1), worse: count(-1), equal: count(0), p: signTest(count(1), count(-1)) }
}

export interface Labels {
  readonly a?: string | undefined
  readonly b?: string | undefined
}

/** @param a at least one report, as `b` */
export const compare = (a: ReadonlyArray<Report>, b: ReadonlyArray<Report>, labels: Labels = {}): Comparison => {
  const [left, right] = [a, b].map((reports) => new Map(cellsAcross(reports).map((cell) => [keyOf(cell), cell])))
  const pairs: Array<Pair> = []
  const [undecided, lost]: [Array<Cell>, Array<Cell>] = [[], []]
  for (const [key, one] of left!) {
    const other = right!.get(key)
    if (other === undefined) continue
    if (one.tries === 0) undecided.push(bare(one))
    else if (other.tries === 0) lost.push(bare(one))
    else {
      const share = ({ passes, tries }: RepeatedCell) => ({ passes, tries })
      pairs.push({ ...bare(one), a: share(one), b: share(other), change: changeOf(one, other) })
    }
  }
  const count = (change: Change) => pairs.filter((pair) => pair.change === change).length
  const [improved, regressed] = [count("improved"), count("regressed")]
  return {
    suite: a[0]!.suite,
    other_suites: [...new Set([...a, ...b].map(({ suite }) => suite))].slice(1),
    a: sideOf(a, labels.a ?? "a"),
    b: sideOf(b, labels.b ?? "b"),
    improved,
    regressed,
    unchanged_pass: count("unchanged_pass"),
    unchanged_fail: count("unchanged_fail"),
    gate: improved > 0 && regressed === 0,
    significance: {
      test: "exact sign test (McNemar), two-sided",
      assertions: { better: improved, worse: regressed, p: signTest(improved, regressed) },
      conversations: byConversation(pairs)
    },
    pairs,
    only_in_a: [...left!.values()].filter((one) => !right!.has(keyOf(one))).map(bare),
    only_in_b: [...right!.values()].filter((one) => !left!.has(keyOf(one))).map(bare),
    no_longer_decided: lost,
    undecided
  }
}
