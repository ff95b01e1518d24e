/** A comparison, or a set of repeated runs, as Markdown. */
import type { Cell } from "./Cells.ts"
import type { Comparison, Pair, Side } from "./Comparison.ts"
import { atMost, chance, interval, percent, plain, table } from "./Markdown.ts"
import type { Repeats, Share } from "./Repeats.ts"
import type { Metrics } from "./Report.ts"

const mostRows = 500

const name = (cell: Cell): string =>
  `${plain(cell.case)} / ${plain(cell.conversation)} #${cell.ordinal} ${plain(cell.class)}`

const cost = (metrics: Metrics | undefined): ReadonlyArray<string> =>
  metrics === undefined
    ? ["–", "–", "–"]
    : [String(metrics.total_input_tokens), String(metrics.total_output_tokens), String(metrics.total_latency_ms)]

const sideRow = ({ assertions, conversations, label, metrics, models, run_ids }: Side): ReadonlyArray<string> => [
  plain(label),
  run_ids.map(plain).join("<br>"),
  models.map(plain).join(", "),
  String(conversations),
  String(assertions),
  ...cost(metrics)
]

const pairRows = (pairs: ReadonlyArray<Pair>): ReadonlyArray<ReadonlyArray<string>> =>
  pairs.map((pair) => [name(pair), `${pair.a.passes}/${pair.a.tries}`, `${pair.b.passes}/${pair.b.tries}`])

const section = (title: string, pairs: ReadonlyArray<Pair>, { a, b }: Comparison): ReadonlyArray<string> => {
  if (pairs.length === 0) return []
  const { note, some } = atMost(pairs, mostRows)
  return [`## ${title}`, "", `${table(["assertion", plain(a.label), plain(b.label)], pairRows(some))}${note}`, ""]
}

const cells = (title: string, all: ReadonlyArray<Cell>): ReadonlyArray<string> => {
  if (all.length === 0) return []
  const { note, some } = atMost(all, mostRows)
  return [`## ${title}`, "", `${some.map((one) => `- ${name(one)}`).join("\n")}${note}`, ""]
}

export const comparisonMarkdown = (comparison: Comparison, gate: ReadonlyArray<string> | undefined): string => {
  const { a, b, improved, pairs, regressed, significance, unchanged_fail, unchanged_pass } = comparison
  const { assertions, conversations, test } = significance
  const suites = [comparison.suite, ...comparison.other_suites]
  const of = (change: Pair["change"]) => pairs.filter((pair) => pair.change === change)
  return [
    `# ${plain(comparison.suite)}: ${plain(a.label)} against ${plain(b.label)}`,
    "",
    ...(suites.length > 1
      ? [
          `The reports are of different suites (${plain(suites.join(", "))}): one name may stand for two assertions.`,
          ""
        ]
      : []),
    table(
      ["", "runs", "model", "conversations", "assertions", "input tokens", "output tokens", "latency (ms)"],
      [sideRow(a), sideRow(b)]
    ),
    "",
    table(
      ["improved", "regressed", "unchanged pass", "unchanged fail"],
      [[improved, regressed, unchanged_pass, unchanged_fail].map(String)]
    ),
    "",
    `Better in ${conversations.better} conversations, worse in ${conversations.worse}, equal in ${conversations.equal}: p = ${chance(conversations.p)} (${test}). By assertions, which depend on each other: p = ${chance(assertions.p)}.`,
    "",
    ...(gate === undefined
      ? []
      : [
          gate.length === 0
            ? "Gate: **open**."
            : `Gate: **shut**.\n\n${gate.map((one) => `- ${plain(one)}`).join("\n")}`,
          ""
        ]),
    ...section("Regressed", of("regressed"), comparison),
    ...section("Improved", of("improved"), comparison),
    ...section("Failing on both sides", of("unchanged_fail"), comparison),
    ...cells(`Only in ${plain(a.label)}`, comparison.only_in_a),
    ...cells(`Only in ${plain(b.label)}`, comparison.only_in_b),
    ...cells(`Not decided in ${plain(b.label)}`, comparison.no_longer_decided),
    ...cells(`Not decided in ${plain(a.label)}`, comparison.undecided)
  ].join("\n")
}

const shareCells = (share: Share): ReadonlyArray<string> => [
  `${share.passes}/${share.tries}`,
  percent(share.passes, share.tries),
  interval(share.interval)
]

export const repeatsMarkdown = ({ cells: all, flaky, per_class, runs, suite, total }: Repeats): string => {
  const worst = all.filter(({ passes, tries }) => tries > 0 && passes === 0)
  const list = (title: string, some: typeof all): ReadonlyArray<string> => {
    if (some.length === 0) return [`## ${title}`, "", "None.", ""]
    const { note, some: shown } = atMost(some, mostRows)
    const rows = shown.map((one) => [name(one), ...shareCells(one), one.outcomes.join(", ")])
    return [
      `## ${title}`,
      "",
      `${table(["assertion", "passed", "share", "95 % interval", "outcomes"], rows)}${note}`,
      ""
    ]
  }
  return [
    `# ${plain(suite)}: ${runs.length} runs`,
    "",
    table(
      [
        "run",
        "model",
        "conversations",
        "passed",
        "share",
        "95 % interval",
        "input tokens",
        "output tokens",
        "latency (ms)"
      ],
      runs.map((run) => [
        plain(run.run_id),
        plain(run.model ?? ""),
        String(run.conversations),
        ...shareCells(run),
        ...cost(run.metrics)
      ])
    ),
    "",
    "## Classes",
    "",
    table(
      ["class", "passed", "share", "95 % interval"],
      [
        ...Object.entries(per_class).map(([kind, share]) => [plain(kind), ...shareCells(share)]),
        ["**all**", ...shareCells(total)]
      ]
    ),
    "",
    "Intervals are Wilson's. They take every try for independent, which assertions about one conversation are not: for a decision compare two sides.",
    "",
    ...list("Flaky: passed in some runs and not in others", flaky),
    ...list("Never passed", worst)
  ].join("\n")
}
