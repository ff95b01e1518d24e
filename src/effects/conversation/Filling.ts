/**
 * Fills the blank slots of a conversation, in order, through the governed loop.
 *
 * One run of the loop per slot, not per turn: it begins with the messages before the slot as its history and ends with an
 * answer, so that limits, loop detection and the record span the whole exchange of calls and results. The slots of a file
 * share one session of the model, and each run is told only what came since the one before. What the loop had to learn for it:
 * a run can begin with a history nobody recorded (`Past` from messages, where a resumed run has it from a trace), and somebody
 * can be told of each step before the next (`Watch`); `Recording` is who is told. A file that ends in the middle of a turn is
 * the same as a run that is resumed: the turn is open, its calls go through gates and ledger, under the keys they had.
 */

import { hash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { ArtifactStore } from "../../actors/ArtifactStore.ts"
import { EffectLedger } from "../../actors/EffectLedger.ts"
import type { LedgerError } from "../../actors/EffectLedgerError.ts"
import type { TraceError } from "../../actors/TraceWriter.ts"
import type { Codec } from "../../engine/codecs/Codec.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import type { Model } from "../../engine/Model.ts"
import type { Registry } from "../../tools/Registry.ts"
import type { Answer, ToolSpec } from "../../tools/ToolCall.ts"
import type { AgentEvent } from "../AgentEvent.ts"
import type { Past } from "../Past.ts"
import { execute, type InvalidOptions, type RunOptions, type RunServices } from "../Run.ts"
import type { Session } from "../RunContext.ts"
import { open } from "../Session.ts"
import type { Stop } from "../State.ts"
import type { Artifact } from "./CallEvents.ts"
import { type Conversation, callsOf, type Message, textOf } from "./Conversation.ts"
import { ConversationError } from "./ConversationError.ts"
import * as EffectKeys from "./EffectKeys.ts"
import { entriesOf, systemOf } from "./History.ts"
import { Recording } from "./Recording.ts"
import { answerIn } from "./Results.ts"
import { nextPlace, type Place, problemIn, resultsOf, turnsIn } from "./Slots.ts"
import * as TurnMessage from "./TurnMessage.ts"
import type { Voice } from "./Voice.ts"

export interface FillingOptions extends RunOptions {
  readonly conversation: Conversation
  /** What the conversation is called: a path, the same for the same file each time. Effects are keyed under it. */
  readonly path: string
  /** The tools that the conversation declares, in its words (`Advertised`). */
  readonly tools: Registry
  readonly codec?: string | Codec
  /** Tools whose calls are recognised, where they are others than those declared. */
  readonly heard?: ReadonlyArray<ToolSpec>
  /** What the turns' traces call the model; without it, what the conversation does. */
  readonly model?: string
  /** A scripted engine says how its turns are named. */
  readonly voice?: Voice
  /** The user's answer, for a turn that stopped to ask. */
  readonly answer?: string
  /** Makes the conversation durable as it is now. */
  readonly save: (conversation: Conversation) => Effect.Effect<void, ConversationError>
  /** How many records the run of this name has already. */
  readonly recorded?: (name: string) => number
  readonly emit?: (event: AgentEvent) => void
  /** Whoever wants to stop the run is given a way to, anew for each slot. */
  readonly started?: (cancel: Effect.Effect<void>, stop: (reason: Stop) => void) => void
}

/** One slot's run. */
export interface SlotRun {
  readonly runId: string
  readonly tracePath: string | undefined
  readonly stop: Stop
  /** The message of the slot, counted from 0. */
  readonly at: number
}

export interface Filled {
  readonly conversation: Conversation
  /** Nothing was blank or open: nothing ran and nothing was saved. */
  readonly runs: ReadonlyArray<SlotRun>
  /** How the last run stopped; `undefined` where there was nothing to do. */
  readonly stop: Stop | undefined
  readonly turns: number
  readonly toolCalls: number
}

export type FillingError = ConversationError | EngineError | InvalidOptions | TraceError | LedgerError

interface Work {
  readonly options: FillingOptions
  readonly messages: Array<Message>
  readonly session: Session
  /** Messages that are in the model's context. */
  evaluated: number
}

const conversationOf = ({ messages, options }: Pick<Work, "messages" | "options">): Conversation => ({
  meta: options.conversation.meta,
  session: [...messages]
})

/** Answers of the open turn that the file holds. */
const answersIn = (turn: Message, results: Message | undefined, number: number): ReadonlyMap<string, Answer> => {
  const blocks = resultsOf(results)
  const answers = new Map<string, Answer>()
  for (const [ordinal, { id }] of callsOf(turn).entries()) {
    const block = blocks.find(({ tool_use_id }) => tool_use_id === id)
    if (block !== undefined) answers.set(`call-${number}-${ordinal}`, answerIn(block, turn))
  }
  return answers
}

/** What came before the place, as the loop takes it. */
const pastOf = ({ evaluated, messages, session }: Work, place: Place, name: string, recorded: number): Past => {
  const open = place._tag === "Open"
  const turn = turnsIn(messages, place.chain, open ? place.at + 1 : place.at)
  const entries = entriesOf(messages, evaluated, open ? place.at + 1 : place.at)
  const task = messages.slice(0, place.at).findLast(({ role }) => role === "user")
  return {
    rootRunId: name,
    parts: recorded,
    fromRunId: name,
    fromSeq: 0,
    task: task === undefined ? "" : textOf(task),
    system: systemOf(messages),
    codec: session.codec.id,
    toolsHash: session.registry.hash,
    redact: [],
    entries,
    openTurn: open ? { turn: turn - 1 } : undefined,
    answers: open ? answersIn(messages[place.at]!, messages[place.at + 1], turn - 1) : new Map(),
    nextTurn: turn,
    toolCalls: 0,
    completed: false,
    conversation: true
  }
}

/** Files of the run's artifacts. A result that was kept because it was too long to be told belongs to no tool. */
const leftIn =
  (directory: string | undefined) =>
  (known: ReadonlySet<string>): ReadonlyArray<Artifact> => {
    if (directory === undefined) return []
    try {
      return readdirSync(directory).flatMap((file): ReadonlyArray<Artifact> => {
        const name = /^[0-9a-f]{16}-(.+)$/.exec(file)?.[1]
        if (name === undefined || name.startsWith("result-call-")) return []
        const bytes = readFileSync(join(directory, file))
        const sha256 = hash("sha256", bytes)
        return known.has(`${sha256} ${name}`) ? [] : [{ name, sha256, bytes: bytes.length }]
      })
    } catch (error) {
      // None was written: then there is no directory.
      if ((error as { readonly code?: unknown }).code === "ENOENT") return []
      throw error
    }
  }

const acts = ({ tools }: Registry): boolean => tools.some(({ contract }) => contract.risk !== "read")

/** Under which name the slot's effects are keyed, and whether a turn has to say so. */
const keysOf = Effect.fnUntraced(function* ({ messages, options }: Work, place: Place) {
  const base = EffectKeys.baseName(options.path, messages.slice(0, place.chain))
  const before = messages.slice(place.chain, place._tag === "Open" ? place.at + 1 : place.at)
  const said = EffectKeys.saidIn(before)
  if (said !== undefined) return { name: said, says: false }
  if (!acts(options.tools)) return { name: base, says: false }
  const fresh = before.length === 0
  return { name: yield* EffectKeys.nameFor(yield* EffectLedger, base, fresh), says: fresh }
})

const reasonOf = (stop: Stop): string | undefined => {
  switch (stop._tag) {
    case "Limit":
      return stop.kind
    case "Failed":
      return stop.class
    default:
      return undefined
  }
}

const stateOf = ({ _tag }: Stop): string => _tag.replaceAll(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase()

/** A slot that was not filled: the last turn before it says how its run ended. */
const unfinished = ({ messages, options, ...work }: Work, place: Place, recording: Recording, stop: Stop) =>
  Effect.suspend(() => {
    const last = messages.findLastIndex(
      ({ role, trace }, at) => at >= place.chain && at <= recording.at && role === "assistant" && trace !== undefined
    )
    if (last < 0) return Effect.void
    messages[last] = TurnMessage.endedWith(messages[last]!, stateOf(stop), reasonOf(stop))
    return options.save(conversationOf({ ...work, messages, options }))
  })

/** The turns of the slot that were there go on: what they said of an end does not count. */
const resumed = (messages: Array<Message>, place: Place): void => {
  for (let at = place.chain; at < messages.length && at <= place.at; at++) {
    messages[at] = TurnMessage.goingOn(messages[at]!)
  }
}

/** Runs the loop from `place` until its slot is filled or the run stops. */
const fillAt = Effect.fnUntraced(function* (work: Work, place: Place) {
  const { messages, options, session } = work
  if (place._tag === "Missing") messages.push({ role: "assistant" })
  const { name, says } = yield* keysOf(work, place)
  const recorded = options.recorded?.(name) ?? 0
  resumed(messages, place)
  const store = yield* ArtifactStore
  const recording = new Recording({
    messages,
    at: place.at,
    open: place._tag === "Open",
    model: options.model ?? options.conversation.meta.model,
    voice: options.voice,
    keyed: says ? name : undefined,
    leftBehind: leftIn(store.directory?.(name)),
    save: Effect.suspend(() => options.save(conversationOf(work)))
  })
  const past = pastOf(work, place, name, recorded)
  const outcome = yield* execute(
    session,
    past.task,
    { ...options, clarify: false },
    {
      emit: (event) => {
        recording.hear(event)
        options.emit?.(event)
      },
      live: options.emit !== undefined,
      started: (cancel, _, stop) => options.started?.(cancel, stop),
      past: { past, answer: options.answer },
      runId: recorded === 0 ? name : `${name}-r${recorded + 1}`,
      watch: recording.watch
    }
  )
  const { stop } = outcome
  if (stop._tag !== "Completed" && !recording.unsaved) yield* unfinished(work, place, recording, stop)
  work.evaluated = recording.at + 1
  const run: SlotRun = { runId: outcome.runId, tracePath: outcome.tracePath, stop, at: recording.at }
  return { run, turns: outcome.turns - past.nextTurn, toolCalls: outcome.toolCalls }
})

const refuse = ({ conversation, path }: FillingOptions): Effect.Effect<void, ConversationError> => {
  const problem = problemIn(conversation)
  if (problem === undefined) return Effect.void
  return Effect.fail(new ConversationError({ path, place: `message ${problem.at}`, reason: problem.reason }))
}

/**
 * Fills what is blank and finishes what is open, in order, until the first run that does not complete. A conversation in which
 * nothing is to be done is not saved.
 */
export const fill = Effect.fnUntraced(function* (
  options: FillingOptions
): Effect.fn.Return<Filled, FillingError, Model | RunServices | Scope.Scope> {
  yield* refuse(options)
  const messages = [...options.conversation.session]
  const runs: Array<SlotRun> = []
  let [turns, toolCalls] = [0, 0]
  let work: Work | undefined
  for (let place = nextPlace(messages); place !== undefined; place = nextPlace(messages)) {
    const system = systemOf(messages)
    const { codec, heard, tools } = options
    const about = {
      tools,
      ...(codec === undefined ? {} : { codec }),
      ...(heard === undefined ? {} : { heard }),
      ...(system === "" ? {} : { system })
    }
    work ??= { options, messages, session: yield* open(about), evaluated: 0 }
    const filled = yield* fillAt(work, place)
    runs.push(filled.run)
    turns += filled.turns
    toolCalls += filled.toolCalls
    if (filled.run.stop._tag !== "Completed") break
  }
  return { conversation: conversationOf({ messages, options }), runs, stop: runs.at(-1)?.stop, turns, toolCalls }
})
