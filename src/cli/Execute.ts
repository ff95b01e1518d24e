/** Runs one task for `run` and `demo`: services, live view, Ctrl-C, transcript, closing lines, exit code. */
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { EffectLedger } from "../actors/EffectLedger.ts"
import { isAddress, shownPlace } from "../actors/EffectLedgerAddress.ts"
import * as Ids from "../actors/Ids.ts"
import { compile } from "../actors/Redaction.ts"
import * as Agent from "../effects/Agent.ts"
import { lifeOf, tuningOf } from "../effects/EngineFields.ts"
import type { FileTools } from "../effects/FileTools.ts"
import type { McpTools } from "../effects/McpTools.ts"
import { exitCode, type Outcome } from "../effects/Outcome.ts"
import type { Past } from "../effects/Past.ts"
import { phaseOptionsOf } from "../effects/PhaseFields.ts"
import { Approval } from "../effects/Policy.ts"
import * as Resume from "../effects/Resume.ts"
import * as Router from "../effects/Router.ts"
import type { RunOptions } from "../effects/Run.ts"
import * as RunClaim from "../effects/RunClaim.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { gatesOf, limitsOf } from "../effects/Settings.ts"
import { Model } from "../engine/Model.ts"
import type { Scripted } from "../engine/ScriptedModel.ts"
import type { Registry } from "../tools/Registry.ts"
import type { ToolSettings } from "../tools/ToolContext.ts"
import type { WebSettings } from "../tools/web/WebSettings.ts"
import { type Asking, approverFor, askingAt, fromRecord } from "./Approvers.ts"
import { type Continuing, continuing } from "./Continuing.ts"
import { DryRun, type Would, wouldDocument, wouldLines } from "./DryRun.ts"
import { endWith, usage } from "./Ending.ts"
import { block, count, jsonText } from "./Printable.ts"
import { Provisions } from "./Provisions.ts"
import * as Report from "./Report.ts"
import { type Found, knownCalls, openEffects } from "./Resuming.ts"
import { RunView } from "./RunView.ts"
import { stopText } from "./RunWords.ts"
import * as Screen from "./Screen.ts"
import { onStop } from "./StopRequests.ts"
import { WordWrap } from "./WordWrap.ts"

/** How a run is shown. */
export interface Showing {
  readonly json: boolean
  readonly quiet: boolean
  readonly color?: boolean | undefined
}

/** What the run runs on. */
export type Engine =
  | { readonly _tag: "File"; readonly path: string }
  | { readonly _tag: "Script"; readonly scripted: Scripted }
  | { readonly _tag: "Server"; readonly model: Model["Service"] }

export interface Job {
  readonly task: string
  readonly settings: Settings
  readonly model: { readonly codec: string; readonly title: string }
  readonly engine: Engine
  readonly registry: Registry
  /** The MCP servers some of the tools belong to. */
  readonly mcp?: McpTools | undefined
  /** The tools of the run that are files. */
  readonly files?: FileTools | undefined
  /** The environment of the tools: what is granted of this program's own. May hold secrets. */
  readonly toolEnv?: Readonly<Record<string, string>>
  /** What the web tools may reach. May hold a key: it is for tools only. */
  readonly web?: WebSettings | undefined
  readonly showing: Showing
  readonly runId: string
  readonly directory: RunDirectory.RunDirectory
  /** Writes what the run brings along, once its directory is there. */
  readonly bring?: Effect.Effect<void, RunDirectory.RunDirectoryError>
  readonly notice?: string
  /** Flags that a command that continues this run has to repeat. */
  readonly again: ReadonlyArray<string>
  /** The run that is continued, and the user's answer if it asked. */
  readonly past?: { readonly found: Found; readonly past: Past; readonly answer: string | undefined }
}

/** A run's name, made before the run so that its directory can be shown and filled. */
export const newRunId: Effect.Effect<string> = Effect.provide(
  Effect.flatMap(Ids.Ids, (ids) => ids.run),
  Ids.layer
)

