/**
 * One request, one run of the governed loop: a session that holds the conversation so far, the last message as its task, its
 * own record. Tools of the server run here; calls of tools that the client brought end the run, once all of them are legal,
 * and are the client's to perform.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { Ids } from "../../actors/Ids.ts"
import { ToolPool } from "../../actors/ToolPool.ts"
import type { TraceError } from "../../actors/TraceWriter.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import type { MessageCall } from "../../engine/Message.ts"
import type { Model } from "../../engine/Model.ts"
import { isObject, parse } from "../../tools/JsonText.ts"
import * as Registry from "../../tools/Registry.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import * as WarmSessions from "../ai/WarmSessions.ts"
import * as Limits from "../Limits.ts"
import type { Outcome } from "../Outcome.ts"
import { execute, type InvalidOptions, type RunOptions, type RunServices } from "../Run.ts"
import { type CallRecord, openingOptions, type RunContext, type Watch } from "../RunContext.ts"
import type { Stop } from "../State.ts"
import { type ChatError, invalid } from "./ChatError.ts"
import { madeId } from "./ChatMessages.ts"
import { type ChatPlan, pastOf, pendingOf, planOf } from "./ChatPlan.ts"
import type { ChatRequest } from "./ChatRequest.ts"
import * as ClientTools from "./ClientTools.ts"
import { plainTurn, proseIn, type Seat, take } from "./Seat.ts"
import { endOf } from "./StopTexts.ts"

export interface AnsweringOptions extends RunOptions {
  /** The server's own tools. */
  readonly tools: Registry.Registry
  readonly codec?: string
  /** Comes before what a client's system messages say. */
  readonly system?: string
  /** Requests that run at a time, each in a session of its own; the model must have as many. */
  readonly sessions: number
  /** Each request gets a session of its own and its whole conversation on record, so that a run that waits for an approval can go on. */
  readonly alone?: boolean
}

export interface Answered {
  readonly outcome: Outcome
  /** Calls for the client to perform; empty unless the run stopped for them. */
  readonly calls: ReadonlyArray<MessageCall>
  /** What the model said before them. */
  readonly prose: string
  /** The answer, where it had to be an object; `undefined`: it is not, or none was asked for. */
  readonly object: string | undefined
  /** Tokens before the first turn's own, and how many of them the session held already. */
  readonly promptTokens: number
  readonly cachedTokens: number
  /** Turns that were begun and dropped. */
  readonly rolledBack: number
}

export type AnsweringError = EngineError | InvalidOptions | TraceError

/** A run in progress. Closing the scope it was started in cancels it. */
export interface Answer {
  readonly runId: string
  readonly ended: Effect.Effect<Answered, AnsweringError>
  readonly cancel: Effect.Effect<void>
  /** Whether calls are listened for: then no text is an answer before its turn has ended. */
  readonly hearsCalls: boolean
}

/** Somebody who is told what a run does, and what became of it whether or not anybody waits for that. */
export interface Observer {
  readonly emit: (event: AgentEvent) => void
  /** It is sent as the model writes it. */
  readonly live: boolean
  readonly ended: (answered: Answered) => void
  /** It was interrupted: whoever asked has gone away. */
  readonly gone: () => void
}

export interface Answering {
  readonly model: WarmSessions.WarmSessions["model"]
  readonly start: (
    request: ChatRequest,
    /** The name of the one who asks. */
    whose: string,
    observer: Observer
  ) => Effect.Effect<Answer, AnsweringError | ChatError, RunServices | Scope.Scope>
}

/** What a run has shown of itself. */
interface Notes {
  promptTokens: number
  rolledBack: number
  calls: ReadonlyArray<MessageCall>
  prose: string
  object: string | undefined
}

/** What the client brings. */
interface Own extends Pick<ChatRequest, "form"> {
  /** Tools whose calls are not performed here. */
  readonly names: ReadonlySet<string>
}

/** One of several calls where only one was asked for: the model was told, the client gets the first. */
const overLimit = (run: RunContext, { proposed }: CallRecord): boolean =>
  run.settings.calls === "single" && proposed.ordinal > 0

/** The answer as a call, where it stands alone. */
const objectIn = (waiting: ReadonlyArray<CallRecord>, notes: Notes): Stop | undefined => {
  if (waiting.length !== 1) return undefined
  notes.object = JSON.stringify(waiting[0]!.proposed.arguments)
  return { _tag: "NeedsInput", question: `the answer is what ${ClientTools.answerName} was called with` }
}

