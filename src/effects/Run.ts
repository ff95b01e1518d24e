/** Runs one task in a session: opens its record, starts its clocks, drives the machine, and says what came of it. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { ArtifactStore } from "../actors/ArtifactStore.ts"
import { EffectLedger } from "../actors/EffectLedger.ts"
import { Ids } from "../actors/Ids.ts"
import * as Redaction from "../actors/Redaction.ts"
import { ToolPool } from "../actors/ToolPool.ts"
import { type RunTrace, type TraceError, type TraceOptions, TraceWriter } from "../actors/TraceWriter.ts"
import type { Priority } from "../engine/Generation.ts"
import type { ToolSettings } from "../tools/ToolContext.ts"
import type { AgentEvent } from "./AgentEvent.ts"
import { cancelled, drive, requestStop } from "./AgentLoop.ts"
import type { Authority } from "./Authority.ts"
import { beginning, type Routed } from "./Beginning.ts"
import { constraintOf } from "./Constraint.ts"
import * as ContextPolicy from "./ContextPolicy.ts"
import { engineLife } from "./EngineLife.ts"
import * as Gates from "./Gates.ts"
import { keepState, type StateOptions } from "./KeptState.ts"
import * as Limits from "./Limits.ts"
import { newMemory } from "./Memory.ts"
import { type Outcome, outcomeOf } from "./Outcome.ts"
import type { Past } from "./Past.ts"
import * as Phases from "./Phases.ts"
import { Approval, type Approver } from "./Policy.ts"
import { askedBy } from "./Replying.ts"
import {
  type Asked,
  type CallPolicy,
  newBudget,
  nowMillis,
  type Parent,
  type Restore,
  type RunContext,
  type RunSettings,
  type Session,
  type TraceChoices
} from "./RunContext.ts"
import { partOf } from "./RunDirectory.ts"
import type { Stop } from "./State.ts"

export type { TraceChoices } from "./RunContext.ts"

export interface RunOptions {
  readonly limits?: Partial<Limits.Limits>
  /** How several calls of one turn are treated. Default `sequential`. */
  readonly calls?: CallPolicy
  readonly sampling?: Partial<RunSettings["sampling"]>
  readonly thinking?: boolean
  /** What holds for turns of a phase, where it is not what holds for the run. */
  readonly phases?: Phases.PhaseOverrides
  /** All turns are in this phase. Default: the run decides turn by turn (see Phases). */
  readonly phase?: Phases.Phase
  /** A turn that is `CLARIFY("…")` and nothing else asks the user, whatever the family. Default true. */
  readonly clarify?: boolean
  /** Hold calls to a grammar of the advertised tools, where engine and family can do that. Default true. */
  readonly constrained?: boolean
  /** A plain answer that the limit of tokens cuts is continued once. Default true. */
  readonly continued?: boolean
  /** What happens when the next turn does not fit the context. Default: the run stops. */
  readonly context?: Partial<ContextPolicy.ContextPolicy>
  /** Among the runs that share an engine: 5 goes first. Default 3. Lower ones are slower, and never starve. */
  readonly priority?: Priority
  /** A file for the evaluated context, where the engine can keep it: for a run that is continued later. */
  readonly state?: StateOptions
  /** Workspace and fixtures of the tools. */
  readonly settings?: Partial<ToolSettings>
  readonly trace?: TraceChoices
  /** Permissions, governor, task profile, retries, dry run. What is not said is cautious. */
  readonly gates?: Partial<Gates.Gates>
}

/** Options that cannot be used: which, and what it takes. */
export class InvalidOptions extends Schema.TaggedError<InvalidOptions>()("InvalidOptions", {
  message: Schema.String
}) {}

/** The services a run needs besides its session. */
export type RunServices = ToolPool | TraceWriter | ArtifactStore | EffectLedger | Ids

/** How turns are sampled where nothing else is said. */
export const standardSampling: RunSettings["sampling"] = { temperature: 0, topK: 40, topP: 0.95, seed: 0 }

const settingsOf = (
  options: RunOptions,
  approver: Approver,
  authority: Authority,
  artifacts: string | undefined
): RunSettings => {
  const limits = { ...Limits.defaults, ...options.limits }
  const sampling = { ...standardSampling, ...options.sampling }
  return {
    limits,
    calls: options.calls ?? "sequential",
    sampling,
    thinking: options.thinking,
    phase: options.phase,
    phases: Phases.tableOf({ thinking: options.thinking, limits, sampling }, options.phases),
    clarify: options.clarify ?? true,
    constrained: options.constrained ?? true,
    continued: options.continued ?? true,
    context: { ...ContextPolicy.defaults, ...options.context },
    priority: options.priority,
    state: options.state,
    tools: { fixtures: {}, ...(artifacts === undefined ? {} : { artifacts }), ...options.settings },
    approver,
    gates: { ...Gates.defaults, authority, ...options.gates }
  }
}