/** A dry run leaves no ledger behind. One that is there is asked what it knows. */
const ledgerOf = ({ dryRun, ledger }: Settings): { readonly ledger?: string } => {
  const file = ledger ?? RunDirectory.ledger
  if (dryRun && !isAddress(file) && RunDirectory.look(file)._tag === "Nothing") return { ledger: "memory" }
  return ledger === undefined ? {} : { ledger }
}

/** What runs need besides the place of their record. */
export type Provided = Pick<Job, "engine" | "files" | "mcp" | "registry" | "settings" | "toolEnv">

/** The services of runs on this engine with these tools; `runDirectory` says where each of them is recorded. */
export const servicesOf = Effect.fnUntraced(function* (
  { engine, files, mcp, registry, settings, toolEnv = {} }: Provided,
  runDirectory: (runId: string) => RunDirectory.RunDirectory,
  loading: ((share: number) => void) | undefined,
  sessions = 1
) {
  const { services } = yield* Provisions
  const layer = services({
    ...(engine._tag === "File"
      ? { model: engine.path, ...(loading === undefined ? {} : { loading }) }
      : {
          engine: Layer.succeed(Model, engine._tag === "Script" ? engine.scripted.model : engine.model),
          modelHash: false
        }),
    sessions,
    ...(settings.context === undefined ? {} : { contextTokens: settings.context }),
    ...(settings.threads === undefined ? {} : { threads: settings.threads }),
    gpu: settings.gpu,
    tuning: tuningOf(settings),
    ...lifeOf(settings),
    // Without tools there is nothing to run on threads.
    inlineTools: registry.tools.length === 0,
    toolEnv,
    ...ledgerOf(settings),
    ...(settings.modelHash ? {} : { modelHash: false }),
    runDirectory
  })
  const withFiles = files === undefined ? layer : files.layer(layer)
  return mcp === undefined ? withFiles : mcp.layer(withFiles)
})

const layerOf = (job: Job, view: RunView | undefined) =>
  Effect.map(
    // A talk has a session of its own beside the task's.
    servicesOf(job, () => job.directory, view?.loading, job.settings.route === "task" ? 1 : 2),
    (layer) =>
      Layer.mergeAll(
        layer,
        // The last one of a service counts: this run has its name already.
        Layer.succeed(Ids.Ids, Ids.Ids.of({ run: Effect.succeed(job.runId) }))
      )
  )

const toolSettings = ({ settings: { fixture, workspace }, web }: Pick<Job, "settings" | "web">): ToolSettings => ({
  workspace,
  fixtures: fixture,
  ...(web === undefined ? {} : { web })
})

export const sessionOptionsOf = ({ model, registry, settings }: Pick<Job, "model" | "registry" | "settings">) => ({
  tools: registry,
  codec: model.codec,
  ...(settings.system === undefined ? {} : { system: settings.system })
})

export const runOptionsOf = ({ settings, ...job }: Pick<Job, "settings" | "web">): RunOptions => ({
  limits: limitsOf(settings),
  calls: settings.calls,
  sampling: { temperature: settings.temperature, topK: settings.topK, topP: settings.topP, seed: settings.seed },
  constrained: settings.constrained,
  context: { onFull: settings.contextPolicy },
  ...phaseOptionsOf(settings),
  ...(settings.thinking === undefined ? {} : { thinking: settings.thinking }),
  settings: toolSettings({ settings, ...job }),
  gates: gatesOf(settings),
  trace: { content: settings.traceContent, tokenEvents: settings.tokenEvents, redact: settings.redact }
})

/** A kept state is content, and nothing in it is redacted: it is there only where the trace holds all content too. */
const stateOf = ({ directory, settings: { keepState, redact, traceContent } }: Job) => ({
  path: RunDirectory.stateIn(directory),
  keep: keepState && traceContent && redact.length === 0
})

const optionsOf = (job: Job): Agent.AgentOptions => ({
  task: job.task,
  ...sessionOptionsOf(job),
  ...runOptionsOf(job),
  state: stateOf(job)
})

/**
 * An effect that had begun, and that the ledger has never heard of, was begun under another ledger: going on would have it
 * twice.
 */
