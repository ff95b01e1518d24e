/** `writ trace stats DIR`: all runs below a directory in numbers, as a table, as JSON, or as one line of CSV per run. */

import { readdirSync } from "node:fs"
import { join, relative } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { reasonOf } from "../actors/Directories.ts"
import { readFile } from "../effects/trace/TraceReader.ts"
import {
  type Percentiles,
  percentilesOf,
  RunCounter,
  type RunStats,
  type Stats,
  statsOf
} from "../effects/trace/TraceStats.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import { problemAt } from "./Places.ts"
import { count, duration, inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface StatsFlags {
  readonly directory: string
  readonly json: boolean
  readonly csv: boolean
  readonly color: boolean | undefined
}

/** Files that may be traces, in the order of their names. Links are not followed. */
const filesIn = (directory: string): Effect.Effect<ReadonlyArray<string>, UsageError> =>
  Effect.suspend(() => {
    try {
      const files = readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name.endsWith(".jsonl"))
        .map((entry) => join(entry.parentPath, entry.name))
      return Effect.succeed(files.sort())
    } catch (cause) {
      // Of numbers that are not of all runs nobody would know it.
      return usage(`${directory}: it cannot be read whole: ${reasonOf(cause)}`)
    }
  })

/** One run; `undefined` for a file without a single event, which is no trace. */
const statsIn = Effect.fnUntraced(function* (path: string, name: string) {
  const counter = new RunCounter()
  let events = 0
  yield* Stream.runForEach(readFile(path), (item) =>
    Effect.sync(() => {
      if (item._tag === "Unreadable") counter.unreadable += 1
      else {
        events += 1
        counter.see(item.record)
      }
    })
  )
  return events === 0 ? undefined : counter.end(name)
})

const collect = Effect.fnUntraced(function* (directory: string): Effect.fn.Return<ReadonlyArray<RunStats>, UsageError> {
  const problem = problemAt(directory, "Directory")
  if (problem !== undefined) return yield* usage(`${directory}: ${problem}`)
  const found = yield* Effect.forEach(yield* filesIn(directory), (path) =>
    statsIn(path, relative(directory, path))
  ).pipe(Effect.catchTag("TraceReadError", (error) => usage(error.message)))
  const runs = found.filter((run) => run !== undefined)
  return runs.length === 0 ? yield* usage(`there are no traces in ${directory}`) : runs
})

const counts = (all: Readonly<Record<string, number>>): string =>
  Object.entries(all)
    .sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
    .map(([name, n]) => `${inline(name)} ${n}`)
    .join(", ")

const latencyLine = (name: string, found: Percentiles | undefined): string =>
  found === undefined
    ? `${name.padEnd(7)} -`
    : `${name.padEnd(7)} ${[found.p50, found.p90, found.p99, found.max].map((millis) => duration(millis).padStart(12)).join("")}${String(found.count).padStart(8)}`

const human = (stats: Stats, paint: Screen.Paint): string => {
  const line = (name: string, value: string) => (value === "" ? [] : [`${paint.dim(name.padEnd(11))} ${value}`])
  const speed = stats.tokensPerSecond === undefined ? "" : `, ${stats.tokensPerSecond.toFixed(1)} tokens/s`
  return [
    ...line("runs", String(stats.runs)),
    ...line("outcomes", counts(stats.outcomes)),
    ...line("failed of", counts(stats.failedOf)),
    ...line("classes", counts(stats.classes)),
    ...line("tool errors", counts(stats.failures)),
    ...line("rejections", counts(stats.rejections)),
    ...line(
      "work",
      `${count(stats.turns, "turn")}, ${count(stats.calls, "call")}, ${count(stats.artifacts, "artifact")}`
    ),
    ...line("tokens", `${stats.prefillTokens} prefilled in turns, ${stats.outputTokens} written${speed}`),
    ...line("cost", stats.cost === undefined ? "no prices on record" : costOf(stats.cost)),
    "",
    paint.dim(
      `${"time".padEnd(7)} ${["p50", "p90", "p99", "max"].map((name) => name.padStart(12)).join("")}${"n".padStart(8)}`
    ),
    latencyLine("turn", stats.model),
    latencyLine("tool", stats.tools),
    latencyLine("run", stats.total)
  ].join("\n")
}

/** Sums of prices like 0.1 are not shown to the last digit. */
const costOf = (cost: number): string => `${Math.round(cost * 1e6) / 1e6} for calls that ran`

const millis = (found: Percentiles | undefined) => found ?? null

