/** A report as Markdown (R-AILLY-30): pass rate, a table of cases and classes, and what did not pass, with reasons. */
import { caseNames, cellsOf, type DecidedCell } from "./Cells.ts"
import { atMost, interval, percent, plain, table } from "./Markdown.ts"
import { shareOf } from "./Repeats.ts"
import { type Metrics, type Report, sizeOf, type Tally } from "./Report.ts"

const mostRows = 500
const mostReasons = 200

const metricLines = (metrics: Metrics | undefined, conversations: number): ReadonlyArray<string> => {
  if (metrics === undefined) return []
  const each = (value: number) => (value / Math.max(1, metrics.conversations_with_trace)).toFixed(0)
  return [
    "## Cost and latency",
    "",
    table(
      ["", "total", "per conversation"],
      [
        ["input tokens", String(metrics.total_input_tokens), each(metrics.total_input_tokens)],
        ["output tokens", String(metrics.total_output_tokens), each(metrics.total_output_tokens)],
        ["from the cache", String(metrics.total_cache_hit_tokens), each(metrics.total_cache_hit_tokens)],
        ["latency (ms)", String(metrics.total_latency_ms), each(metrics.total_latency_ms)]
      ]
    ),
    "",
    `${metrics.conversations_with_trace} of ${conversations} conversations have figures.`,
    ""
  ]
}

const tallyCells = (tally: Tally): ReadonlyArray<string> =>
  [tally.passed, tally.failed, tally.deferred, tally.malformed, tally.errored].map(String)

/** `#0 fail · #2 pass`: each assertion of the class by its place in the case. */
const outcomesIn = (cells: ReadonlyArray<DecidedCell>): string =>
  cells.map(({ ordinal, outcome }) => `#${ordinal} ${outcome === "pass" ? "pass" : `**${outcome}**`}`).join(" · ")

const caseTable = (report: Report, cells: ReadonlyArray<DecidedCell>): string => {
  const classes = [...new Set(cells.map((one) => one.class))].sort()
  const rows = new Map<string, Array<DecidedCell>>()
  for (const cell of cells) {
    const key = JSON.stringify([cell.case, cell.conversation])
    const row = rows.get(key) ?? []
    row.push(cell)
    rows.set(key, row)
  }
  const { note, some } = atMost([...rows.values()], mostRows)
  const names = caseNames(report)
  const unmatched = report.cases.flatMap(({ matches }, index) => (matches.length === 0 ? [plain(names[index]!)] : []))
  const body = table(
    ["case", "conversation", ...classes.map(plain)],
    some.map((row) => [
      plain(row[0]!.case),
      plain(row[0]!.conversation),
      ...classes.map((kind) => outcomesIn(row.filter((one) => one.class === kind)))
    ])
  )
  return `${body}${note}${unmatched.length === 0 ? "" : `\n\nNo conversation matched: ${unmatched.join(", ")}.`}`
}

const reasons = (cells: ReadonlyArray<DecidedCell>): ReadonlyArray<string> => {
  const bad = cells.filter(({ outcome }) => outcome !== "pass")
  if (bad.length === 0) return []
  const { note, some } = atMost(bad, mostReasons)
  const lines = some.map(
    (one) =>
      `- **${one.outcome}** ${plain(one.case)} / ${plain(one.conversation)} #${one.ordinal} ${plain(one.class)}: ${plain(one.reason ?? "")}`
  )
  return ["## What did not pass", "", ...lines, `${note}`, ""]
}

export const markdown = (report: Report): string => {
  const cells = cellsOf(report)
  const share = shareOf(cells.map(({ outcome }) => outcome))
  const { assertions, conversations_matched } = report.totals
  const rate =
    share.tries === 0
      ? "Nothing was decided: **this is not a pass.**"
      : `**${percent(share.passes, share.tries)}** of ${share.tries} decided assertions passed (95 % interval ${interval(share.interval)}).`
  const classRows = Object.entries(report.per_class).map(([kind, tally]) => [plain(kind), ...tallyCells(tally)])
  return [
    `# ${plain(report.suite)} over ${plain(report.run_id)}`,
    "",
    `${report.timestamp === "" ? "" : `${plain(report.timestamp)}, `}${report.model === undefined ? "" : `model ${plain(report.model)}, `}${conversations_matched} conversations, ${sizeOf(assertions)} assertions.`,
    "",
    rate,
    "",
    "## Classes",
    "",
    table(
      ["class", "passed", "failed", "deferred", "malformed", "errored"],
      [...classRows, ["**all**", ...tallyCells(assertions)]]
    ),
    "",
    "## Cases",
    "",
    caseTable(report, cells),
    "",
    ...metricLines(report.metrics, conversations_matched),
    ...reasons(cells)
  ].join("\n")
}