const checkLedger = Effect.fnUntraced(function* ({ past, settings }: Job) {
  if (past === undefined) return
  const ledger = yield* EffectLedger
  for (const { call, key } of openEffects(past.found, past.past)) {
    if ((yield* ledger.get(key)) !== undefined) continue
    return yield* usage(
      `the effect of ${call} had begun, and the ledger ${shownPlace(settings.ledger ?? RunDirectory.ledger)} knows nothing of it: name the one the run was made with (--ledger FILE)`
    )
  }
})

/** Decisions about a run that goes on are in its directory; they count before whoever else decides. */
const approverOf = ({ directory, past, settings }: Job, asking: Asking | undefined) => {
  const approver = approverFor(settings.approve, asking)
  return past === undefined ? approver : fromRecord(directory.directory, approver)
}

const started = (job: Job) => {
  const options = optionsOf(job)
  const { route } = job.settings
  // What was a talk goes on as a task: nothing of it is in the context.
  return job.past === undefined
    ? route === "task"
      ? Agent.start(options)
      : Router.start({ ...options, route })
    : Resume.start({
        ...options,
        traces: job.past.found.traces,
        ...(job.past.answer === undefined ? {} : { answer: job.past.answer })
      })
}

/**
 * Starts the run, shows its events, and waits for its end. From the moment the run may leave something behind until
 * `whole` closes, a request to stop cancels the run instead of ending the program: what is said at the end is what is on
 * the record.
 */
const watched = (job: Job, view: RunView | undefined, dry: DryRun | undefined, startedAt: number, whole: Scope.Scope) =>
  Effect.scoped(
    Effect.gen(function* () {
      view?.loaded((yield* Clock.currentTimeMillis) - startedAt)
      yield* checkLedger(job)
      // Not before the model is there: what cannot start leaves nothing behind.
      yield* RunDirectory.prepare(job.directory)
      yield* RunClaim.hold(job.directory.directory)
      yield* job.bring ?? Effect.void
      const running = yield* Deferred.make<Effect.Effect<void>>()
      yield* Scope.provide(onStop(Effect.flatten(Deferred.await(running))), whole)
      const handle = yield* started(job)
      yield* Deferred.succeed(running, handle.cancel)
      yield* Stream.runForEach(handle.events, (event) =>
        Effect.sync(() => {
          view?.event(event)
          dry?.event(event)
        })
      )
      return yield* handle.outcome
    })
  )

const transcriptOf = Effect.fnUntraced(function* (job: Job, outcome: Outcome) {
  // A transcript is content: it is there only where the trace holds content too.
  if (!job.settings.traceContent) return undefined
  const about = { model: job.model.title, codec: job.model.codec, tools: job.registry.tools.map((tool) => tool.name) }
  const { save } = yield* Effect.promise(() => import("./SavedTranscript.ts"))
  // The settings were checked when they were read.
  const redactor = yield* Effect.orDie(compile(job.settings.redact))
  const problem = yield* save(job.directory.transcript, outcome, about, redactor)
  if (problem === undefined) return job.directory.transcript
  yield* Console.error(`writ: the transcript could not be written: ${problem}`)
  return undefined
})

/** Where a resumed run goes on, in a sentence. */
const resumedText = ({ past }: Job): string | undefined => {
  if (past === undefined) return undefined
  const { fromRunId, nextTurn, openTurn } = past.past
  return `continuing ${fromRunId} from turn ${(openTurn?.turn ?? nextTurn) + 1}; ${count(knownCalls(past.past), "call")} known`
}

