/**
 * `writ report ID [ID2]`: one report as Markdown, two compared, or several repeated runs taken together. Reads reports only:
 * no conversation is looked at.
 *
 * Program: `report(flags)` (the file is not `report.ts`: there is a `Report.ts`). Flags: arguments `ids` (one or more); `--project,-p DIR`, `--label-a TEXT`, `--label-b TEXT`, `--repeats` (the ids are
 * repeated runs), `--against ID` (repeatable: the ids are side a, these are side b), `--gate`, `--require-improvement`,
 * `--json`, `--quiet`. Exit code 3 where the gate is shut.
 */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { type Comparison, compare } from "../effects/eval/Comparison.ts"
import { comparisonMarkdown, repeatsMarkdown } from "../effects/eval/ComparisonMarkdown.ts"
import { problems } from "../effects/eval/Gate.ts"
import { percent } from "../effects/eval/Markdown.ts"
import * as Repeats from "../effects/eval/Repeats.ts"
import type { Report } from "../effects/eval/Report.ts"
import * as ReportFiles from "../effects/eval/ReportFiles.ts"
import { markdown } from "../effects/eval/ReportMarkdown.ts"
import { shown } from "../effects/RunDirectory.ts"
import { endWith, inJson, usage } from "./Ending.ts"
import { count, inline, jsonText } from "./Printable.ts"

export interface ReportFlags {
  /** Run ids, or paths of JSON reports. */
  readonly ids: ReadonlyArray<string>
  readonly against: ReadonlyArray<string>
  readonly project: string | undefined
  readonly labelA: string | undefined
  readonly labelB: string | undefined
  readonly repeats: boolean
  readonly gate: boolean
  readonly requireImprovement: boolean
  readonly json: boolean
  readonly quiet: boolean
}

/** The two sides of a comparison, or nothing where there is one side. */
interface Asked {
  readonly a: ReadonlyArray<string>
  readonly b: ReadonlyArray<string> | undefined
}

const askedOf = Effect.fnUntraced(function* (flags: ReportFlags) {
  const { against, gate, ids, repeats, requireImprovement } = flags
  if (ids.length === 0) return yield* usage("name a report: the id of an evaluated run, or its JSON file")
  const asked: Asked =
    against.length > 0
      ? { a: ids, b: against }
      : ids.length === 2 && !repeats
        ? { a: [ids[0]!], b: [ids[1]!] }
        : { a: ids, b: undefined }
  if (asked.b === undefined && ids.length > 2 && !repeats) {
    return yield* usage("more than two reports: --repeats takes them for repeated runs, --against names the other side")
  }
  if (asked.b === undefined && (gate || requireImprovement)) {
    return yield* usage("--gate: it stands between two sides; name a second report, or --against")
  }
  if (asked.b === undefined && (flags.labelA !== undefined || flags.labelB !== undefined)) {
    return yield* usage("--label-a, --label-b: they name the sides of a comparison")
  }
  return asked
})

const sideName = (reports: ReadonlyArray<Report>): string =>
  `${reports[0]!.run_id}${reports.length === 1 ? "" : `-x${reports.length}`}`

const asJson = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`

const one = Effect.fnUntraced(function* (flags: ReportFlags, project: string, report: Report) {
  const path = yield* ReportFiles.write(project, `${report.run_id}-report.md`, [markdown(report)])
  yield* Console.log(flags.json ? jsonText({ files: { markdown: shown(path) }, report }) : inline(shown(path)))
})

const repeated = Effect.fnUntraced(function* (flags: ReportFlags, project: string, reports: ReadonlyArray<Report>) {
  const suites = [...new Set(reports.map(({ suite }) => suite))]
  if (suites.length > 1)
    return yield* usage(`--repeats: repeated runs are of one suite, and these are of ${suites.join(", ")}`)
  const repeats = Repeats.of(reports)
  const name = `${reports[0]!.run_id}-x${reports.length}`
  const json = yield* ReportFiles.write(project, `${name}.repeats.json`, [asJson(repeats)])
  const text = yield* ReportFiles.write(project, `${name}-repeats.md`, [repeatsMarkdown(repeats)])
  if (flags.json) return yield* Console.log(jsonText({ files: { json: shown(json), markdown: shown(text) }, repeats }))
  if (!flags.quiet) {
    const { flaky, total } = repeats
    yield* Console.log(
      `${count(reports.length, "run")}: ${percent(total.passes, total.tries)} passed, ${count(flaky.length, "flaky assertion")}`
    )
    for (const { case: name, class: kind, conversation, ordinal, passes, tries } of flaky.slice(0, 20)) {
      yield* Console.log(`  flaky ${inline(`${conversation}, ${name} #${ordinal} ${kind}`)}: ${passes} of ${tries}`)
    }
  }
  yield* Console.log(inline(shown(text)))
})

const summaryOf = ({ improved, regressed, significance, unchanged_fail, unchanged_pass }: Comparison): string =>
  `${improved} improved, ${regressed} regressed, ${unchanged_pass} pass on both sides, ${unchanged_fail} fail on both; p = ${significance.conversations.p.toFixed(4)} by conversations`

const compared = Effect.fnUntraced(function* (
  flags: ReportFlags,
  project: string,
  a: ReadonlyArray<Report>,
  b: ReadonlyArray<Report>
) {
  const comparison = compare(a, b, { a: flags.labelA ?? sideName(a), b: flags.labelB ?? sideName(b) })
  if (comparison.pairs.length === 0 && comparison.undecided.length === 0) {
    return yield* usage(
      `${sideName(a)} and ${sideName(b)} have no assertion in common: are they of the same suite, over conversations of the same names?`
    )
  }
  const asked = flags.gate || flags.requireImprovement
  const { other_suites, suite } = comparison
  if (other_suites.length > 0 && !asked) {
    const named = [suite, ...other_suites].map(inline).join(", ")
    yield* Console.error(`writ: the reports are of different suites (${named}): one name may stand for two assertions`)
  }
  const shut = problems(comparison, { improvement: flags.requireImprovement })
  const name = `${sideName(a)}-vs-${sideName(b)}`
  const json = yield* ReportFiles.write(project, `${name}.json`, [asJson(comparison)])
  const text = yield* ReportFiles.write(project, `${name}.md`, [
    comparisonMarkdown(comparison, asked ? shut : undefined)
  ])
  const files = { json: shown(json), markdown: shown(text) }
  if (flags.json) {
    yield* Console.log(
      jsonText({ files, ...(asked ? { gate: { open: shut.length === 0, problems: shut } } : {}), comparison })
    )
  } else {
    if (!flags.quiet) yield* Console.log(summaryOf(comparison))
    for (const problem of asked ? shut : []) yield* Console.error(`writ: the gate is shut: ${inline(problem)}`)
    yield* Console.log(inline(files.markdown))
  }
  yield* endWith(asked && shut.length > 0 ? 3 : 0)
})

export const report = (flags: ReportFlags) =>
  Effect.gen(function* () {
    const project = flags.project ?? "."
    const asked = yield* askedOf(flags)
    const load = (ids: ReadonlyArray<string>) => Effect.forEach(ids, (id) => ReportFiles.load(project, id))
    const a = yield* load(asked.a)
    if (asked.b !== undefined) return yield* compared(flags, project, a, yield* load(asked.b))
    return yield* flags.repeats ? repeated(flags, project, a) : one(flags, project, a[0]!)
  }).pipe(
    Effect.catchTag("ReportError", ({ message }) => usage(message)),
    inJson(flags.json)
  )
