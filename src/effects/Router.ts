/**
 * Talk or work? The model is asked for one of two words, in a session of its own, before a run begins. Whatever is not
 * plainly `chat` is a task: every call of a task is gated by itself, so a task too many costs time and a chat too many costs
 * the task. A chat has no tools and may hand over; what it hands over goes on in the same run.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { Ids } from "../actors/Ids.ts"
import type { Action, Codec, RenderOptions } from "../engine/codecs/Codec.ts"
import { opensReasoning } from "../engine/codecs/Thinking.ts"
import { EngineError } from "../engine/EngineError.ts"
import type { EndReason } from "../engine/Generation.ts"
import type { Model, ModelIdentity } from "../engine/Model.ts"
import { answerLead, wordsGrammar } from "../engine/WholeTurn.ts"
import * as Registry from "../tools/Registry.ts"
import { type AgentError, type AgentOptions, type RunHandle, type Services, startWith } from "./Agent.ts"
import { cancelled } from "./AgentLoop.ts"
import type { Routed } from "./Beginning.ts"
import * as Limits from "./Limits.ts"
import type { Outcome } from "./Outcome.ts"
import { type PhaseSettings, tableOf } from "./Phases.ts"
import { type Control, execute, standardSampling } from "./Run.ts"
import { nowMillis, type RunSettings, type Session } from "./RunContext.ts"
import { open, type SessionOptions } from "./Session.ts"
import { handOverText } from "./Spoken.ts"
import type { Stop } from "./State.ts"

/** `auto`: the model decides. */
export type Route = "auto" | "chat" | "task"

export interface RoutedOptions extends AgentOptions {
  /** Default `auto`. */
  readonly route?: Route
  /** What a chat is told instead of `system`. It should say how to hand over. */
  readonly chatSystem?: string
}

const classifySystem = [
  "Decide what the message needs, and answer with one word.",
  "chat: a greeting, small talk, thanks, or a question that a few sentences from memory answer.",
  "task: anything that needs files, tools, the web, calculation, current facts, or work in several steps."
].join("\n")

export const chatSystem = [
  "You talk with the user. Answer in a few sentences. You have no tools here and can do no work.",
  `If the message asks for work, for files, for calculation or for facts you do not have, answer with exactly ${handOverText} and nothing else.`
].join("\n")

/** UTF-16 units of a message that are read to decide, at most; of a longer one its beginning and its end. */
const mostUnits = 4000
/** Tokens for everything around the message. */
const frameTokens = 400

const shortened = (task: string, { contextTokens }: ModelIdentity): string => {
  // A letter can take several tokens.
  const units = Math.max(100, Math.min(mostUnits, Math.floor((contextTokens - frameTokens) / 3)))
  const tail = Math.floor(units / 4)
  return task.length <= units ? task : `${task.slice(0, units - tail)}\n…\n${task.slice(-tail)}`
}

type Reading = Pick<Routed, "reason" | "route">

const readings = (text: string, reason: EndReason): Reading => {
  const said = text.trim()
  if (reason === "length") return { route: "task", reason: "overrun" }
  if (said === "chat" || said === "task") return { route: said, reason: "word" }
  if (said === "") return { route: "task", reason: "empty" }
  const both = /\bchat\b/i.test(said) && /\btask\b/i.test(said)
  return { route: "task", reason: both ? "both" : "garbage" }
}

/** What the model wrote, as a decision. Reasoning that came all the same is not part of it. */
export const read = (action: Action, reason: EndReason): Reading => {
  if (action._tag === "FinalText") return readings(action.text, reason)
  if (reason === "length") return { route: "task", reason: "overrun" }
  return { route: "task", reason: action._tag === "Malformed" && action.code === "empty_turn" ? "empty" : "garbage" }
}

/** A script writes what it writes, and is read as strictly. */
const canHold = ({ engine }: ModelIdentity): boolean => engine === "llama" || engine === "scripted"

const options: RenderOptions = { tools: [], thinking: false, after: "user" }

/** Before the grammar holds: whatever leads to an answer without reasoning. A script has no grammar, and leads itself. */
const openingOf = (codec: Codec, identity: ModelIdentity) =>
  identity.engine === "llama" ? [...codec.opening(options), ...answerLead(codec, options)] : codec.opening(options)

/** How the decision is written: the phase's settings, and the run's seed. */
type Deciding = Pick<PhaseSettings, "outputTokens" | "temperature" | "topK" | "topP"> & Pick<Sampling, "seed">
type Sampling = RunSettings["sampling"]

const decidingOf = ({ limits, phases, sampling }: Partial<AgentOptions> = {}): Deciding => {
  const all = { ...standardSampling, ...sampling }
  const wide = { thinking: undefined, limits: { ...Limits.defaults, ...limits }, sampling: all }
  return { ...tableOf(wide, phases).classify, seed: all.seed }
}

