/**
 * May this version go in? With one run a side: nothing regressed. With repeated runs a single bad try is noise: it is red where
 * an assertion that always passed never does now, or where conversations got worse beyond chance. What is no longer asserted, or
 * no longer decided, has not been shown to hold: that is red too. So are reports of different suites: they assert different things.
 */
import type { Cell } from "./Cells.ts"
import type { Comparison } from "./Comparison.ts"

export interface GateOptions {
  /** Something has to be better, too. */
  readonly improvement?: boolean
  /** How unlikely a worsening by chance has to be, 0.05 unless given. For repeated runs. */
  readonly alpha?: number
}

const named = (cells: ReadonlyArray<Cell>): string => {
  const shown = cells.slice(0, 5).map((one) => `${one.case}/${one.conversation} #${one.ordinal} ${one.class}`)
  return `${shown.join(", ")}${cells.length > 5 ? `, and ${cells.length - 5} more` : ""}`
}

/** Why it may not; empty where it may. */
export const problems = (
  comparison: Comparison,
  { alpha = 0.05, improvement = false }: GateOptions = {}
): ReadonlyArray<string> => {
  const { a, b, improved, no_longer_decided, only_in_a, other_suites, pairs, significance, suite } = comparison
  const single = a.run_ids.length === 1 && b.run_ids.length === 1
  const fallen = pairs.filter((pair) =>
    single ? pair.change === "regressed" : pair.a.passes === pair.a.tries && pair.b.passes === 0
  )
  const { better, p, worse } = significance.conversations
  return [
    ...(other_suites.length > 0 ? [`the reports are of different suites: ${[suite, ...other_suites].join(", ")}`] : []),
    ...(fallen.length > 0 ? [`${single ? "regressed" : "always passed before, never now"}: ${named(fallen)}`] : []),
    ...(!single && worse > better && p < alpha
      ? [`${worse} conversations are worse and ${better} better (p = ${p.toPrecision(2)})`]
      : []),
    ...(only_in_a.length > 0 ? [`no longer asserted: ${named(only_in_a)}`] : []),
    ...(no_longer_decided.length > 0 ? [`no longer decided: ${named(no_longer_decided)}`] : []),
    ...(improvement && improved === 0 ? ["nothing improved"] : [])
  ]
}
