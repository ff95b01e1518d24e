/**
 * Runs a recorded run again: the same loop, with recorded model turns, tool outcomes, decisions and stops in the place of
 * model, tools, people and clocks. The same events come out, or the first one that did not is named. Nothing is executed
 * and no model is needed. What is not compared is listed in TraceCompare.ts.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ArtifactStore from "../../actors/ArtifactStore.ts"
import { EffectLedger } from "../../actors/EffectLedger.ts"
import { Ids } from "../../actors/Ids.ts"
import { ToolPool } from "../../actors/ToolPool.ts"
import { schemaId } from "../../actors/TraceEvent.ts"
import { type RunTrace, type TraceOptions, TraceWriter } from "../../actors/TraceWriter.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import { Model, type ModelIdentity } from "../../engine/Model.ts"
import type { Registry } from "../../tools/Registry.ts"
import { defaults, type Limits } from "../Limits.ts"
import { fold } from "../Past.ts"
import { Approval } from "../Policy.ts"
import { type Control, execute, type RunOptions } from "../Run.ts"
import type { Session } from "../RunContext.ts"
import { open } from "../Session.ts"
import { redactedReason } from "./Concealed.ts"
import { clockOf, gatesOf } from "./ReplayGates.ts"
import { ledger } from "./ReplayLedger.ts"
import { playback } from "./ReplayModel.ts"
import { type Published, pool } from "./ReplayPool.ts"
import { phaseOptions, replyIn, routeOf } from "./ReplayRoute.ts"
import { type Divergence, type Ending, type StoppedAt, Tape } from "./ReplayTape.ts"
import { recorded } from "./ReplayTerms.ts"
import * as ReplayTools from "./ReplayTools.ts"
import type { TraceRecord } from "./TraceReader.ts"

export type { Divergence, StoppedAt } from "./ReplayTape.ts"

/** A trace that cannot be replayed at all, and why. */
export class ReplayError extends Schema.TaggedError<ReplayError>()("ReplayError", { message: Schema.String }) {}

export interface ReplayOptions {
  /** The tools the run had. Others are a divergence of the provenance. */
  readonly tools: Registry
  /** For a run that continued another: the events of each part before it, oldest first. */
  readonly earlier?: ReadonlyArray<ReadonlyArray<TraceRecord>>
}

export interface ReplayVerdict {
  /** Everything that was compared came out as recorded. */
  readonly same: boolean
  /** Events that came out as recorded. */
  readonly compared: number
  readonly divergence?: Divergence
  /** The record ends before the run does: as far as it goes, it was compared. */
  readonly stoppedAt?: StoppedAt
}

/** A recorded run, taken apart. */
interface Recording {
  readonly runId: string
  readonly task: string
  readonly system: string
  readonly codec: string
  readonly codecReason: string
  readonly policy: string
  readonly gates: unknown
  readonly identity: ModelIdentity
  readonly options: RunOptions
  readonly limits: Limits
  /** Redaction rules that were in force and found nothing, by name. */
  readonly redact: ReadonlyArray<string> | undefined
  /** The run that it continued, with the user's answer if that one asked. */
  readonly past: Control["past"]
}

const refuse = (message: string) => Effect.fail(new ReplayError({ message }))

const limitsOf = (recorded: TraceRecord["data"][string]): Limits => {
  const known = recorded as Readonly<Record<string, number | null>>
  const named = Object.keys(defaults) as Array<keyof Limits>
  return Object.fromEntries(named.map((name) => [name, known[name] ?? Infinity])) as unknown as Limits
}

const contextOf = (recorded: TraceRecord["data"][string]): NonNullable<RunOptions["context"]> => {
  const { keep, on_full } = recorded as { readonly on_full: "refuse" | "compact"; readonly keep: number }
  return { onFull: on_full, keep }
}

