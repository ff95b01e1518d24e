/**
 * `writ eval SUITE --over PATH`: what a suite asserts, over conversations that are there. Writes the report in every form and
 * prints where it is. Runs no conversation.
 *
 * Program: `evaluate(flags)`. Flags: argument `suite`; `--over PATH` (repeatable, at least one), `--project,-p DIR`, `--strict`, `--id ID`,
 * `--judge-model FILE|hf:…`, `--judge-codec NAME`, `--judge-script FILE`, `--embedding-model FILE|hf:…|tiny`, `--no-html` (boolean
 * `html`, default on),
 * `--concurrency N`, `--json`, `--quiet`, `--color`. Exit code 3 where a verdict says no.
 */
import { join, resolve } from "node:path"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { repeatsMarkdown } from "../effects/eval/ComparisonMarkdown.ts"
import * as Evaluation from "../effects/eval/Evaluation.ts"
import { junit } from "../effects/eval/JUnit.ts"
import type { Around } from "../effects/eval/Kind.ts"
import * as Project from "../effects/eval/Project.ts"
import { page } from "../effects/eval/page/Page.ts"
import * as Repeats from "../effects/eval/Repeats.ts"
import * as Report from "../effects/eval/Report.ts"
import * as ReportFiles from "../effects/eval/ReportFiles.ts"
import { markdown } from "../effects/eval/ReportMarkdown.ts"
import * as Suite from "../effects/eval/Suite.ts"
import { shown } from "../effects/RunDirectory.ts"
import { endWith, inJson, usage } from "./Ending.ts"
import * as EvalEngines from "./EvalEngines.ts"
import { problemAt } from "./Places.ts"
import { count, cut, inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface EvalFlags extends EvalEngines.EngineFlags {
  readonly suite: string
  /** Files or directories of conversations, or ids of runs; each gets a report of its own. */
  readonly over: ReadonlyArray<string>
  readonly project: string | undefined
  /** What is deferred, or a `when` that matches nothing, is a no as well. */
  readonly strict: boolean
  /** What the report is called instead of the run. */
  readonly id: string | undefined
  readonly html: boolean
  readonly concurrency: number | undefined
  readonly json: boolean
  readonly quiet: boolean
  readonly color: boolean | undefined
}

interface Files {
  readonly report: string
  readonly markdown: string
  readonly junit: string
  readonly html?: string
}

interface Done {
  readonly over: Project.Over
  readonly evaluated: Evaluation.Evaluated
  readonly report: Report.Report
  readonly files: Files
  readonly red: boolean
}

const safeId = /^[A-Za-z0-9][A-Za-z0-9._-]*$/

const idsOf = Effect.fnUntraced(function* (flags: EvalFlags, overs: ReadonlyArray<Project.Over>) {
  if (flags.id !== undefined && overs.length > 1) return yield* usage("--id names one report; give --over once with it")
  const ids = overs.map(({ runId }) => flags.id ?? runId)
  const bad = ids.find((id) => !safeId.test(id))
  if (bad !== undefined) return yield* usage(`a report cannot be called ${bad}: choose a name with --id`)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  return twice === undefined
    ? ids
    : yield* usage(`--over: two of them are called ${twice}, and so would be their reports`)
})

/** A report has the name of its run, so one of another suite over the same run has it too. */
const warnOfOther = Effect.fnUntraced(function* (project: string, id: string, suite: string) {
  if (problemAt(join(ReportFiles.reportsIn(project), `${id}.json`), "File") !== undefined) return
  const before = yield* Effect.result(ReportFiles.load(project, id))
  if (before._tag === "Success" && before.success.suite !== suite) {
    yield* Console.error(
      `writ: the report ${id} was of the suite ${inline(before.success.suite)}; it is replaced (keep both with --id)`
    )
  }
})

const writeAll = Effect.fnUntraced(function* (
  project: string,
  report: Report.Report,
  evaluated: Evaluation.Evaluated,
  html: boolean
): Effect.fn.Return<Files, ReportFiles.ReportError> {
  const id = report.run_id
  return {
    report: yield* ReportFiles.write(project, `${id}.json`, [Report.emit(report)]),
    markdown: yield* ReportFiles.write(project, `${id}-report.md`, [markdown(report)]),
    junit: yield* ReportFiles.write(project, `${id}-junit.xml`, [junit(report)]),
    ...(html ? { html: yield* ReportFiles.write(project, `${id}.html`, page(report, evaluated)) } : {})
  }
})

const warnings = (suite: Suite.Suite, { cases }: Evaluation.Evaluated): ReadonlyArray<string> =>
  cases.flatMap(({ name, unmatched }, index) =>
    unmatched === undefined ? [] : [`case ${name ?? Suite.unnamed(index)} of ${suite.name}: ${unmatched}`]
  )

const evaluateOne = Effect.fnUntraced(function* (
  flags: EvalFlags,
  project: string,
  suite: Suite.Suite,
  over: Project.Over,
  id: string,
  around: Omit<Around, "judges">,
  progress: (text: string) => void
) {
  const judges = ReportFiles.judgesIn(project, id)
  // A script of judge's replies is played in order, so conversations have to come in order too.
  const concurrency = flags.judgeScript === undefined ? (flags.concurrency ?? 4) : 1
  const evaluated = yield* Evaluation.evaluate(
    suite,
    over.conversations,
    { ...around, judges },
    {
      concurrency,
      onProgress: (done, total) => progress(`${id}: ${done} of ${total} conversations …`)
    }
  )
  const report = Report.of(evaluated, id, DateTime.formatIso(yield* DateTime.now))
  yield* warnOfOther(project, id, suite.name)
  const files = yield* writeAll(project, report, evaluated, flags.html)
  const open = warnings(suite, evaluated)
  for (const warning of open) yield* Console.error(`writ: ${inline(warning)}`)
  if (report.totals.conversations_matched === 0) {
    yield* Console.error(
      `writ: no case of ${inline(suite.name)} matches any of the ${count(over.conversations.length, "conversation")} in ${inline(over.path)}: nothing was evaluated`
    )
  }
  const red = Report.isRed(report, flags.strict) || (flags.strict && open.length > 0)
  return { over, evaluated, report, files, red } satisfies Done
})

const mostShown = 20

const human = ({ files, red, report }: Done, { columns, line, paint }: Screen.Screen): void => {
  const { assertions, conversations_matched } = report.totals
  const bad = report.cases.flatMap(({ matches, name }, index) =>
    matches.flatMap(({ assertions, conversation }) =>
      assertions.flatMap((one, ordinal) =>
        one.outcome === "pass" ? [] : [{ ...one, conversation, ordinal, case: name ?? Suite.unnamed(index) }]
      )
    )
  )
  const field = (name: string, value: string) => line(`${paint.dim(name.padEnd(10))} ${value}`)
  field("suite", inline(report.suite))
  field("over", `${inline(report.run_id)}: ${count(conversations_matched, "conversation")}`)
  for (const { case: name, class: kind, conversation, ordinal, outcome, reason = "" } of bad.slice(0, mostShown)) {
    const mark = outcome === "deferred" || outcome === "malformed" ? paint.yellow(outcome) : paint.red(outcome)
    const where = `${conversation}, ${name} #${ordinal} ${kind}`
    line(`  ${mark} ${inline(where)}: ${cut(reason, Math.max(20, columns - where.length - outcome.length - 6))}`)
  }
  if (bad.length > mostShown) line(paint.dim(`  … and ${bad.length - mostShown} more, in the report`))
  const { deferred, errored, failed, malformed, passed } = assertions
  const sums = `${passed} passed, ${failed} failed, ${deferred} deferred, ${malformed} malformed, ${errored} errored`
  field("assertions", red ? paint.red(sums) : deferred > 0 ? paint.yellow(sums) : paint.green(sums))
  if (files.html !== undefined) field("page", inline(shown(files.html)))
  field("report", inline(shown(files.report)))
}

const documentOf = ({ files, red, report }: Done) => ({
  verdict: red ? "no" : "yes",
  files: Object.fromEntries(Object.entries(files).map(([kind, path]) => [kind, shown(path)])),
  report
})

/** Reports of several runs are also looked at together. */
const together = Effect.fnUntraced(function* (project: string, all: ReadonlyArray<Done>) {
  if (all.length < 2) return undefined
  const repeats = Repeats.of(all.map(({ report }) => report))
  const name = `${all[0]!.report.run_id}-x${all.length}`
  return {
    repeats,
    json: yield* ReportFiles.write(project, `${name}.repeats.json`, [`${JSON.stringify(repeats, undefined, 2)}\n`]),
    markdown: yield* ReportFiles.write(project, `${name}-repeats.md`, [repeatsMarkdown(repeats)])
  }
})

const checked = Effect.fnUntraced(function* (flags: EvalFlags) {
  const project = flags.project ?? "."
  const problem = problemAt(project, "Directory")
  if (problem !== undefined) return yield* usage(`--project ${project}: ${problem}`)
  if (flags.over.length === 0) return yield* usage("--over: name the conversations, a file, a directory or a run")
  if (flags.concurrency !== undefined && flags.concurrency < 1) return yield* usage("--concurrency: at least 1")
  const suite = yield* Suite.load(yield* Project.suiteFile(project, flags.suite))
  yield* EvalEngines.check(flags)
  const overs = yield* Effect.forEach(flags.over, (one) => Project.over(project, one))
  const ids = yield* idsOf(flags, overs)
  const env = yield* Project.environment(project, process.env)
  return { project, suite, overs, ids, env }
})

export const evaluate = (flags: EvalFlags) =>
  Effect.gen(function* () {
    const { env, ids, overs, project, suite } = yield* checked(flags).pipe(
      // What is wrong with files that were named is a matter of the command line.
      Effect.catchTags({
        SuiteError: ({ message }) => usage(message),
        ProjectError: ({ message }) => usage(message)
      })
    )
    const screen = yield* Screen.make(flags.color)
    const spawner = yield* ChildProcessSpawner
    const engines = yield* EvalEngines.open(flags, suite, project)
    const around = { root: resolve(project), env, spawner, ...engines }
    const progress = flags.json || flags.quiet ? () => {} : screen.progress
    const all = yield* Effect.forEach(overs, (over, index) =>
      evaluateOne(flags, project, suite, over, ids[index]!, around, progress)
    ).pipe(Effect.catchTag("ReportError", ({ message }) => usage(message)))
    const repeated = yield* together(project, all).pipe(Effect.catchTag("ReportError", ({ message }) => usage(message)))
    if (flags.json) {
      const documents = all.map(documentOf)
      const whole =
        repeated === undefined
          ? documents[0]
          : {
              evaluations: documents,
              repeats: repeated.repeats,
              files: { json: shown(repeated.json), markdown: shown(repeated.markdown) }
            }
      yield* Console.log(jsonText(whole))
    } else {
      for (const one of all) {
        if (flags.quiet) yield* Console.log(shown(one.files.report))
        else human(one, screen)
      }
      if (repeated !== undefined && !flags.quiet) {
        const { flaky } = repeated.repeats
        screen.line(`${count(flaky.length, "flaky assertion")}; all runs together: ${inline(shown(repeated.markdown))}`)
      }
    }
    yield* endWith(all.some(({ red }) => red) ? 3 : 0)
  }).pipe(Effect.scoped, inJson(flags.json))