const documentOf = (directory: string, runs: ReadonlyArray<RunStats>, stats: Stats) => ({
  directory,
  runs: stats.runs,
  outcomes: stats.outcomes,
  failed_of: stats.failedOf,
  failure_classes: stats.classes,
  failure_kinds: stats.failures,
  rejection_kinds: stats.rejections,
  turns: stats.turns,
  tool_calls: stats.calls,
  artifacts: stats.artifacts,
  tokens: { prefill: stats.prefillTokens, output: stats.outputTokens, per_second: stats.tokensPerSecond ?? null },
  cost: stats.cost ?? null,
  latency_ms: { model: millis(stats.model), tool: millis(stats.tools), total: millis(stats.total) },
  each: runs.map((run) => ({
    file: run.file,
    run_id: run.runId,
    status: run.status.replaceAll(" ", "_"),
    status_detail: run.statusDetail,
    model: run.model ?? null,
    codec: run.codec ?? null,
    turns: run.turns,
    tool_calls: run.calls,
    rejected: run.rejected,
    artifacts: run.artifacts,
    prefill_tokens: run.prefillTokens,
    output_tokens: run.outputTokens,
    total_ms: run.totalMillis,
    model_ms: millis(percentilesOf(run.modelMillis)),
    tool_ms: millis(percentilesOf(run.toolMillis)),
    cost: run.cost ?? null,
    failure_classes: run.classes,
    failure_kinds: run.failures,
    rejection_kinds: run.rejections,
    unreadable: run.unreadable
  }))
})

/** A cell of RFC 4180. Text that a spreadsheet would compute is quoted by an apostrophe; what would act on a terminal is shown. */
const cell = (value: string | number): string => {
  if (typeof value === "number") return String(value)
  const text = inline(/^[=+\-@\t\r]/.test(value) ? `'${value}` : value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const cellOf = (all: Readonly<Record<string, number>>): string =>
  Object.entries(all)
    .map(([name, n]) => `${name}:${n}`)
    .join(" ")

const columns: ReadonlyArray<readonly [name: string, of: (run: RunStats) => string | number]> = [
  ["file", (run) => run.file],
  ["run_id", (run) => run.runId],
  ["status", (run) => run.status.replaceAll(" ", "_")],
  ["model", (run) => run.model ?? ""],
  ["codec", (run) => run.codec ?? ""],
  ["turns", (run) => run.turns],
  ["tool_calls", (run) => run.calls],
  ["rejected", (run) => run.rejected],
  ["artifacts", (run) => run.artifacts],
  ["prefill_tokens", (run) => run.prefillTokens],
  ["output_tokens", (run) => run.outputTokens],
  ["total_ms", (run) => run.totalMillis],
  ["model_p50_ms", (run) => percentilesOf(run.modelMillis)?.p50 ?? ""],
  ["model_p90_ms", (run) => percentilesOf(run.modelMillis)?.p90 ?? ""],
  ["model_p99_ms", (run) => percentilesOf(run.modelMillis)?.p99 ?? ""],
  ["model_max_ms", (run) => percentilesOf(run.modelMillis)?.max ?? ""],
  ["tool_p50_ms", (run) => percentilesOf(run.toolMillis)?.p50 ?? ""],
  ["tool_p90_ms", (run) => percentilesOf(run.toolMillis)?.p90 ?? ""],
  ["tool_p99_ms", (run) => percentilesOf(run.toolMillis)?.p99 ?? ""],
  ["tool_max_ms", (run) => percentilesOf(run.toolMillis)?.max ?? ""],
  ["cost", (run) => run.cost ?? ""],
  ["classes", (run) => cellOf(run.classes)],
  ["failures", (run) => cellOf(run.failures)],
  ["rejections", (run) => cellOf(run.rejections)],
  ["unreadable_lines", (run) => run.unreadable]
]

const csv = (runs: ReadonlyArray<RunStats>): string =>
  [columns.map(([name]) => name), ...runs.map((run) => columns.map(([, of]) => cell(of(run))))]
    .map((row) => row.join(","))
    .join("\r\n")

export const stats = (flags: StatsFlags) =>
  Effect.gen(function* () {
    if (flags.json && flags.csv) return yield* usage("--json or --csv, not both")
    const runs = yield* collect(flags.directory)
    if (flags.csv) return yield* Console.log(csv(runs))
    const all = statsOf(runs)
    if (flags.json) return yield* Console.log(jsonText(documentOf(flags.directory, runs, all)))
    return yield* Console.log(human(all, yield* Screen.paintFor(flags.color)))
  }).pipe(inJson(flags.json))