/** `gates` as provenance says them; they are made when there is a tape. */
const takeApart = (
  started: TraceRecord,
  provenance: TraceRecord,
  records: ReadonlyArray<TraceRecord>
): Omit<Recording, "past"> => {
  const { calls, limits, redact, task } = started.data
  const { codec, codec_reason, context, gates, model, policy, profile, sampling, system } = provenance.data
  const { constrained = false, thinking } = (profile ?? {}) as {
    readonly thinking?: boolean | null
    readonly constrained?: boolean
  }
  return {
    runId: started.run_id,
    task: String(task),
    system: String(system),
    codec: String(codec),
    codecReason: String(codec_reason),
    policy: String(policy),
    gates,
    identity: model as ModelIdentity,
    limits: limitsOf(limits),
    redact: Array.isArray(redact) ? redact.map(String) : undefined,
    options: {
      limits: limitsOf(limits),
      calls: calls as never,
      sampling: sampling as never,
      ...(context === undefined ? {} : { context: contextOf(context) }),
      ...(typeof thinking === "boolean" ? { thinking } : {}),
      constrained,
      ...phaseOptions(provenance),
      trace: { content: true, tokenEvents: records.some(({ event_type: type }) => type === "generation_token") }
    }
  }
}

/** What the user answered to a call that asked: it was put before the model as that call's result. */
const answerOf = (records: ReadonlyArray<TraceRecord>, tools: Registry): string | undefined => {
  const given = records.find(
    ({ data, event_type: type }) =>
      (type === "tool_result_committed" || type === "tool_result_uncommitted") &&
      tools.get(String(data["tool"]))?.contract.asksUser === true
  )
  if (given === undefined) return undefined
  const { result } = JSON.parse(String(given.data["answer"])) as { readonly result?: unknown }
  return typeof result === "string" ? result : undefined
}

const pastOf = (
  records: ReadonlyArray<TraceRecord>,
  { earlier = [], tools }: ReplayOptions
): Effect.Effect<Control["past"], ReplayError> => {
  const resumed = records.find(({ event_type: type }) => type === "run_resumed")
  if (resumed === undefined) return Effect.succeed(undefined)
  if (earlier.length === 0) return refuse("the run continued another one, whose trace is needed too")
  const folded = fold(earlier)
  if (Result.isFailure(folded)) return refuse(`the run it continued cannot be continued: ${folded.failure}`)
  const asked = earlier.at(-1)?.at(-1)?.event_type === "run_needs_input"
  const said = folded.success.questioned === true ? replyIn(records) : answerOf(records, tools)
  // An answer that the model never got, for want of room or of time, is on no record: any stands for it.
  const answer = said ?? (resumed.data["spent"] === undefined ? undefined : "")
  return Effect.succeed({ past: folded.success, answer: asked ? answer : undefined })
}

/** What can be replayed, or why not. */
const read = (records: ReadonlyArray<TraceRecord>, replaying: ReplayOptions): Effect.Effect<Recording, ReplayError> => {
  const [started, provenance] = records
  if (started === undefined) return refuse("the trace is empty")
  if (started.schema !== schemaId) return refuse(`only traces of ${schemaId} can be replayed`)
  if (started.event_type !== "run_started") return refuse("the trace does not begin with run_started")
  if (started.data["content"] !== true) {
    return refuse("the trace holds no content; only a run recorded with --trace-content can be replayed")
  }
  const redacted = redactedReason(records)
  if (redacted !== undefined) return refuse(redacted)
  if (records.some(({ data, event_type: type }) => type === "generation_token" && data["ids"] === undefined)) {
    return refuse(
      "redaction rules were in force, under which token events only count; without token events it could be replayed"
    )
  }
  if (provenance?.event_type !== "provenance") return refuse("the trace does not say what the run was made of")
  if (records.some(({ run_id: id }) => id !== started.run_id)) return refuse("the trace holds more than one run")
  if (started.data["committed_len"] !== 0) {
    return refuse("the run continued a session whose beginning is not in this trace")
  }
  return Effect.map(pastOf(records, replaying), (past) => ({ ...takeApart(started, provenance, records), past }))
}

const identical = <A>(value: A): A => value

/** A write that failed in the recorded run fails again. */
const written = (tape: Tape) => {
  const failure = tape.writeFailure()
  return failure === undefined ? Effect.void : Effect.fail(failure)
}

/** A trace that is compared instead of kept. */
const trace = (tape: Tape, options: TraceOptions): RunTrace => ({
  options,
  path: undefined,
  append: (...events) =>
    Effect.suspend(() => {
      tape.take(events)
      return written(tape)
    }),
  note: (...events) => tape.take(events),
  flush: Effect.suspend(() => written(tape)),
  offer: (event) => tape.take([event]),
  length: () => tape.compared,
  text: identical,
  json: identical,
  digest: identical,
  redactions: () => 0
})