const open = Effect.fnUntraced(function* (job: Job, screen: Screen.Screen) {
  const { json, quiet } = job.showing
  if (json || quiet) {
    if (!json && job.notice !== undefined) yield* Console.error(job.notice)
    return undefined
  }
  const view = new RunView(screen)
  view.header({
    model: job.model.title,
    notice: job.notice,
    codec: job.model.codec,
    tools: job.registry.tools.map((tool) => tool.name),
    task: job.task,
    directory: RunDirectory.shown(job.directory.directory),
    resumed: resumedText(job)
  })
  if (job.engine._tag === "File") view.starting()
  const ticking = Effect.andThen(Effect.sleep(tickMillis), Effect.sync(view.tick))
  yield* Effect.forkScoped(Effect.forever(ticking))
  // Whatever ends the run, no half line of progress is left for what is said next.
  yield* Effect.addFinalizer(() => Effect.sync(() => screen.progress("")))
  return view
})

/** How often the time that has passed is shown anew. */
const tickMillis = 1_000

/** What a dry run would have done; nothing for any other. */
const heldBack = (job: Job, dry: DryRun | undefined) =>
  dry === undefined ? Effect.succeed(undefined) : dry.would(job.registry, job.settings.profile, toolSettings(job))

const close = Effect.fnUntraced(function* (
  job: Job,
  outcome: Outcome,
  would: ReadonlyArray<Would> | undefined,
  view: RunView | undefined,
  screen: Screen.Screen
) {
  const transcriptPath = yield* transcriptOf(job, outcome)
  const how: Continuing = continuing(outcome, job.settings, job.directory.directory, job.again)
  if (job.showing.json) {
    const about = {
      model: job.model.title,
      codec: job.model.codec,
      tools: job.registry.tools.map((tool) => tool.name),
      transcriptPath,
      resumed: job.past?.past.fromRunId,
      next: how._tag === "Command" ? how.command : undefined,
      ...(would === undefined ? {} : { would: wouldDocument(would) })
    }
    yield* Console.log(jsonText(Report.document(outcome, about)))
  } else if (view !== undefined) {
    view.closing(outcome, transcriptPath, how, would === undefined ? [] : wouldLines(would, screen))
  } else yield* quietly(outcome, how, screen)
  const left = job.engine._tag === "Script" ? job.engine.scripted.left() : 0
  // A run that can go on may still want them.
  if (left > 0 && how._tag !== "Command") yield* Console.error(`writ: ${count(left, "turn")} of the script not played`)
})

/** The whole of it; fails with the exit code when the run did not complete. */
export const execute = (job: Job) =>
  Effect.scoped(
    Effect.gen(function* () {
      const screen = yield* Screen.make(job.showing.color)
      const view = yield* open(job, screen)
      const asking = view === undefined ? undefined : yield* askingAt(screen, view.caughtUp)
      const whole = yield* Effect.scope
      const dry = job.settings.dryRun ? new DryRun() : undefined
      const outcome = yield* watched(job, view, dry, yield* Clock.currentTimeMillis, whole).pipe(
        Effect.provideService(Approval, approverOf(job, asking)),
        Effect.provide(yield* layerOf(job, view))
      )
      yield* close(job, outcome, yield* heldBack(job, dry), view, screen)
      yield* endWith(exitCode(outcome.stop))
      return outcome
    })
  )

/** A run that waits for somebody says what they have to do, whatever else is left out. */
const nextOf = (how: Continuing): string =>
  how._tag === "Command"
    ? `; ${how.command}`
    : how._tag === "Settle"
      ? `; ${how.commands[0]}`
      : how._tag === "Hint"
        ? `; it was ${how.text}`
        : ""

/** The answer alone, as it is unless a person sees it; anything else that happened goes to standard error. */
const quietly = (outcome: Outcome, how: Continuing, screen: Screen.Screen): Effect.Effect<void> => {
  const answer = outcome.text ?? (outcome.stop._tag === "NeedsInput" ? outcome.stop.question : undefined)
  if (answer === undefined) {
    const next = outcome.stop._tag === "AwaitingApproval" || how._tag === "Settle" ? nextOf(how) : ""
    return Console.error(`writ: ${block(stopText(outcome.stop))}${next}`)
  }
  if (!screen.terminal) return Console.log(answer)
  return Effect.sync(() => {
    const wrap = new WordWrap({ write: screen.write, columns: () => screen.columns, directions: screen.directions })
    wrap.push(answer)
    wrap.end()
  })
}