const check = (settings: RunSettings, session: Session, said: RunOptions): Effect.Effect<void, InvalidOptions> => {
  const problem =
    Limits.problemWith(settings.limits) ??
    Gates.problemWith(settings.gates) ??
    ContextPolicy.problemWith(settings.context) ??
    Phases.problemWith(said.phases ?? {}) ??
    Phases.problemWith(settings.phases)
  if (problem !== undefined) return Effect.fail(new InvalidOptions({ message: problem }))
  if (settings.gates.candidates > 1 && settings.sampling.temperature === 0) {
    const message = "candidates: at temperature 0 all samples are the same; set a temperature above 0, or 1 candidate"
    return Effect.fail(new InvalidOptions({ message }))
  }
  if (session.busy) {
    return Effect.fail(
      new InvalidOptions({ message: "this session already runs a task; open another session or wait" })
    )
  }
  return Effect.void
}

interface Services {
  readonly pool: ToolPool["Service"]
  readonly artifactStore: ArtifactStore["Service"]
  readonly ledger: EffectLedger["Service"]
  readonly background: RunContext["background"]
  readonly clock: Clock.Clock
}

const contextOf = (
  given: Session,
  task: string,
  runId: string,
  settings: RunSettings,
  trace: RunTrace,
  services: Services,
  traceChoices: TraceChoices,
  { asked, chat, emit, live = false, parent, past, reply, routed, watch }: Omit<Control, "runId" | "started">
): RunContext => ({
  ...services,
  ...goingOn(past, asked, routed),
  runId,
  parent,
  traceChoices,
  effectRunId: parent?.effectRunId ?? past?.past.rootRunId ?? asked?.rootRunId ?? runId,
  firstTurn: past?.past.openTurn?.turn ?? past?.past.nextTurn ?? asked?.nextTurn ?? 0,
  userPending: asked === undefined,
  reply,
  past,
  task,
  session: chat ?? given,
  taskSession: chat === undefined ? undefined : given,
  settings,
  phase: undefined,
  constraint: constraintOf(settings.constrained, given.codec, given.registry, given.model),
  trace,
  startedAt: nowMillis(services.clock),
  emit,
  live,
  watch,
  closed: false,
  artifacts: [],
  memory: newMemory(),
  undoable: [],
  fingerprints: [],
  point: "preparing",
  stopRequest: undefined,
  current: undefined,
  open: undefined,
  sampled: 0,
  queued: undefined,
  engine: engineLife((chat ?? given).context)
})

/**
 * Budgets: an answer to a question goes on with those of the run that asked, anything else begins anew. Asking the model for
 * the route takes time of the run's.
 */
const goingOn = (
  past: Control["past"],
  asked: Asked | undefined,
  routed: Routed | undefined
): Pick<RunContext, "budget" | "spent"> => {
  const { millis = 0 } = routed ?? {}
  const before = asked?.spent ?? (past?.answer === undefined ? undefined : past.past.spent) ?? Limits.nothingSpent
  const spent = millis === 0 ? before : { ...before, wallMillis: before.wallMillis + millis }
  const { repairs, toolCalls } = spent
  return { spent, budget: { ...newBudget(), turns: asked?.nextTurn ?? 0, toolCalls, repairs } }
}

/** Wall time as one timer for the whole run, so that a state costs no timer of its own. */
const watchWallTime = (run: RunContext): Effect.Effect<void, never, Scope.Scope> => {
  const { wallMillis } = run.settings.limits
  if (!Number.isFinite(wallMillis) || wallMillis === 0) return Effect.void
  const left = Math.max(0, wallMillis - run.spent.wallMillis)
  const timeUp = Effect.sync(() => requestStop(run, () => ({ _tag: "Limit", kind: "wall_time" })))
  return Effect.asVoid(Effect.forkScoped(Effect.interruptible(Effect.delay(timeUp, left)), { startImmediately: true }))
}

/**
 * Lets somebody outside stop the run from the moment it exists: cancel it where it is, or (for a replay, which enacts a stop
 * that was recorded) stop it for a reason of the caller's.
 */
