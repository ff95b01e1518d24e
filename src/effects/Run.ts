/** Runs one task in a session: opens its record, starts its clocks, drives the machine, and says what came of it. */

import { hash } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { ArtifactStore } from "../actors/ArtifactStore.ts"
import { EffectLedger } from "../actors/EffectLedger.ts"
import { Ids } from "../actors/Ids.ts"
import * as Redaction from "../actors/Redaction.ts"
import { ToolPool } from "../actors/ToolPool.ts"
import type { TraceInput } from "../actors/TraceEvent.ts"
import { type RunTrace, type TraceError, type TraceOptions, TraceWriter } from "../actors/TraceWriter.ts"
import type { ToolSettings } from "../tools/ToolContext.ts"
import type { AgentEvent } from "./AgentEvent.ts"
import { cancelled, drive, requestStop } from "./AgentLoop.ts"
import type { Authority } from "./Authority.ts"
import { constraintOf } from "./Constraint.ts"
import * as Gates from "./Gates.ts"
import * as Limits from "./Limits.ts"
import { newMemory } from "./legality/Memory.ts"
import { type Outcome, outcomeOf } from "./Outcome.ts"
import type { Past } from "./Past.ts"
import { Approval, type Approver } from "./Policy.ts"
import {
  type CallPolicy,
  newBudget,
  nowMillis,
  type Restore,
  type RunContext,
  type RunSettings,
  type Session
} from "./RunContext.ts"
import { partOf } from "./RunDirectory.ts"
import type { Stop } from "./State.ts"
import { effectVersion, version } from "./Version.ts"

/** What the record of a run holds: lengths and digests only, unless it is said otherwise. */
export interface TraceChoices extends Partial<Omit<TraceOptions, "redact">> {
  /** What must never be written down, whatever else is. The model, tools and the effect ledger see it all the same. */
  readonly redact?: ReadonlyArray<Redaction.RedactionRule>
}

export interface RunOptions {
  readonly limits?: Partial<Limits.Limits>
  /** How several calls of one turn are treated. Default `sequential`. */
  readonly calls?: CallPolicy
  readonly sampling?: Partial<RunSettings["sampling"]>
  readonly thinking?: boolean
  /** Hold calls to a grammar of the advertised tools, where engine and family can do that. Default true. */
  readonly constrained?: boolean
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

const settingsOf = (
  options: RunOptions,
  approver: Approver,
  authority: Authority,
  artifacts: string | undefined
): RunSettings => ({
  limits: { ...Limits.defaults, ...options.limits },
  calls: options.calls ?? "sequential",
  sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 0, ...options.sampling },
  thinking: options.thinking,
  constrained: options.constrained ?? true,
  tools: { fixtures: {}, ...(artifacts === undefined ? {} : { artifacts }), ...options.settings },
  approver,
  gates: { ...Gates.defaults, authority, ...options.gates }
})

