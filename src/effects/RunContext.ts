/**
 * What the states of one run share: settings that do not change, services that are open, and the few things that do change
 * (budget, the open turn, a request to stop). Only the run's own fibers touch it.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { ArtifactRef, ArtifactStore } from "../actors/ArtifactStore.ts"
import type { EffectLedger } from "../actors/EffectLedger.ts"
import type { RedactionRule } from "../actors/Redaction.ts"
import type { ToolPool } from "../actors/ToolPool.ts"
import type { CancelPoint, Content } from "../actors/TraceEvent.ts"
import type { RunTrace, TraceOptions } from "../actors/TraceWriter.ts"
import type { Codec, RenderOptions, ToolAnswer } from "../engine/codecs/Codec.ts"
import type { EngineError } from "../engine/EngineError.ts"
import type { Priority } from "../engine/Generation.ts"
import type { CompiledGrammar } from "../engine/Grammar.ts"
import type { ModelIdentity, ModelSession } from "../engine/Model.ts"
import type { Stage } from "../tools/AttemptClass.ts"
import type { RegisteredTool, Registry, ValidatedArguments } from "../tools/Registry.ts"
import type { Touch } from "../tools/Terms.ts"
import type { Answer, EffectClaim, ProposedCall, ToolOutcome, ToolSpec } from "../tools/ToolCall.ts"
import type { ToolSettings } from "../tools/ToolContext.ts"
import type { AgentEvent } from "./AgentEvent.ts"
import type { ContextPolicy } from "./ContextPolicy.ts"
import type { Gates } from "./Gates.ts"
import type { StateOptions } from "./KeptState.ts"
import type { Limits, Spent } from "./Limits.ts"
import type { Memory } from "./Memory.ts"
import type { Past } from "./Past.ts"
import { type Phase, type PhaseTable, phaseOf } from "./Phases.ts"
import type { Approver } from "./Policy.ts"
import { type Listening, mayBecome } from "./Spoken.ts"
import type { Active, State, Stop } from "./State.ts"
import type { Transcript } from "./Transcript.ts"

/** How the calls of one turn are treated: only the first, one after another, or reads side by side. */
export type CallPolicy = "single" | "sequential" | "parallel"

/** Everything about a run that is decided before it starts. */
export interface RunSettings {
  readonly limits: Limits
  readonly calls: CallPolicy
  readonly sampling: {
    readonly temperature: number
    readonly topK: number
    readonly topP: number
    readonly seed: number
  }
  readonly thinking: boolean | undefined
  /** All turns are in this phase; without one the run decides turn by turn. */
  readonly phase: Phase | undefined
  readonly phases: PhaseTable
  /** A turn that is `CLARIFY("…")` and nothing else asks the user. */
  readonly clarify: boolean
  /** Calls are held to a grammar, where engine and family can do that. */
  readonly constrained: boolean
  /** A plain answer that was cut goes on once. */
  readonly continued: boolean
  readonly context: ContextPolicy
  /** Among the sessions of one engine. */
  readonly priority: Priority | undefined
  readonly state: StateOptions | undefined
  readonly tools: ToolSettings
  readonly approver: Approver
  readonly gates: Gates
}

/** One call of the open turn, from proposal to answer. `answer` is set exactly once. */
export interface CallRecord {
  readonly callId: string
  readonly turn: number
  readonly proposed: ProposedCall
  tool?: RegisteredTool
  arguments?: ValidatedArguments
  /** Where its legality is on the record. */
  legalitySeq?: number
  /** It would change what an earlier call was refused to change. */
  followsRefusal?: boolean
  touches?: ReadonlyArray<Touch>
  /** The ledger had this attempt when the call was admitted. */
  inquiry?: boolean
  prices?: { readonly cost: number; readonly hazard: number }
  /** When somebody allowed it, by the run's clock. */
  approvedAt?: number
  outcome?: ToolOutcome
  answer?: Answer
  /** The gate that stopped it after it had begun to run. */
  failedAt?: Stage
  /** The run stopped before this call had its turn. */
  skipped?: true
  /** The ledger already knew what this call came to, and what it left: nothing ran. */
  replayed?: "succeeded" | "failed" | "unknown"
  replayedEffect?: EffectClaim
}

/** A kept turn whose calls, or whose mistakes, the model has not yet been answered. */
export interface OpenTurn {
  readonly turn: number
  readonly records: ReadonlyArray<CallRecord>
  readonly feedback?: { readonly code: string; readonly answer: Answer }
}

/** An answer as the codec renders it. */
export interface PreparedAnswer extends ToolAnswer {
  readonly truncated: boolean
}

