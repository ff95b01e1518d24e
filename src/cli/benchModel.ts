/**
 * `writ bench-model`: models × prompts × policies, each so often, judged by one suite. What was run before is not run again; the
 * reports are those of `writ eval`, one per row and repeat, and a matrix over all of them.
 *
 * Ends with 0 when every cell was run and judged, whatever the verdicts: a matrix measures, and gates belong to `writ report`. 3: an
 * assertion could not be decided (malformed, errored). 1: cells were not done. 4: stopped; the same command goes on.
 */
import { existsSync, readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Bench from "../effects/eval/bench/Bench.ts"
import { benchMarkdown } from "../effects/eval/bench/BenchMarkdown.ts"
import * as BenchReport from "../effects/eval/bench/BenchReport.ts"
import { type Cell, cellsOf, sha256 } from "../effects/eval/bench/Cell.ts"
import { CellStore } from "../effects/eval/bench/CellStore.ts"
import { makeKept } from "../effects/eval/Kept.ts"
import { match } from "../effects/eval/Matching.ts"
import * as Project from "../effects/eval/Project.ts"
import * as Report from "../effects/eval/Report.ts"
import * as ReportFiles from "../effects/eval/ReportFiles.ts"
import { markdown } from "../effects/eval/ReportMarkdown.ts"
import * as Suite from "../effects/eval/Suite.ts"
import { shown } from "../effects/RunDirectory.ts"
import { load, type RawSettings } from "../effects/Settings.ts"
import { canonical, type Json } from "../tools/JsonText.ts"
import { type Asked, type PromptFlags, playersOf, policiesOf, promptsOf } from "./BenchInputs.ts"
import { contest } from "./BenchRunner.ts"
import { BenchView } from "./BenchView.ts"
import { checkUnruled, checkWorkspace } from "./ConversationInputs.ts"
import { endWith, inJson, type UsageError, usage } from "./Ending.ts"
import * as EvalEngines from "./EvalEngines.ts"
import { problemAt } from "./Places.ts"
import { count, inline, jsonText } from "./Printable.ts"
import { toolsFor } from "./runConversation.ts"
import * as Screen from "./Screen.ts"
import { onStop } from "./StopRequests.ts"

export interface BenchFlags extends PromptFlags, Pick<EvalEngines.EngineFlags, "judgeModel" | "judgeCodec"> {
  readonly model: ReadonlyArray<string>
  readonly script: ReadonlyArray<string>
  readonly policy: ReadonlyArray<string>
  readonly suite: string | undefined
  readonly project: string | undefined
  readonly repeat: number | undefined
  readonly parallel: number | undefined
  readonly id: string | undefined
  /** Nothing from before counts. */
  readonly fresh: boolean
  readonly json: boolean
  readonly quiet: boolean
  readonly color: boolean | undefined
  readonly settings: RawSettings
}

const suiteOf = Effect.fnUntraced(function* ({ suite }: BenchFlags, asked: Asked, project: string) {
  if (asked.suite !== undefined) {
    return suite === undefined ? asked.suite : yield* usage("--external brings its suite; leave out --suite")
  }
  if (suite === undefined) return yield* usage("name the suite that judges: --suite NAME or FILE")
  return yield* Suite.load(yield* Project.suiteFile(project, suite))
})

/** A suite that says nothing of the prompts would pass whatever happens. */
const checkSuite = Effect.fnUntraced(function* (suite: Suite.Suite, { prompts }: Asked) {
  const missing = Bench.missingNames(suite, new Set(prompts.map(({ name }) => name)))
  if (missing.length > 0) {
    return yield* usage(
      `${suite.name}: no prompt is called ${missing.slice(0, 5).join(", ")}${missing.length > 5 ? ` (and ${missing.length - 5} more)` : ""}`
    )
  }
  // Every case of a name has its prompt; what is left is cases for bindings.
  let matched = suite.cases.some(({ name }) => name !== undefined)
  for (const [index, one] of suite.cases.entries()) {
    if (one.name !== undefined) continue
    const found = match(one, prompts)
    if (found._tag === "Some") matched = true
    else if (found._tag === "None") yield* Console.error(`writ: case ${Bench.caseName(suite, index)}: ${found.why}`)
  }
  return matched ? undefined : yield* usage(`${suite.name}: no case matches any prompt, so nothing would be judged`)
})

/** What judges, as far as files say: a script of the suite that is changed makes it another suite. */
const suiteKeyOf = (suite: Suite.Suite, root: string, judge: string | undefined, codec: string | undefined): string => {
  const files = Bench.pathsIn(suite).map((path): Json => {
    const file = join(root, path)
    return [path, existsSync(file) ? sha256(readFileSync(file, "latin1")) : null]
  })
  return sha256(canonical({ suite: Suite.emit(suite), files, judge: judge ?? null, codec: codec ?? null }))
}

const planned = Effect.fnUntraced(function* (flags: BenchFlags, screen: Screen.Screen) {
  const project = flags.project ?? "."
  const problem = problemAt(project, "Directory")
  if (problem !== undefined) return yield* usage(`--project ${project}: ${problem}`)
  const { parallel = 2, repeat = 1 } = flags
  if (parallel < 1) return yield* usage("--parallel: at least 1")
  if (repeat < 1) return yield* usage("--repeat: at least 1")
  const loaded = yield* load(flags.settings)
  yield* checkUnruled(loaded.settings)
  const workspace = yield* checkWorkspace(loaded.settings.workspace)
  const base = { ...loaded, settings: { ...loaded.settings, workspace } }
  const policies = yield* policiesOf(flags.policy, { ...flags.settings, workspace })
  yield* EvalEngines.check({ ...flags, judgeScript: undefined })
  const asked = yield* promptsOf(flags, project)
  const suite = yield* suiteOf(flags, asked, project)
  yield* checkSuite(suite, asked)
  const players = yield* playersOf(flags, base.settings, screen.progress)
  const env = yield* Project.environment(project, process.env)
  return { project, parallel, repeat, base, policies, asked, suite, players, env }
})

type Planned = Effect.Success<ReturnType<typeof planned>>

/** Repeats that cannot differ are one result, counted often. */
const warnOfSame = ({ players, policies, repeat }: Planned): Effect.Effect<void> => {
  const models = players.some(({ source }) => source._tag === "Model")
  const greedy = policies.filter(({ resolved }) => resolved.settings.temperature === 0)
  if (!models || repeat === 1 || greedy.length === 0) return Effect.void
  return Console.error(
    `writ: at temperature 0 every repeat comes to the same (${greedy.map(({ policy }) => inline(policy.name)).join(", ")}); set --temperature`
  )
}

const slug = (text: string): string => text.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replace(/^[-.]+/, "") || "bench"

const writeAll = Effect.fnUntraced(function* (project: string, { bench, reports }: ReturnType<typeof BenchReport.of>) {
  for (const report of reports) {
    yield* ReportFiles.write(project, `${report.run_id}.json`, [Report.emit(report)])
    yield* ReportFiles.write(project, `${report.run_id}-report.md`, [markdown(report)])
  }
  return {
    json: yield* ReportFiles.write(project, `${bench.id}.bench.json`, [`${JSON.stringify(bench, undefined, 2)}\n`]),
    markdown: yield* ReportFiles.write(project, `${bench.id}-bench.md`, [benchMarkdown(bench)])
  }
})

const codeOf = (outcomes: ReadonlyArray<Bench.CellOutcome>, stopped: boolean): number => {
  if (stopped) return 4
  const codes = outcomes.flatMap((outcome) => (outcome._tag === "NotDone" ? [outcome.code] : []))
  if (codes.length > 0) return codes.every((code) => code === 2) ? 2 : 1
  const undecided = outcomes.some(
    (outcome) =>
      outcome._tag === "Done" &&
      outcome.verdicts.cases.some(({ assertions }) =>
        assertions.some((one) => one.outcome === "malformed" || one.outcome === "errored")
      )
  )
  return undecided ? 3 : 0
}

const openTools = ({ asked, base }: Planned) =>
  toolsFor(
    base,
    asked.recorded
      ? []
      : asked.prompts.map(({ conversation, label }) => ({ path: label, conversation, fixture: undefined }))
  )

const worked = Effect.fnUntraced(function* (flags: BenchFlags, plan: Planned, screen: Screen.Screen) {
  const { asked, base, env, parallel, players, policies, project, repeat, suite } = plan
  const tools = yield* openTools(plan)
  const view = new BenchView(screen, flags.json || flags.quiet)
  const folder = join(project, "evals", "bench")
  const [store, records] = [new CellStore(join(folder, "cells")), resolve(folder, "runs")]
  yield* makeKept(records, records)
  const cells = cellsOf({
    contestants: players.map(({ contestant }) => contestant),
    policies: policies.map(({ policy }) => policy),
    prompts: asked.prompts,
    repeats: repeat,
    seed: base.settings.seed,
    tools: asked.recorded ? "recorded" : tools.used.hash
  })
  if (flags.fresh) yield* Effect.forEach(cells, store.forget, { discard: true })
  const suiteKey = suiteKeyOf(suite, project, flags.judgeModel, flags.judgeCodec)
  const engines = yield* EvalEngines.open({ ...flags, judgeScript: undefined }, suite, project)
  const state = { stopped: false }
  const cancels = new Set<Effect.Effect<void>>()
  yield* onStop(
    Effect.suspend(() => {
      state.stopped = true
      return Effect.forEach([...cancels], (cancel) => cancel, { discard: true })
    })
  )
  const runner = contest({
    players,
    policies,
    base,
    tools,
    recorded: asked.recorded,
    store,
    records,
    parallel,
    screen,
    onBegin: view.began,
    cancels,
    stopped: () => state.stopped
  })
  const around = { root: resolve(project), env, spawner: yield* ChildProcessSpawner, ...engines }
  const outcomes = yield* Bench.run(cells, runner, { store, suite, suiteKey, around, onDone: view.done })
  screen.progress("")
  return { outcomes, stopped: state.stopped, view, id: flags.id ?? idOf(suite, cells, suiteKey) }
})

/** The same matrix has the same name, so that its reports are replaced and not piled up. */
const idOf = (suite: Suite.Suite, cells: ReadonlyArray<Cell>, suiteKey: string): string =>
  `${slug(suite.name)}-${sha256([suiteKey, ...cells.map(({ key }) => key)].join("\n")).slice(0, 10)}`

const checkId = (id: string | undefined): Effect.Effect<void, UsageError> =>
  id === undefined || /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(id)
    ? Effect.void
    : usage(`--id ${id}: letters, digits, dots, dashes and underscores`)

export const benchModel = (flags: BenchFlags) =>
  Effect.gen(function* () {
    yield* checkId(flags.id)
    const screen = yield* Screen.make(flags.color)
    const plan = yield* planned(flags, screen)
    yield* warnOfSame(plan)
    const { id, outcomes, stopped, view } = yield* worked(flags, plan, screen)
    const timestamp = DateTime.formatIso(yield* DateTime.now)
    const made = BenchReport.of(outcomes, plan.suite, {
      id,
      timestamp,
      seed: plan.base.settings.seed,
      repeats: plan.repeat
    })
    const files = yield* writeAll(plan.project, made)
    if (flags.json) {
      const places = { json: shown(files.json), markdown: shown(files.markdown) }
      yield* Console.log(jsonText({ ...made.bench, files: places }))
    } else if (flags.quiet) yield* Console.log(shown(files.json))
    else {
      view.report(made.bench)
      screen.line(`${screen.paint.dim("matrix")}  ${inline(shown(files.markdown))}`)
    }
    if (stopped) {
      const kept = outcomes.filter(({ _tag }) => _tag === "Done").length
      yield* Console.error(
        `writ: stopped; ${kept} of ${count(outcomes.length, "cell")} are kept, the same command goes on`
      )
    }
    yield* endWith(codeOf(outcomes, stopped))
  }).pipe(
    // What is wrong with files that were named is a matter of the command line.
    Effect.catchTags({
      SuiteError: ({ message }) => usage(message),
      ProjectError: ({ message }) => usage(message),
      ConversationError: ({ message }) => usage(message),
      ReportError: ({ message }) => usage(message),
      KeptError: ({ message }) => usage(message)
    }),
    Effect.scoped,
    inJson(flags.json)
  )