/** All calls of the open turn as the client gets them; nothing while one of them cannot be used, or is the server's. */
const handOver = (run: RunContext, seat: Seat, notes: Notes, { form, names }: Own): Stop | undefined => {
  const records = run.open?.records ?? []
  const waiting = records.filter(({ answer }) => answer === undefined)
  const refused = records.filter(({ answer }) => answer !== undefined)
  if (waiting.length === 0 || refused.some((record) => !overLimit(run, record))) return undefined
  if (waiting.some(({ proposed }) => !names.has(proposed.name))) return undefined
  const isAnswer = ({ proposed }: CallRecord) => form._tag === "Object" && proposed.name === ClientTools.answerName
  if (waiting.some(isAnswer)) return objectIn(waiting, notes)
  const ids = waiting.map(({ proposed }) => proposed.id ?? "")
  const usable = ids.every((id, at) => /^[A-Za-z0-9_-]{1,64}$/.test(id) && ids.indexOf(id) === at)
  notes.calls = waiting.map(({ proposed: { arguments: args, name, ordinal } }, at) => ({
    name,
    arguments: args,
    id: usable ? ids[at]! : madeId(run.runId, ordinal)
  }))
  const turn = plainTurn(run.session)
  notes.prose = proseIn(run.session)
  const asWritten = usable || waiting.every(({ proposed }) => proposed.id === undefined)
  if (refused.length === 0 && asWritten && turn !== undefined) seat.told = turn
  return {
    _tag: "NeedsInput",
    question: `the client performs ${waiting.map(({ proposed }) => proposed.name).join(", ")}`
  }
}

const dropped = (stop: Stop): boolean =>
  stop._tag !== "Completed" && stop._tag !== "NeedsInput" && !(stop._tag === "Limit" && stop.kind === "output_tokens")

const watching =
  (plan: ChatPlan, seat: Seat, notes: Notes, own: Own): Watch =>
  (run, after, next) =>
    Effect.gen(function* () {
      const { session } = run
      if (after === "Preparing" && next._tag === "Generating") {
        if (notes.promptTokens === 0) {
          // An engine that cannot measure has bigger troubles, which the turn will name.
          const opening = yield* Effect.orElseSucceed(
            session.context.measure(session.codec.opening(openingOptions(run))),
            () => 0
          )
          notes.promptTokens = (yield* session.context.length) + opening
        }
        yield* seat.ready(session, pendingOf(plan).count)
      }
      if (after === "Generating") {
        if (next._tag === "Done" && dropped(next.stop)) notes.rolledBack += 1
        else yield* seat.spoke(session)
      }
      return after === "Admitting" && next._tag === "Acting" ? handOver(run, seat, notes, own) : undefined
    })

interface Work {
  readonly options: AnsweringOptions
  readonly sessions: WarmSessions.WarmSessions
  readonly clientTools: ReturnType<typeof ClientTools.make>
}

/** The server's own options with what the request says. */
const optionsFor = (
  { alone: _, codec: __, sessions: ___, system: ____, tools: _____, ...base }: AnsweringOptions,
  request: ChatRequest
): RunOptions => {
  const { maxTokens, parallel, sampling, thinking } = request
  const most = base.limits?.outputTokens ?? Limits.defaults.outputTokens
  // Samples of a greedy turn are all the same: one is enough, whatever the server takes else.
  const greedy = (sampling.temperature ?? base.sampling?.temperature) === 0
  return {
    ...base,
    sampling: { ...base.sampling, ...sampling },
    ...(greedy && base.gates !== undefined ? { gates: { ...base.gates, candidates: 1 } } : {}),
    ...(thinking === undefined ? {} : { thinking }),
    ...(parallel === false ? { calls: "single" } : {}),
    ...(maxTokens === undefined
      ? {}
      : {
          continued: false,
          limits: { ...base.limits, outputTokens: Math.min(most, maxTokens) }
        })
  }
}

/** What is told of a run that has not ended yet. */
type Ready = Deferred.Deferred<Pick<Answer, "runId" | "cancel">>

const ownOf = ({ form, tools = [] }: ChatRequest): Own => ({
  form,
  names: new Set([...tools.map(({ name }) => name), ...(form._tag === "Object" ? [ClientTools.answerName] : [])])
})

/** An answer that is written as the object that was asked for. */
const objectOf = ({ stop }: Outcome, { registry }: ChatPlan, { form }: ChatRequest): string | undefined => {
  if (form._tag !== "Object" || stop._tag !== "Completed") return undefined
  const value = Result.getOrUndefined(parse(stop.text, { maxDepth: 64 }))
  const tool = registry.get(ClientTools.answerName)
  if (value === undefined || !isObject(value) || tool === undefined) return undefined
  return Result.isSuccess(tool.check(value)) ? stop.text : undefined
}