const ask = Effect.fnUntraced(function* ({ codec, context, model }: Session, task: string, deciding: Deciding) {
  yield* context.commit([...codec.system(classifySystem, options), ...codec.user(shortened(task, model))])
  const opened = model.engine !== "llama" && opensReasoning(codec, options)
  const parser = codec.parser({ tools: [], reasoningOpen: opened })
  let text = ""
  let ended: { readonly reason: EndReason; readonly tokens: number } | undefined
  const { outputTokens: maxTokens, seed, temperature, topK, topP } = deciding
  const request = {
    maxTokens,
    sampling: { temperature, topK, topP, seed },
    stops: codec.stops,
    live: false,
    grammar: wordsGrammar(["chat", "task"])
  }
  yield* Stream.runForEach(context.turn(openingOf(codec, model), request), (event) =>
    Effect.sync(() => {
      if (event._tag === "End") ended = { reason: event.reason, tokens: event.usage.outputTokens }
      else if (event._tag === "Piece") {
        text += event.text
        parser.push(event.text, event.tokens)
      }
    })
  )
  if (ended === undefined) {
    return yield* new EngineError({ reason: "failed", message: "the engine's turn ended without saying how" })
  }
  const { reason, tokens } = ended
  return { ...read(parser.end(reason).action, reason), text, tokens }
})

/** Asks the model. An engine that cannot, or fails, makes it a task: the run will say what is wrong with the engine. */
export const decide = Effect.fnUntraced(function* (
  task: string,
  session: Omit<SessionOptions, "tools" | "system"> = {},
  deciding: Deciding = decidingOf()
): Effect.fn.Return<Routed, never, Model> {
  const clock = yield* Clock.Clock
  const began = nowMillis(clock)
  const asked = Effect.scoped(
    Effect.flatMap(open({ ...session, tools: Registry.none }), (opened) =>
      canHold(opened.model)
        ? Effect.map(ask(opened, task, deciding), (said): Omit<Routed, "by"> => said)
        : Effect.succeed<Omit<Routed, "by">>({ route: "task", reason: "no_grammar" })
    )
  )
  const decided = yield* Effect.catchTag(asked, "EngineError", () =>
    Effect.succeed<Omit<Routed, "by">>({ route: "task", reason: "engine_error" })
  )
  return { ...decided, by: "model", millis: nowMillis(clock) - began }
})

/** What a session of the run's is opened with, whatever is said in it. */
const seatOf = ({ codec, priority, waitSeconds }: RoutedOptions): Omit<SessionOptions, "tools" | "system"> => ({
  ...(codec === undefined ? {} : { codec }),
  ...(priority === undefined ? {} : { priority }),
  ...(waitSeconds === undefined ? {} : { waitSeconds })
})

/** Which way a run goes: as its caller says, or the model, which is asked for as long as the run may take; that counts. */
export const routedBy = (given: RoutedOptions): Effect.Effect<Routed, never, Model> => {
  const { limits, route = "auto", task } = given
  if (route !== "auto") return Effect.succeed({ route, by: "caller", reason: "said" })
  const asked = decide(task, seatOf(given), decidingOf(given))
  const { wallMillis } = { ...Limits.defaults, ...limits }
  if (!(wallMillis >= 0 && Number.isFinite(wallMillis))) return asked
  const late: Routed = { route: "task", by: "model", reason: "overrun", millis: wallMillis }
  return Effect.map(Effect.timeoutOption(asked, wallMillis), (routed) => Option.getOrElse(routed, () => late))
}

/** A run can be stopped from its first moment. While there is only a decision, that is what is stopped, and the run is one that never began. */
const stoppable = Effect.fnUntraced(function* (control: Control) {
  const runId = control.runId ?? (yield* (yield* Ids).run)
  const asked = yield* Deferred.make<Stop>()
  let before: Stop | undefined
  let stop = (reason: Stop): void => {
    before ??= reason
    Deferred.doneUnsafe(asked, Effect.succeed(reason))
  }
  let cancel = Effect.sync(() => stop(cancelled("preparing")))
  control.started(
    Effect.suspend(() => cancel),
    runId,
    (reason) => stop(reason)
  )
  const started: Control["started"] = (cancelRun, _, stopRun) => {
    cancel = cancelRun
    stop = stopRun
    if (before !== undefined) stopRun(before)
  }
  return { asked: Deferred.await(asked), control: { ...control, runId, started } }
})

const within = Effect.fnUntraced(function* (
  given: RoutedOptions,
  outer: Control
): Effect.fn.Return<Outcome, AgentError, Services | Scope.Scope> {
  const { asked, control } = yield* stoppable(outer)
  const routed = yield* Effect.raceFirst(routedBy(given), Effect.as(asked, undefined))
  const session = yield* open(given)
  if (routed === undefined) return yield* execute(session, given.task, given, control)
  if (routed.route === "task") return yield* execute(session, given.task, given, { ...control, routed })
  const talk = { tools: Registry.none, system: given.chatSystem ?? chatSystem }
  const chat = yield* open({ ...seatOf(given), ...talk })
  return yield* execute(session, given.task, given, { ...control, routed, chat })
})

/** Runs one task, or talks, to the outcome. The model needs two sequences where it may talk. */
export const run = (given: RoutedOptions): Effect.Effect<Outcome, AgentError, Services> =>
  Effect.scoped(within(given, { emit: () => {}, started: () => {} }))

/** Starts it in the caller's scope. */
export const start = (given: RoutedOptions): Effect.Effect<RunHandle, AgentError, Services | Scope.Scope> =>
  startWith<AgentError, Services>((control) => Effect.scoped(within(given, control)))
