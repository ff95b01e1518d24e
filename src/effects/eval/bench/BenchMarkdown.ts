/** A matrix as Markdown: one row per contestant and policy, each share with its interval, what it cost, and how rows differ. */
import { atMost, chance, interval, percent, plain, table } from "../Markdown.ts"
import type { Share } from "../Repeats.ts"
import type { BenchReport, Row } from "./BenchReport.ts"

const mostRows = 200

/** `8/10 (49–94 %)` */
const share = (found: Share | undefined): string =>
  found === undefined || found.tries === 0 ? "–" : `${found.passes}/${found.tries} (${interval(found.interval)})`

const each = (total: number, row: Row): string =>
  row.metrics === undefined ? "–" : (total / Math.max(1, row.metrics.conversations_with_trace)).toFixed(0)

const cost = (row: Row): ReadonlyArray<string> => {
  const { total_input_tokens = 0, total_latency_ms = 0, total_output_tokens = 0 } = row.metrics ?? {}
  return [each(total_input_tokens, row), each(total_output_tokens, row), each(total_latency_ms, row)]
}

const matrixTable = ({ columns, rows }: BenchReport): string =>
  table(
    [
      "model",
      "policy",
      "passed",
      "95 % interval",
      ...columns.map(plain),
      "input tokens",
      "output tokens",
      "latency (ms)",
      "flaky",
      "not done"
    ],
    rows.map((row) => [
      plain(row.contestant),
      plain(row.policy),
      percent(row.total.passes, row.total.tries),
      interval(row.total.interval),
      ...columns.map((column) => share(row.columns[column])),
      ...cost(row),
      String(row.flaky.length),
      String(row.cells.not_done)
    ])
  )

const versusLines = ({ versus }: BenchReport): ReadonlyArray<string> => {
  if (versus.length === 0) return []
  const rows = versus.map((one) => [
    `${plain(one.b)} against ${plain(one.a)}`,
    String(one.improved),
    String(one.regressed),
    chance(one.p)
  ])
  return ["## Against the first row", "", table(["", "better", "worse", "p"], rows), ""]
}

const stopLines = ({ rows }: BenchReport): ReadonlyArray<string> => [
  "## How the runs ended",
  "",
  table(
    ["model", "policy", "runs", "from before", "ended"],
    rows.map(({ cells, contestant, policy, stops }) => [
      plain(contestant),
      plain(policy),
      String(cells.done),
      String(cells.cached),
      Object.entries(stops)
        .map(([stop, count]) => `${plain(stop)} ${count}`)
        .join(", ")
    ])
  ),
  ""
]

const flakyLines = ({ rows }: BenchReport): ReadonlyArray<string> => {
  const all = rows.flatMap((row) => row.flaky.map((cell) => ({ row, cell })))
  if (all.length === 0) return []
  const { note, some } = atMost(all, mostRows)
  const lines = some.map(
    ({ cell, row }) =>
      `- ${plain(row.contestant)}, ${plain(row.policy)}: ${plain(cell.case)} / ${plain(cell.conversation)} #${cell.ordinal} ${plain(cell.class)}: ${cell.passes} of ${cell.tries}`
  )
  return ["## Flaky", "", `${lines.join("\n")}${note}`, ""]
}

const notDoneLines = ({ not_done }: BenchReport): ReadonlyArray<string> => {
  if (not_done.length === 0) return []
  const { note, some } = atMost(not_done, mostRows)
  return [
    "## Not done",
    "",
    `${some.map((one) => `- ${plain(one.cell)}: ${plain(one.message)}`).join("\n")}${note}`,
    ""
  ]
}

export const benchMarkdown = (bench: BenchReport): string => {
  const { id, repeats, rows, seed, suite, timestamp } = bench
  return [
    `# ${plain(suite)}: ${plain(id)}`,
    "",
    `${timestamp === "" ? "" : `${plain(timestamp)}, `}${repeats} ${repeats === 1 ? "run" : "runs"} of each, seeds from ${seed}. Tokens and latency are per conversation.`,
    "",
    matrixTable(bench),
    "",
    ...versusLines(bench),
    ...flakyLines(bench),
    ...notDoneLines(bench),
    ...stopLines(bench),
    `Reports of each row: ${rows.flatMap(({ reports }) => reports.map(plain)).join(", ")}.`,
    ""
  ].join("\n")
}