/** Leases, runs and leaves. */
const run = Effect.fnUntraced(function* (
  { options, sessions }: Work,
  plan: ChatPlan,
  request: ChatRequest,
  { emit, ended, gone, live }: Observer,
  ready: Ready
): Effect.fn.Return<Answered, AnsweringError, RunServices | Scope.Scope> {
  const warm = yield* sessions.lease(options.alone === true ? [] : plan.keys, {
    tools: plan.registry,
    ...(plan.system === undefined ? {} : { system: plan.system })
  })
  const seat = yield* take(warm, plan)
  const { session } = warm
  const cachedTokens = warm.length
  const runId = yield* (yield* Ids).run
  const past = pastOf(plan, session.codec.id, warm.keys.length, runId)
  const notes: Notes = { promptTokens: 0, rolledBack: 0, calls: [], prose: "", object: undefined }
  const own = ownOf(request)
  const executed = execute(session, plan.task, optionsFor(options, request), {
    emit,
    live,
    started: (cancel) => void Deferred.doneUnsafe(ready, Effect.succeed({ runId, cancel })),
    runId,
    watch: watching(plan, seat, notes, own),
    ...(past === undefined ? {} : { past: { past, answer: undefined } })
  })
  const pool = ClientTools.around(yield* ToolPool, own.names)
  const outcome = yield* Effect.provideService(executed, ToolPool, pool).pipe(
    Effect.tap(({ stop }) =>
      Effect.sync(() => {
        const turn = stop._tag === "Completed" ? plainTurn(session) : undefined
        if (turn === undefined || stop._tag !== "Completed") return
        if (turn.content === stop.text && endOf(stop.text, request.stop) === undefined) seat.told = turn
      })
    ),
    Effect.onInterrupt(() => Effect.sync(gone)),
    Effect.ensuring(seat.leave)
  )
  const promptTokens = notes.promptTokens === 0 ? yield* session.context.length : notes.promptTokens
  const calls = outcome.stop._tag === "NeedsInput" ? notes.calls : []
  const object = notes.object ?? objectOf(outcome, plan, request)
  const answered = {
    outcome,
    calls,
    object,
    prose: notes.prose,
    rolledBack: notes.rolledBack,
    promptTokens,
    cachedTokens
  }
  ended(answered)
  return answered
})

const joined = (ours: Registry.Registry, brought: Registry.Registry): Effect.Effect<Registry.Registry, ChatError> =>
  Effect.mapError(Registry.merge(ours, brought), ({ message, tool }) =>
    invalid("response_format", `${tool}: ${message}`)
  )

/** Opens the sessions, in the caller's scope. Fails where no codec speaks the model's language. */
export const make = Effect.fnUntraced(function* (
  options: AnsweringOptions
): Effect.fn.Return<Answering, EngineError, Model | Scope.Scope> {
  const sessions = yield* WarmSessions.make({ codec: options.codec, limit: options.sessions })
  const nothing = yield* Effect.orDie(Registry.make([]))
  const work: Work = { options, sessions, clientTools: ClientTools.make() }
  const registryFor = Effect.fnUntraced(function* ({ form, tools = [], withoutTools }: ChatRequest) {
    const last = form._tag === "Object" ? [ClientTools.answerTool(form.name, form.schema)] : []
    const brought =
      tools.length + last.length === 0
        ? nothing
        : yield* Effect.mapError(work.clientTools([...tools, ...last]), ({ message, param }) =>
            param === ClientTools.parametersAt(tools.length)
              ? invalid("response_format.json_schema.schema", message)
              : invalid(param, message)
          )
    if (withoutTools || tools.length > 0) return brought
    return last.length === 0 ? options.tools : yield* joined(options.tools, brought)
  })
  return {
    model: sessions.model,
    start: Effect.fnUntraced(function* (request, whose, observer) {
      const registry = yield* registryFor(request)
      const thinking = request.thinking ?? options.thinking
      const plan = planOf(sessions.codec, registry, request.conversation, options.system, thinking, whose)
      const ready: Ready = yield* Deferred.make<Pick<Answer, "runId" | "cancel">>()
      const fiber = yield* Effect.forkScoped(Effect.scoped(run(work, plan, request, observer, ready)))
      // A run that cannot even be opened ends before it is ready.
      const { cancel, runId } = yield* Effect.raceFirst(
        Deferred.await(ready),
        Effect.flatMap(Fiber.join(fiber), () => Effect.never)
      )
      return { runId, cancel, ended: Fiber.join(fiber), hearsCalls: registry.tools.length > 0 }
    })
  }
})