/** What found nothing finds nothing again. */
const foundNothing = (names: ReadonlyArray<string> | undefined): Pick<TraceOptions, "redact"> =>
  names === undefined
    ? {}
    : { redact: { names, text: (value) => ({ value, count: 0 }), json: (value) => ({ value, count: 0 }) } }

const controlOf = (tape: Tape, past: Control["past"]): Control => ({
  emit: () => {},
  past,
  started: (_cancel, _runId, stop) => {
    tape.stopRun = stop
  }
})

/** The run again, against the tape. */
const again = Effect.fnUntraced(function* (recording: Recording, tape: Tape, tools: Registry) {
  const { codec, codecReason, gates, identity, limits, past, policy, redact, runId, system, task } = recording
  const options = { ...recording.options, gates: gatesOf(tape, gates) }
  const named = { tools: recorded(tape, tools), codec, ...(system === "" ? {} : { system }) }
  const opened: Session = yield* open(named).pipe(
    Effect.provideService(Model, { ...noModel, identity }),
    Effect.mapError((error: EngineError) => new ReplayError({ message: error.message }))
  )
  const model = playback(tape, opened.codec, identity, limits.outputTokens)
  const context = yield* Effect.orDie(model.session)
  const published: Published = new WeakMap()
  const memory = Context.get(yield* Layer.build(ArtifactStore.layerMemory), ArtifactStore.ArtifactStore)
  const services = Context.empty().pipe(
    Context.add(ToolPool, pool(tape, published)),
    Context.add(ArtifactStore.ArtifactStore, ReplayTools.artifacts(tape, published, memory)),
    Context.add(EffectLedger, ledger(tape)),
    Context.add(Ids, Ids.of({ run: Effect.succeed(runId) })),
    Context.add(
      TraceWriter,
      TraceWriter.of({
        open: (_runId, options) => Effect.succeed(trace(tape, { ...options, ...foundNothing(redact) }))
      })
    ),
    Context.add(Approval, ReplayTools.approver(tape, policy)),
    Context.add(Clock.Clock, clockOf(tape, tools))
  )
  const session: Session = { ...opened, codecReason, context }
  const control = { ...controlOf(tape, past), ...routeOf(tape.records, session, yield* Effect.orDie(model.session)) }
  // A defect that is on the record is one of this run too; any other shows in the events.
  return yield* Effect.exit(Effect.provideContext(execute(session, task, options, control), services))
})

/** Stands in while the codec is looked up; nothing is asked of it. */
const noModel: Pick<Model["Service"], "tokenize" | "session"> = {
  tokenize: () => Effect.succeed([]),
  session: Effect.succeed({
    commit: () => Effect.never,
    turn: () => {
      throw new Error("nothing is generated")
    },
    keep: () => Effect.never,
    rollback: Effect.void,
    rewind: () => Effect.void,
    length: Effect.succeed(0),
    measure: () => Effect.succeed(0)
  })
}

const endedEarly = (tape: Tape, ending: Ending): ReplayVerdict =>
  ending._tag === "Diverged"
    ? { same: false, compared: tape.compared, divergence: ending.divergence }
    : { same: true, compared: tape.compared, stoppedAt: ending.stoppedAt }

const complete = (tape: Tape): ReplayVerdict => {
  const missing = tape.records[tape.compared]
  if (missing === undefined) return { same: true, compared: tape.compared }
  const { event_type: eventType, seq } = missing
  const divergence = { seq, eventType, path: "event_type", recorded: eventType, replayed: undefined }
  return { same: false, compared: tape.compared, divergence }
}

/** Replays a run from the events of its trace, in order, and compares. */
export const replay = (
  records: ReadonlyArray<TraceRecord>,
  options: ReplayOptions
): Effect.Effect<ReplayVerdict, ReplayError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const recording = yield* read(records, options)
      const tape = new Tape(records)
      const finished = Effect.map(again(recording, tape, options.tools), (exit): Exit.Exit<unknown, unknown> => exit)
      const first = yield* Effect.raceFirst(finished, Deferred.await(tape.ended))
      const early = yield* Deferred.poll(tape.ended)
      if (early._tag === "Some") return endedEarly(tape, yield* early.value)
      if (Exit.isExit(first) && Exit.isFailure(first) && tape.compared === 0) {
        return yield* refuse("the run's options cannot be used")
      }
      return complete(tape)
    })
  )
