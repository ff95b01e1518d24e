/** Runs one task for `run` and `demo`: services, live view, Ctrl-C, transcript, closing lines, exit code. */
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Ids from "../actors/Ids.ts"
import * as Agent from "../effects/Agent.ts"
import { exitCode, type Outcome } from "../effects/Outcome.ts"
import { Approval } from "../effects/Policy.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { limitsOf } from "../effects/Settings.ts"
import * as Wiring from "../effects/Wiring.ts"
import type { Registry } from "../tools/Registry.ts"
import { approverFor } from "./Approvers.ts"
import { endWith } from "./Ending.ts"
import type { ChosenModel } from "./ModelChoice.ts"
import { block } from "./Printable.ts"
import * as Report from "./Report.ts"
import { RunView, stopText } from "./RunView.ts"
import * as Screen from "./Screen.ts"
import { onStop } from "./StopRequests.ts"

/** How a run is shown. */
export interface Showing {
  readonly json: boolean
  readonly quiet: boolean
  readonly color?: boolean | undefined
}

export interface Job {
  readonly task: string
  readonly settings: Settings
  readonly model: ChosenModel
  readonly registry: Registry
  readonly showing: Showing
  readonly runId: string
  readonly directory: RunDirectory.RunDirectory
  readonly notice?: string
}

/** A run's name, made before the run so that its directory can be shown and filled. */
export const newRunId: Effect.Effect<string> = Effect.provide(
  Effect.flatMap(Ids.Ids, (ids) => ids.run),
  Ids.layer
)

const layerOf = ({ directory, model, registry, runId, settings }: Job) =>
  Layer.mergeAll(
    Wiring.layer({
      model: model.path,
      sessions: 1,
      ...(settings.context === undefined ? {} : { contextTokens: settings.context }),
      ...(settings.threads === undefined ? {} : { threads: settings.threads }),
      gpu: settings.gpu,
      // Without tools there is nothing to run on threads.
      inlineTools: registry.tools.length === 0,
      runDirectory: () => directory
    }),
    // The last one of a service counts: this run has its name already.
    Layer.succeed(Ids.Ids, Ids.Ids.of({ run: Effect.succeed(runId) }))
  )

const optionsOf = ({ model, registry, settings, task }: Job): Agent.AgentOptions => ({
  task,
  tools: registry,
  codec: model.codec,
  ...(settings.system === undefined ? {} : { system: settings.system }),
  limits: limitsOf(settings),
  calls: settings.calls,
  sampling: { temperature: settings.temperature, topK: settings.topK, topP: settings.topP, seed: settings.seed },
  constrained: settings.constrained,
  ...(settings.thinking === undefined ? {} : { thinking: settings.thinking }),
  settings: { workspace: settings.workspace, fixtures: settings.fixture },
  trace: { content: settings.traceContent, tokenEvents: settings.tokenEvents }
})

/** Starts the run, shows its events, and waits for its end. */
const watched = (job: Job, view: RunView | undefined, startedAt: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      view?.loaded((yield* Clock.currentTimeMillis) - startedAt)
      // Not before the model is there: what cannot start leaves nothing behind.
      yield* RunDirectory.prepare(job.directory)
      const handle = yield* Agent.start(optionsOf(job))
      yield* onStop(handle.cancel)
      yield* Stream.runForEach(handle.events, (event) => Effect.sync(() => view?.event(event)))
      return yield* handle.outcome
    })
  )

const transcriptOf = Effect.fnUntraced(function* (job: Job, outcome: Outcome) {
  // A transcript is content: it is there only where the trace holds content too.
  if (!job.settings.traceContent) return undefined
  const about = { model: job.model.title, codec: job.model.codec, tools: job.registry.tools.map((tool) => tool.name) }
  const { save } = yield* Effect.promise(() => import("./SavedTranscript.ts"))
  const problem = yield* save(job.directory.transcript, outcome, about)
  if (problem === undefined) return job.directory.transcript
  yield* Console.error(`writ: the transcript could not be written: ${problem}`)
  return undefined
})

/** The whole of it; fails with the exit code when the run did not complete. */
export const execute = Effect.fnUntraced(function* (job: Job) {
  const { json, quiet } = job.showing
  const screen = yield* Screen.make(job.showing.color)
  const view = json || quiet ? undefined : new RunView(screen)
  const tools = job.registry.tools.map((tool) => tool.name)
  const { codec, title } = job.model
  view?.header({
    model: title,
    notice: job.notice,
    codec,
    tools,
    task: job.task,
    directory: RunDirectory.shown(job.directory.directory)
  })
  if (view === undefined && !json && job.notice !== undefined) yield* Console.error(job.notice)
  view?.loading()
  const outcome = yield* watched(job, view, yield* Clock.currentTimeMillis).pipe(
    Effect.provideService(Approval, approverFor(job.settings.approve, view === undefined ? undefined : screen)),
    Effect.provide(layerOf(job))
  )
  const transcriptPath = yield* transcriptOf(job, outcome)
  if (json) {
    yield* Console.log(
      JSON.stringify(Report.document(outcome, { model: title, codec, tools, transcriptPath }), undefined, 2)
    )
  } else if (view !== undefined) view.closing(outcome, transcriptPath)
  else yield* quietly(outcome)
  yield* endWith(exitCode(outcome.stop))
  return outcome
})

/** The answer alone, as it is unless a person would see it; anything else that happened goes to standard error. */
const quietly = (outcome: Outcome): Effect.Effect<void> => {
  const answer = outcome.text ?? (outcome.stop._tag === "NeedsInput" ? outcome.stop.question : undefined)
  if (answer === undefined) return Console.error(`writ: ${block(stopText(outcome.stop))}`)
  return Console.log(process.stdout.isTTY ? block(answer) : answer)
}
