/** Fills one conversation file: its engine, its tools, its directory, and what it came to. */
import { readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as ToolPool from "../actors/ToolPool.ts"
import type { AgentEvent } from "../effects/AgentEvent.ts"
import { type Conversation, textOf } from "../effects/conversation/Conversation.ts"
import { ConversationError } from "../effects/conversation/ConversationError.ts"
import * as ConversationFile from "../effects/conversation/ConversationFile.ts"
import * as ConversationText from "../effects/conversation/ConversationText.ts"
import * as Filling from "../effects/conversation/Filling.ts"
import * as Fixture from "../effects/conversation/Fixture.ts"
import { ScriptedTools } from "../effects/conversation/ScriptedTools.ts"
import { nextPlace } from "../effects/conversation/Slots.ts"
import { exitCode } from "../effects/Outcome.ts"
import type { RunOptions } from "../effects/Run.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Stop } from "../effects/State.ts"
import * as Families from "../engine/codecs/Families.ts"
import { Model } from "../engine/Model.ts"
import type { Registry } from "../tools/Registry.ts"
import { stopText } from "./RunWords.ts"

/** One conversation, ready to be filled. */
export interface FileJob {
  readonly path: string
  readonly conversation: Conversation
  readonly identity: string
  /** `undefined`: a model of the services. */
  readonly fixture: Fixture.Fixture | undefined
  /** The declared tools as they are registered; for scripted ones `undefined`. */
  readonly tools: Registry | undefined
  readonly codec: string
  /** What its turns call the model, if not what the file does. */
  readonly model: string | undefined
  readonly answer: string | undefined
  /** Played from itself, compared, and not written. */
  readonly replay: boolean
}

export interface FileResult {
  readonly path: string
  readonly code: number
  /** `done`, or what happened, in a sentence. */
  readonly message: string
  readonly stop: Stop | undefined
  readonly runs: ReadonlyArray<Filling.SlotRun>
  readonly turns: number
  readonly toolCalls: number
  /** The last answer of the conversation, once it is complete. */
  readonly text: string | undefined
}

export const failedBefore = (path: string, code: number, message: string): FileResult => ({
  path,
  code,
  message,
  stop: undefined,
  runs: [],
  turns: 0,
  toolCalls: 0,
  text: undefined
})

/** Where runs of conversations lie: `.writ/runs/<name>`, or under the directory that was named. */
export const directoryOf =
  (runDir: string | undefined) =>
  (runId: string): RunDirectory.RunDirectory => {
    if (runDir === undefined) return RunDirectory.standard(runId)
    const { part, root } = RunDirectory.partOf(runId)
    return RunDirectory.at(join(runDir, root), part)
  }

/** How many parts the run of this name has so far. */
const recordedIn = (runDir: string | undefined) => (name: string) => {
  const { directory } = directoryOf(runDir)(name)
  if (!RunDirectory.isDirectory(directory)) return 0
  return readdirSync(directory).length === 0 ? 0 : RunDirectory.partsIn(directory).length
}

export interface FileOptions extends RunOptions {
  readonly runDir: string | undefined
  readonly emit?: (event: AgentEvent) => void
  readonly onCancel: (cancel: Effect.Effect<void>) => void
}

/** Calls are heard by something where none is declared, so that one is the model's mistake and no text. */
const heard = (fixture: Fixture.Fixture | undefined, { specs }: Registry) =>
  fixture !== undefined && specs.length === 0 && Fixture.callsInBlocks(fixture)
    ? { heard: [{ name: "none", description: "", parameters: { type: "object" } }] }
    : {}

interface Played {
  readonly engine: Fixture.FixtureEngine | undefined
  readonly tools: ScriptedTools | undefined
}

const leftOf = ({ engine, tools }: Played): ReadonlyArray<string> => {
  const turns = engine?.scripted.left() ?? 0
  return [
    ...(turns === 0 ? [] : [`engine: ${turns} turn${turns === 1 ? "" : "s"} not played`]),
    ...(tools?.left() ?? [])
  ]
}

/** A script says how the conversation goes: what it says and was not needed is as wrong as what was needed and it does not say. */
const verdictOf = ({ stop }: Filling.Filled, played: Played): { readonly code: number; readonly message: string } => {
  if (stop !== undefined && stop._tag !== "Completed") {
    const code = played.tools?.fault?.kind === "unexpected" ? 3 : exitCode(stop)
    return { code, message: stopText(stop) }
  }
  const left = leftOf(played)
  if (left.length > 0)
    return { code: 3, message: `the script has more than the conversation needs: ${left.join("; ")}` }
  return { code: 0, message: stop === undefined ? "complete already, nothing to do" : "done" }
}

const finalText = ({ session }: Conversation): string | undefined => {
  if (nextPlace(session) !== undefined) return undefined
  const last = session.findLast(({ content, role }) => role === "assistant" && content !== undefined)
  return last === undefined ? undefined : textOf(last)
}

const resultOf = (job: FileJob, filled: Filling.Filled, played: Played): FileResult => {
  const { conversation, runs, stop, toolCalls, turns } = filled
  return { path: job.path, ...verdictOf(filled, played), stop, runs, turns, toolCalls, text: finalText(conversation) }
}

/** Does the conversation that was played from itself come to the same text? */
const compared = (job: FileJob, result: FileResult, again: Conversation): FileResult => {
  if (result.code !== 0)
    return { ...result, code: 3, message: `played again it does not come to its end: ${result.message}` }
  const same = ConversationText.emit(again) === ConversationText.emit(job.conversation)
  if (same) return { ...result, message: "comes to the same again" }
  const at = again.session.findIndex(
    (message, index) => JSON.stringify(message) !== JSON.stringify(job.conversation.session[index])
  )
  return {
    ...result,
    code: 3,
    message: `comes to something else: message ${at < 0 ? again.session.length : at} differs`
  }
}

const startOf = ({ conversation, replay }: FileJob): Conversation =>
  replay ? Fixture.blanked(conversation) : conversation

const registryOf = (job: FileJob, scripted: ScriptedTools | undefined) => {
  if (scripted !== undefined) return scripted.registry(job.conversation.meta, job.path)
  return job.tools === undefined
    ? Effect.fail(new ConversationError({ path: job.path, place: "meta.tools", reason: "nobody looked for them" }))
    : Effect.succeed(job.tools)
}

/** Fills the file. Whatever stops it is a result; the other files of a directory go on. */
export const runFile = Effect.fnUntraced(function* (job: FileJob, { onCancel, runDir, ...options }: FileOptions) {
  const start = startOf(job)
  const { codec, fixture, replay } = job
  const scripted = fixture?.tools === undefined ? undefined : new ScriptedTools(fixture.tools, Fixture.answered(start))
  const tools = yield* registryOf(job, scripted)
  const family = Result.getOrThrow(Families.byId(codec))
  const engine = fixture === undefined ? undefined : Fixture.engineOf(fixture, start, family, tools.specs)
  const filling = Filling.fill({
    ...options,
    conversation: start,
    path: job.identity,
    tools,
    codec,
    ...heard(fixture, tools),
    ...(job.model === undefined ? {} : { model: job.model }),
    ...(job.answer === undefined ? {} : { answer: job.answer }),
    ...(engine === undefined ? {} : { voice: engine.voice }),
    recorded: recordedIn(runDir),
    save: replay ? () => Effect.void : ConversationFile.keeper(job.path, start),
    started: (cancel, stop) => {
      if (scripted !== undefined) scripted.stop = stop
      onCancel(cancel)
    }
  })
  const spoken = engine === undefined ? filling : Effect.provideService(filling, Model, engine.scripted.model)
  // What a script answers is answered here.
  const answered = scripted === undefined ? spoken : Effect.provide(spoken, ToolPool.layerInline())
  const filled = yield* Effect.scoped(answered).pipe(
    // The name of its effects is nobody's name for the file.
    Effect.mapError((error) =>
      error._tag === "ConversationError" && error.path === job.identity
        ? new ConversationError({ path: job.path, place: error.place, reason: error.reason })
        : error
    )
  )
  const result = resultOf(job, filled, { engine, tools: scripted })
  return replay ? compared(job, result, filled.conversation) : result
})

/** The record of a run, as its directory. */
export const recordOf = ({ tracePath }: Filling.SlotRun): string | undefined =>
  tracePath === undefined ? undefined : dirname(tracePath)