export interface Control {
  readonly emit: (event: AgentEvent) => void
  /** Somebody reads along while the model writes. Otherwise the events of a turn come together, when it ends. */
  readonly live?: boolean
  /** The run that this one continues. */
  readonly past?: RunContext["past"]
  /** The run's question that this one answers, in the same session, and what is said as a message of its own. */
  readonly asked?: Asked
  readonly reply?: string
  /** Who decided that the run talks or works. */
  readonly routed?: Routed
  /** The session to talk in first; what it hands over goes on in the run's own. */
  readonly chat?: Session
  /** The call of another run that this one is performed for. */
  readonly parent?: Parent
  /** The run's name, where it has one already. */
  readonly runId?: string
  readonly watch?: RunContext["watch"]
  readonly started: (cancel: Effect.Effect<void>, runId: string, stop: (reason: Stop) => void) => void
}

const record = Effect.fnUntraced(function* (run: RunContext, restore: Restore, { asked, routed }: Control) {
  const length = yield* run.session.context.length
  run.session.asked = undefined
  yield* run.trace.append(...beginning(run, length, routed, asked))
  yield* watchWallTime(run)
  run.emit({ _tag: "RunStarted", runId: run.runId, tracePath: run.trace.path })
  if (routed !== undefined) run.emit({ _tag: "Routed", route: routed.route, by: routed.by })
  const stop = yield* drive(run, restore)
  if (stop._tag === "NeedsInput") run.session.asked = askedBy(run)
  yield* keepState(run.session.context, run.settings.state, run.runId, stop)
  return outcomeOf(run, stop)
})

const traceOptionsOf = ({ redact = [], ...choices }: TraceChoices = {}) =>
  Effect.map(
    Effect.mapError(Redaction.compile(redact), ({ message }) => new InvalidOptions({ message })),
    (redactor): TraceOptions => ({
      content: false,
      tokenEvents: false,
      ...choices,
      ...(redactor === undefined ? {} : { redact: redactor })
    })
  )

/** A run that continues another is a part of it: `ROOT-r2`, `ROOT-r3`, … in the root's directory. */
const nameOf = ({ asked, past, runId }: Control): Effect.Effect<string, never, Ids> => {
  if (runId !== undefined) return Effect.succeed(runId)
  if (asked !== undefined) return Effect.succeed(`${asked.rootRunId}-r${partOf(asked.runId).part + 1}`)
  return past === undefined ? Effect.flatMap(Ids, (ids) => ids.run) : Effect.succeed(nextPart(past.past))
}

/** The name of the run that continues `past`. */
export const nextPart = ({ fromRunId, parts, rootRunId }: Past): string =>
  `${rootRunId}-r${Math.max(parts, partOf(fromRunId).part) + 1}`

/**
 * Runs `task` to its outcome. However it stops, that is a value; the error channel is for options that cannot be used and
 * a record that cannot be opened. Interruption closes the record first.
 */
export const execute = (
  session: Session,
  task: string,
  options: RunOptions,
  control: Control
): Effect.Effect<Outcome, InvalidOptions | TraceError, RunServices> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.scoped(
      Effect.gen(function* () {
        const runId = yield* nameOf(control)
        const artifacts = (yield* ArtifactStore).directory?.(runId)
        const settings = settingsOf(options, yield* Approval, yield* Gates.Permissions, artifacts)
        yield* check(settings, session, options)
        const traceOptions = yield* traceOptionsOf(options.trace)
        const trace = yield* (yield* TraceWriter).open(runId, traceOptions)
        const context = yield* Effect.context<never>()
        const services = {
          pool: yield* ToolPool,
          artifactStore: yield* ArtifactStore,
          ledger: yield* EffectLedger,
          clock: yield* Clock.Clock,
          background: (effect: Effect.Effect<void>) => void Effect.runForkWith(context)(effect)
        }
        const run = contextOf(session, task, runId, settings, trace, services, options.trace ?? {}, control)
        // First: whoever is told goes on at once, and finds it taken.
        const taken = control.chat === undefined ? [session] : [session, control.chat]
        for (const one of taken) one.busy = true
        control.started(
          Effect.sync(() => requestStop(run, cancelled)),
          runId,
          (reason) => requestStop(run, () => reason)
        )
        return yield* Effect.ensuring(
          record(run, restore, control),
          Effect.sync(() => {
            for (const one of taken) one.busy = false
          })
        )
      })
    )
  )