const check = (settings: RunSettings, session: Session): Effect.Effect<void, InvalidOptions> => {
  const problem = Limits.problemWith(settings.limits) ?? Gates.problemWith(settings.gates)
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

const gatesRecorded = ({ authority, candidates, dryRun, governor, profile, retry }: Gates.Gates) => ({
  profile,
  authority: authority.name,
  governor: governor.name,
  weights: governor.weights,
  retry: { attempts: retry.attempts, delay_ms: retry.delayMillis, factor: retry.factor },
  dry_run: dryRun,
  candidates
})

const opening = (run: RunContext, length: number): ReadonlyArray<TraceInput> => {
  const { session, settings, trace } = run
  const { template, ...model } = session.model
  const { build } = model
  const tools = session.registry.tools.map(({ contract, hash, name }) => ({
    name,
    hash,
    risk: contract.risk,
    ledger: contract.ledger,
    retry: contract.retry,
    reversible: contract.reversible,
    evidence: contract.evidence.source,
    ...(contract.compensation === undefined ? {} : { compensation: contract.compensation })
  }))
  return [
    {
      type: "run_started",
      step: "run",
      data: {
        task: trace.text(run.task),
        limits: Limits.recorded(settings.limits),
        calls: settings.calls,
        render: "verbatim",
        content: trace.options.content,
        committed_len: length,
        ...(trace.options.redact === undefined ? {} : { redact: trace.options.redact.names })
      }
    },
    {
      type: "provenance",
      step: "run",
      data: {
        product: {
          writ: version,
          effect: effectVersion,
          node: process.versions.node,
          // Also among the facts of the model's build; here because they are what the run depends on.
          ...(build?.["library"] === undefined ? {} : { library: String(build["library"]) }),
          ...(build?.["llamaCpp"] === undefined ? {} : { llamaCpp: String(build["llamaCpp"]) })
        },
        model: { ...model, ...(template === undefined ? {} : { templateSha256: hash("sha256", template) }) },
        codec: session.codec.id,
        codec_reason: session.codecReason,
        tools,
        tools_hash: session.registry.hash,
        system: trace.text(session.system ?? ""),
        policy: settings.approver.name,
        gates: gatesRecorded(settings.gates),
        sampling: settings.sampling,
        profile: { thinking: settings.thinking ?? null, constrained: settings.constrained },
        not_carried: run.constraint?.notCarried ?? []
      }
    }
  ]
}

interface Services {
  readonly pool: ToolPool["Service"]
  readonly artifactStore: ArtifactStore["Service"]
  readonly ledger: EffectLedger["Service"]
  readonly background: RunContext["background"]
  readonly clock: Clock.Clock
}

const contextOf = (
  session: Session,
  task: string,
  runId: string,
  settings: RunSettings,
  trace: RunTrace,
  services: Services,
  { emit, past, watch }: Pick<Control, "emit" | "past" | "watch">
): RunContext => ({
  ...services,
  runId,
  effectRunId: past?.past.rootRunId ?? runId,
  firstTurn: past?.past.openTurn?.turn ?? past?.past.nextTurn ?? 0,
  userPending: true,
  past,
  task,
  session,
  settings,
  constraint: constraintOf(settings.constrained, session.codec, session.registry, session.model),
  trace,
  startedAt: nowMillis(services.clock),
  emit,
  watch,
  closed: false,
  budget: newBudget(),
  artifacts: [],
  memory: newMemory(),
  undoable: [],
  fingerprints: [],
  point: "preparing",
  stopRequest: undefined,
  current: undefined,
  open: undefined,
  sampled: 0,
  queued: undefined
})

/** Wall time as one timer for the whole run, so that a state costs no timer of its own. */
const watchWallTime = (run: RunContext): Effect.Effect<void, never, Scope.Scope> => {
  const { wallMillis } = run.settings.limits
  if (!Number.isFinite(wallMillis) || wallMillis === 0) return Effect.void
  const timeUp = Effect.sync(() => requestStop(run, () => ({ _tag: "Limit", kind: "wall_time" })))
  return Effect.asVoid(
    Effect.forkScoped(Effect.interruptible(Effect.delay(timeUp, wallMillis)), { startImmediately: true })
  )
}

/**
 * Lets somebody outside stop the run from the moment it exists: cancel it where it is, or (for a replay, which enacts a stop
 * that was recorded) stop it for a reason of the caller's.
 */
export interface Control {
  readonly emit: (event: AgentEvent) => void
  /** The run that this one continues. */
  readonly past?: RunContext["past"]
  /** The run's name, where it has one already. */
  readonly runId?: string
  readonly watch?: RunContext["watch"]
  readonly started: (cancel: Effect.Effect<void>, runId: string, stop: (reason: Stop) => void) => void
}

const record = Effect.fnUntraced(function* (run: RunContext, restore: Restore) {
  const length = yield* run.session.context.length
  yield* run.trace.append(...opening(run, length))
  yield* watchWallTime(run)
  run.emit({ _tag: "RunStarted", runId: run.runId, tracePath: run.trace.path })
  const stop = yield* drive(run, restore)
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
const nameOf = ({ past, runId }: Control): Effect.Effect<string, never, Ids> => {
  if (runId !== undefined) return Effect.succeed(runId)
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
        yield* check(settings, session)
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
        const run = contextOf(session, task, runId, settings, trace, services, control)
        control.started(
          Effect.sync(() => requestStop(run, cancelled)),
          runId,
          (reason) => requestStop(run, () => reason)
        )
        session.busy = true
        return yield* Effect.ensuring(
          record(run, restore),
          Effect.sync(() => {
            session.busy = false
          })
        )
      })
    )
  )