/** Answers that wait to be evaluated, with the turn they belong to: one per call, or one feedback. */
export interface QueuedAnswers {
  readonly turn: OpenTurn
  readonly answers: ReadonlyArray<PreparedAnswer>
}

/** A question to the user that a run stopped with, and what the run had come to: whoever answers goes on from there. */
export interface Asked {
  readonly runId: string
  /** The run that effects are keyed under. */
  readonly rootRunId: string
  /** Events of its record. */
  readonly events: number
  readonly task: string
  readonly nextTurn: number
  readonly spent: Spent
}

/** One live conversation with a model: its context, its history, and what is still owed to it. */
export interface Session {
  readonly model: ModelIdentity
  readonly context: ModelSession
  readonly codec: Codec
  /** What decided on the codec, for the provenance. */
  readonly codecReason: string
  readonly registry: Registry
  /** Tools whose calls are recognised, where they are others than those advertised. */
  readonly heard?: ReadonlyArray<ToolSpec>
  readonly system: string | undefined
  readonly transcript: Transcript
  /** Tokens of a turn's opening and closing, by what the turn follows. */
  readonly frameSizes: Map<string, number>
  /** Has the system block been evaluated? */
  opened: boolean
  /** A turn that could not be rolled back is still open. */
  turnLeft: boolean
  /** Answers of an earlier run that stopped before they were evaluated. */
  owed: QueuedAnswers | undefined
  /** The last run stopped to ask, and nobody has answered. */
  asked?: Asked | undefined
  busy: boolean
}

/** Drops the open turn. Where that fails, whoever uses the session next begins with it. */
export const rollBack = (session: Session): Effect.Effect<void, EngineError> =>
  Effect.onExit(session.context.rollback, (exit) =>
    Effect.sync(() => {
      session.turnLeft = Exit.isFailure(exit)
    })
  )

export interface Budget {
  turns: number
  toolCalls: number
  rejected: number
  skipped: number
  artifacts: number
  outputTokens: number
  prefillTokens: number
  repairs: number
  modelMillis: number
  toolMillis: number
  /** Turns that were asked of the engine, samples and continuations included, and the milliseconds it says it took for them. */
  generations: number
  engineMillis: number
}

/**
 * Somebody who is told of each step before the next one: `after` a state, on the way to `next`; or between two calls, where
 * both are `Acting`. A run goes on when it is done, or stops for the reason it gives.
 */
export type Watch = (run: RunContext, after: Active["_tag"], next: State) => Effect.Effect<Stop | undefined>

/** The run, and its call, that another run is performed for; and how deep that lies: 1 inside a run that nobody called. */
export interface Parent {
  readonly run: string
  readonly call: string
  readonly depth: number
  /** What the inner run's effects are keyed under: the same whichever part of the outer run it is performed for. */
  readonly effectRunId: string
}

/** What the record of a run holds: lengths and digests only, unless it is said otherwise. */
export interface TraceChoices extends Partial<Omit<TraceOptions, "redact">> {
  /** What must never be written down, whatever else is. The model, tools and the effect ledger see it all the same. */
  readonly redact?: ReadonlyArray<RedactionRule>
}

/** What a run has seen of its session's recoveries, and how often it went on. */
export interface EngineLife {
  context: ModelSession
  seen: number
  tries: number
}

export interface RunContext {
  readonly runId: string
  readonly parent: Parent | undefined
  /** As they were asked for, for a run inside this one. */
  readonly traceChoices: TraceChoices
  readonly task: string
  /** The one that is spoken in: a chat's own until it hands over. */
  session: Session
  /** Where a chat hands the task over to. None: this run does not talk, or does no more. */
  taskSession: Session | undefined
  readonly settings: RunSettings
  readonly constraint: CompiledGrammar | undefined
  readonly trace: RunTrace
  readonly pool: ToolPool["Service"]
  readonly artifactStore: ArtifactStore["Service"]
  readonly ledger: EffectLedger["Service"]
  /** The run that effects are keyed under: this one, or the one it resumes. */
  readonly effectRunId: string
  /** Turns of the resumed run come first in step names and seeds. */
  readonly firstTurn: number
  /** Runs what nobody waits for: outcomes that arrive after their deadline. */
  readonly background: (effect: Effect.Effect<void>) => void
  readonly clock: Clock.Clock
  /** Milliseconds of the Clock at the start. */
  readonly startedAt: number
  readonly emit: (event: AgentEvent) => void
  /** Somebody reads along while the model writes. */
  readonly live: boolean
  /** Keeps a record of its own. */
  readonly watch: Watch | undefined
  /** The terminal event is written: the trace takes nothing more. */
  closed: boolean
  readonly budget: Budget
  readonly artifacts: Array<ArtifactRef>
  readonly memory: Memory
  /** Effects of this run that can be undone: the tool that undoes them, and the call. */
  readonly undoable: Array<{ readonly by: string; readonly call: string }>
  /** What calls looked like, newest last, for loop detection. */
  readonly fingerprints: Array<string>
  /** The task's text is not in the context yet. */
  userPending: boolean
  /** What the user has said to a question of the run before, as a message of its own. */
  reply: string | undefined
  /** What the parts before this one have used, where their budgets go on. */
  spent: Spent
  /** The phase that is on record. */
  phase: Phase | undefined
  /** What is to be put back before anything else, in a run that continues another. */
  past: { readonly past: Past; readonly answer: string | undefined } | undefined
  /** Where the run is, in the words of a cancellation. */
  point: CancelPoint
  /** The first reason to stop that came from outside the current state. */
  stopRequest: Stop | undefined
  current: Fiber.Fiber<unknown, unknown> | undefined
  open: OpenTurn | undefined
  /** Which of several samples the current turn is generated from. */
  sampled: number
  queued: QueuedAnswers | undefined
  /** What became of the engine while the run went on. */
  readonly engine: EngineLife
}

export const newBudget = (): Budget => ({
  turns: 0,
  toolCalls: 0,
  rejected: 0,
  skipped: 0,
  artifacts: 0,
  outputTokens: 0,
  prefillTokens: 0,
  repairs: 0,
  modelMillis: 0,
  toolMillis: 0,
  generations: 0,
  engineMillis: 0
})

/** Tools whose calls are recognised in what the model writes. */
export const heardBy = ({ heard, registry }: Session): ReadonlyArray<ToolSpec> => heard ?? registry.specs

const afterAnswers = ({ session }: RunContext): boolean => {
  const last = session.transcript.entries.at(-1)
  return last?.kind === "tool" || last?.kind === "feedback"
}

/** The phase that the next turn, or the one that is under way, is in. */
export const phaseNow = (run: RunContext): Phase =>
  phaseOf({
    forced: run.settings.phase,
    chatting: run.taskSession !== undefined,
    tools: heardBy(run.session).length > 0,
    afterAnswers: afterAnswers(run)
  })

/** What the codec needs to know to render for this run: the tools, and the reasoning of the phase it is in. */
export const renderOptions = (run: RunContext): RenderOptions => {
  const { thinking } = run.settings.phases[phaseNow(run)]
  return { tools: run.session.registry.specs, ...(thinking === undefined ? {} : { thinking }) }
}

/** The same for the assistant's opening, which some families print only after a user turn. */
export const openingOptions = (run: RunContext): RenderOptions => ({
  ...renderOptions(run),
  after: afterAnswers(run) ? "answers" : "user"
})

/** Which actions the run listens for in what is said. */
export const listening = (run: RunContext): Listening => ({
  clarify: run.settings.clarify && run.taskSession === undefined,
  handOver: run.taskSession !== undefined
})

/** How this turn is shown while it is written. */
export const showing = (run: RunContext) => ({
  stream: run.settings.phases[phaseNow(run)].stream,
  waits: (text: string) => mayBecome(text, listening(run))
})

/** What follows a kept turn: some families close a turn of calls differently. */
export const closingOf = (codec: Codec, calls: boolean): Codec["closing"] =>
  calls ? (codec.closingAfterCalls ?? codec.closing) : codec.closing

/** A tool's name as the trace may hold it: a registered name is in the provenance anyway, any other came from the model. */
export const toolLabel = (run: RunContext, name: string): Content =>
  run.session.registry.get(name) === undefined ? run.trace.text(name) : name

/** Gives back the interruptibility of the region around an uninterruptible one. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Milliseconds, with fractions, by the run's clock. */
export const nowMillis = (clock: Clock.Clock): number => Number(clock.currentTimeNanosUnsafe()) / 1e6

/** Milliseconds of wall time left; `Infinity` without a limit. */
export const wallLeft = (run: RunContext): number =>
  run.settings.limits.wallMillis - run.spent.wallMillis - (nowMillis(run.clock) - run.startedAt)

/** Counts a turn that has to be repaired: malformed, or refused as a whole. A reason to stop once there were too many in a row. */
export const repairStop = (run: RunContext): Stop | undefined => {
  run.budget.repairs++
  return run.budget.repairs > run.settings.limits.repairs ? { _tag: "Limit", kind: "repairs" } : undefined
}

/** Three decimals are what a microsecond needs, and keep lines short. */
export const round3 = (millis: number): number => Math.round(millis * 1000) / 1000

/** Calls side by side have fibers of their own: none goes on after a stop that another one of them has brought about. */
export const unlessStopped = <A, E>(run: RunContext, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => (run.stopRequest === undefined ? effect : Effect.interrupt))
