/**
 * `writ run FILE|DIR…` where the arguments are conversation files (R-AILLY-12 to 23): everything that can be checked is checked
 * first, then the files are filled, so many at a time. What is wrong with one file stops that one only.
 */
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as ArtifactStore from "../actors/ArtifactStore.ts"
import * as EffectLedger from "../actors/EffectLedger.ts"
import * as Ids from "../actors/Ids.ts"
import * as ToolPool from "../actors/ToolPool.ts"
import * as TraceWriter from "../actors/TraceWriter.ts"
import type { AgentEvent } from "../effects/AgentEvent.ts"
import * as Advertised from "../effects/conversation/Advertised.ts"
import type { Conversation } from "../effects/conversation/Conversation.ts"
import * as ConversationFile from "../effects/conversation/ConversationFile.ts"
import * as Fixture from "../effects/conversation/Fixture.ts"
import { nextPlace } from "../effects/conversation/Slots.ts"
import { lifeOf, tuningOf } from "../effects/EngineFields.ts"
import { problemWith } from "../effects/Limits.ts"
import { Approval } from "../effects/Policy.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { gatesOf, gatesProblem, limitsOf, load, type Resolved } from "../effects/Settings.ts"
import * as Families from "../engine/codecs/Families.ts"
import { Model } from "../engine/Model.ts"
import { make } from "../engine/ScriptedModel.ts"
import * as Registry from "../tools/Registry.ts"
import { approverFor, askingAt } from "./Approvers.ts"
import { type ConversationFlags, checkFlags, checkWorkspace, filesOf, identityOf } from "./ConversationInputs.ts"
import { directoryOf, type FileJob, type FileResult, failedBefore, runFile } from "./ConversationRun.ts"
import * as View from "./ConversationView.ts"
import { codeOf, endWith, usage } from "./Ending.ts"
import * as FileToolSource from "./FileToolSource.ts"
import * as FixtureFile from "./FixtureFile.ts"
import * as McpSource from "./McpSource.ts"
import { checkCodec, checkModel, chooseToOpen } from "./ModelChoice.ts"
import { jsonText } from "./Printable.ts"
import { Provisions } from "./Provisions.ts"
import { RunView } from "./RunView.ts"
import * as Screen from "./Screen.ts"
import { onStop } from "./StopRequests.ts"
import * as ToolEnvironment from "./ToolEnvironment.ts"
import * as WebSource from "./WebSource.ts"

/** Files at a time unless somebody says otherwise: a model's sessions cost memory. */
const standardParallel = 2

/** A file that was read, with its script; or what is wrong with it. */
export type Opened =
  | { readonly path: string; readonly conversation: Conversation; readonly fixture: Fixture.Fixture | undefined }
  | FileResult

const auto: Fixture.Fixture = { name: "noop", engine: "auto" }

const isOpen = (opened: Opened): opened is Exclude<Opened, FileResult> => "conversation" in opened

const isComplete = ({ conversation }: Exclude<Opened, FileResult>): boolean =>
  nextPlace(conversation.session) === undefined

const messageOf = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (Cause.hasDies(cause)) return `this is a bug in writ, please report it\n${Cause.pretty(cause)}`
  return error instanceof Error ? error.message : String(error)
}

/** The file is named in front of what is said of it. */
const without = (path: string, message: string): string =>
  message.startsWith(`${path}: `) ? message.slice(path.length + 2) : message

/** What one file fails with is its result. */
export const asResult = <A, R>(
  path: string,
  effect: Effect.Effect<A, unknown, R>
): Effect.Effect<A | FileResult, never, R> =>
  Effect.flatMap(Effect.exit(effect), (exit): Effect.Effect<A | FileResult> => {
    if (Exit.isSuccess(exit)) return Effect.succeed(exit.value)
    if (Cause.hasInterruptsOnly(exit.cause)) return Effect.failCause(exit.cause as Cause.Cause<never>)
    const tag = (Cause.squash(exit.cause) as { readonly _tag?: unknown } | undefined)?._tag
    const code = tag === "ConversationError" ? 2 : codeOf(exit)
    return Effect.succeed(failedBefore(path, code, without(path, messageOf(exit.cause))))
  })

/** `noop` is the script that says nothing in particular, unless the command line names a model; a script plays in place of any. */
const fixtureFor = Effect.fnUntraced(function* (
  path: string,
  conversation: Conversation,
  { origins, settings: { script } }: Resolved,
  replay: boolean
) {
  if (replay) return Fixture.fixtureOf(conversation, "the conversation itself")
  if (script !== undefined) return yield* FixtureFile.read(yield* FixtureFile.fileFor(script, path))
  return conversation.meta.model === "noop" && origins.model !== "flag" ? auto : undefined
})

const openFile = (path: string, resolved: Resolved, replay: boolean) =>
  asResult(
    path,
    Effect.gen(function* () {
      const conversation = yield* ConversationFile.load(path)
      return { path, conversation, fixture: yield* fixtureFor(path, conversation, resolved, replay) }
    })
  )

/** The tools there are for conversations that run them: ours, those of the directory, those of the servers. */
export const toolsFor = Effect.fnUntraced(function* (resolved: Resolved, opened: ReadonlyArray<Opened>) {
  const { settings } = resolved
  const mcp = yield* McpSource.open(settings)
  const toolEnv = yield* ToolEnvironment.granted(settings)
  const files = yield* FileToolSource.open(settings.toolsDir, toolEnv)
  const own = yield* FileToolSource.withFiles(yield* (yield* Provisions).tools, files)
  const all = mcp === undefined ? own : yield* Registry.merge(own, mcp.registry)
  const wanted = new Set(
    opened.flatMap((file) =>
      isOpen(file) && file.fixture?.tools === undefined && !isComplete(file)
        ? (file.conversation.meta.tools ?? []).map(({ name }) => name)
        : []
    )
  )
  const used = yield* Registry.make(all.tools.filter(({ name }) => wanted.has(name)))
  const web = yield* WebSource.open(resolved, used)
  return { mcp, files, toolEnv, all, used, web }
})

export type Tools = Effect.Success<ReturnType<typeof toolsFor>>

/** The model of a file: what the command line says, or the file. `tiny` is the one that ships. */
const modelOf = ({ conversation }: Exclude<Opened, FileResult>, { origins, settings }: Resolved): string =>
  origins.model === "flag" ? (settings.model ?? "tiny") : conversation.meta.model

interface Group {
  /** `undefined`: scripts. */
  readonly model: string | undefined
  readonly files: ReadonlyArray<Exclude<Opened, FileResult>>
}

/** One model is in memory at a time, and none for what is complete. */
const groupsOf = (opened: ReadonlyArray<Opened>, resolved: Resolved): ReadonlyArray<Group> => {
  const groups = new Map<string | undefined, Array<Exclude<Opened, FileResult>>>()
  for (const file of opened) {
    if (!isOpen(file)) continue
    const model = file.fixture === undefined && !isComplete(file) ? modelOf(file, resolved) : undefined
    const files = groups.get(model) ?? []
    files.push(file)
    groups.set(model, files)
  }
  return [...groups].map(([model, files]) => ({ model, files }))
}

interface Context {
  readonly flags: ConversationFlags
  readonly resolved: Resolved
  readonly tools: Tools
  readonly screen: Screen.Screen
  readonly parallel: number
  readonly view: View.ConversationView
  readonly runView: RunView | undefined
  /** Ends what is under way; nothing new begins after it. */
  readonly cancels: Set<Effect.Effect<void>>
  stopped: boolean
}

/** Nothing of a replay is left anywhere. */
const layerReplay = Layer.mergeAll(
  Layer.sync(Model, () => make({ turns: [] }).model),
  ToolPool.layerInline(),
  TraceWriter.layerMemory,
  ArtifactStore.layerMemory,
  EffectLedger.layerMemory(),
  Ids.layer
)

/** Of a context, what services are made of. */
export interface Wired extends Pick<Context, "resolved" | "tools" | "parallel"> {
  readonly flags: Pick<Context["flags"], "replay">
}

/** @param path the model's file; without one each conversation brings its own engine */
export const layerFor = Effect.fnUntraced(function* (context: Wired, path: string | undefined) {
  const { settings } = context.resolved
  if (context.flags.replay === true) return layerReplay
  const { files, mcp, toolEnv, used } = context.tools
  const { services } = yield* Provisions
  const layer = services({
    ...(path === undefined
      ? // Each conversation brings its own.
        { engine: Layer.succeed(Model, make({ turns: [] }).model), modelHash: false }
      : { model: path }),
    sessions: context.parallel,
    ...(settings.context === undefined ? {} : { contextTokens: settings.context }),
    ...(settings.threads === undefined ? {} : { threads: settings.threads }),
    gpu: settings.gpu,
    tuning: tuningOf(settings),
    ...lifeOf(settings),
    inlineTools: used.tools.length === 0,
    toolEnv,
    ...(settings.ledger === undefined ? {} : { ledger: settings.ledger }),
    ...(settings.modelHash ? {} : { modelHash: false }),
    runDirectory: directoryOf(settings.runDir)
  })
  const withFiles = files === undefined ? layer : files.layer(layer)
  return mcp === undefined ? withFiles : mcp.layer(withFiles)
})

export const optionsOf = ({ resolved, tools }: Pick<Context, "resolved" | "tools">) => {
  const { settings } = resolved
  return {
    runDir: settings.runDir,
    limits: limitsOf(settings),
    calls: settings.calls,
    sampling: { temperature: settings.temperature, topK: settings.topK, topP: settings.topP, seed: settings.seed },
    constrained: settings.constrained,
    context: { onFull: settings.contextPolicy },
    ...(settings.thinking === undefined ? {} : { thinking: settings.thinking }),
    settings: {
      workspace: settings.workspace,
      fixtures: settings.fixture,
      ...(tools.web === undefined ? {} : { web: tools.web })
    },
    gates: gatesOf(settings),
    trace: { content: settings.traceContent, tokenEvents: settings.tokenEvents }
  }
}

/** Whoever has nothing to do needs no tools: a file that was filled elsewhere may name some that are not here. */
const toolsOf = (file: Exclude<Opened, FileResult>, { all }: Tools) => {
  if (file.fixture?.tools !== undefined) return Effect.succeed(undefined)
  return Advertised.registryOf(isComplete(file) ? {} : file.conversation.meta, all, file.path)
}

const jobOf = Effect.fnUntraced(function* (context: Context, file: Exclude<Opened, FileResult>, codec: string) {
  const { conversation, fixture, path } = file
  const { flags, resolved, tools } = context
  const registered = yield* toolsOf(file, tools)
  const named = resolved.origins.model === "flag" && fixture === undefined ? resolved.settings.model : undefined
  return {
    path,
    conversation,
    identity: identityOf(path, resolved.settings),
    fixture,
    tools: registered,
    codec,
    model: named,
    answer: flags.answer,
    replay: flags.replay === true
  } satisfies FileJob
})

/** What the run says last ends its line. */
const shownBy = (view: RunView, screen: Screen.Screen) => {
  let within = false
  return (event: AgentEvent): void => {
    if (event._tag === "Text" || event._tag === "Reasoning") within = !event.text.endsWith("\n")
    else if (event._tag === "Finished" && within) screen.line()
    view.event(event)
  }
}

const stoppedBefore = (path: string): FileResult => failedBefore(path, 4, "not begun: the command was stopped")

const one = Effect.fnUntraced(function* (context: Context, file: Exclude<Opened, FileResult>, codec: string) {
  const { cancels, runView, screen, view } = context
  if (context.stopped) return stoppedBefore(file.path)
  view.began(file.path)
  let own: Effect.Effect<void> | undefined
  const options = {
    ...optionsOf(context),
    ...(runView === undefined ? {} : { emit: shownBy(runView, screen) }),
    onCancel: (cancel: Effect.Effect<void>) => {
      if (own !== undefined) cancels.delete(own)
      own = cancel
      cancels.add(cancel)
    }
  }
  const result = yield* asResult(
    file.path,
    Effect.flatMap(jobOf(context, file, codec), (job) => runFile(job, options))
  )
  if (own !== undefined) cancels.delete(own)
  view.ended(result)
  return result
})

/** Configuration first: a tool that nobody registered stops a file before any model is loaded for it. */
const checked = Effect.fnUntraced(function* (context: Context, { files, model }: Group) {
  const ready: Array<Exclude<Opened, FileResult>> = []
  const refused: Array<FileResult> = []
  for (const file of files) {
    const problem = yield* asResult(file.path, Effect.as(jobOf(context, file, "qwen2.5"), undefined))
    if (problem === undefined) ready.push(file)
    else refused.push(problem)
  }
  if (model !== undefined && model !== "tiny" && ready.length > 0) {
    const found = yield* Effect.result(checkModel(model, context.resolved.settings.modelsDir))
    if (Result.isFailure(found)) {
      const results = ready.map(({ path }) => failedBefore(path, 2, `${path}: model: ${found.failure.message}`))
      return { ready: [], refused: [...refused, ...results] }
    }
  }
  return { ready, refused }
})

const runGroup = Effect.fnUntraced(function* (context: Context, group: Group) {
  const { ready, refused } = yield* checked(context, group)
  for (const result of refused) context.view.ended(result)
  if (ready.length === 0) return refused
  const { screen } = context
  const { settings } = context.resolved
  const chosen =
    group.model === undefined
      ? undefined
      : yield* chooseToOpen({ ...settings, model: group.model === "tiny" ? undefined : group.model }, screen.progress)
  const codec = chosen?.codec ?? Result.getOrThrow(Families.byId(settings.codec ?? "qwen2.5")).id
  const filled = yield* Effect.forEach(ready, (file) => one(context, file, codec), {
    concurrency: context.parallel
  }).pipe(Effect.provide(yield* layerFor(context, chosen?.path)))
  return [...refused, ...filled]
})

/** A group that cannot begin, for want of a model say, is the result of each of its files. */
const runGroups = Effect.fnUntraced(function* (context: Context, groups: ReadonlyArray<Group>) {
  const results: Array<FileResult> = []
  for (const group of groups) {
    const ran = yield* asResult("", runGroup(context, group))
    if (Array.isArray(ran)) results.push(...ran)
    else {
      for (const { path } of group.files) {
        const result = { ...(ran as FileResult), path }
        context.view.ended(result)
        results.push(result)
      }
    }
  }
  return results
})

const check = Effect.fnUntraced(function* (flags: ConversationFlags) {
  const loaded = yield* load(flags.settings)
  yield* checkFlags(loaded, flags.replay === true)
  yield* checkCodec(loaded.settings.codec)
  const problem = problemWith(limitsOf(loaded.settings)) ?? gatesProblem(loaded.settings)
  if (problem !== undefined) return yield* usage(problem)
  const { parallel = standardParallel } = flags
  if (!(parallel >= 1)) return yield* usage("--parallel: at least 1")
  const workspace = yield* checkWorkspace(loaded.settings.workspace)
  return { parallel, resolved: { ...loaded, settings: { ...loaded.settings, workspace } } }
})

const shown = ({ flags, screen, view }: Context, results: ReadonlyArray<FileResult>): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* View.cleared(screen)
    if (flags.json) return yield* Console.log(jsonText(View.document(results)))
    view.summary(results)
    const [only] = results
    if (!flags.quiet || only === undefined) return
    if (results.length === 1 && only.code === 0) return yield* Console.log(only.text ?? "")
    for (const { code, message, path } of results) if (code !== 0) yield* Console.error(`writ: ${path}: ${message}`)
  })

export const runConversations = (flags: ConversationFlags) =>
  Effect.gen(function* () {
    const paths = yield* filesOf(flags.task)
    if (flags.answer !== undefined && paths.length > 1) return yield* usage("--answer: it answers one conversation")
    const { parallel, resolved } = yield* check(flags)
    if (resolved.settings.engineUrl !== undefined)
      return yield* usage("--engine-url: conversation files name their models")
    const opened = yield* Effect.forEach(paths, (path) => openFile(path, resolved, flags.replay === true))
    const tools = yield* toolsFor(resolved, opened)
    const screen = yield* Screen.make(flags.color)
    const silent = flags.json || flags.quiet
    const single = paths.length === 1 && !silent
    const context: Context = {
      flags,
      resolved,
      tools,
      screen,
      parallel: Math.min(parallel, paths.length),
      view: new View.ConversationView(screen, paths.length, silent),
      runView: single ? new RunView(screen) : undefined,
      cancels: new Set(),
      stopped: false
    }
    yield* onStop(
      Effect.suspend(() => {
        context.stopped = true
        return Effect.forEach([...context.cancels], (cancel) => cancel, { discard: true })
      })
    )
    if (resolved.settings.runDir === undefined && flags.replay !== true) yield* RunDirectory.prepareHome
    const unread = opened.filter((file): file is FileResult => !isOpen(file))
    for (const result of unread) context.view.ended(result)
    const asking = context.runView && (yield* askingAt(screen, context.runView.caughtUp))
    const ran = yield* runGroups(context, groupsOf(opened, resolved)).pipe(
      Effect.provideService(Approval, approverFor(resolved.settings.approve, asking))
    )
    const byPath = new Map([...unread, ...ran].map((result) => [result.path, result]))
    const results = paths.map((path) => byPath.get(path) ?? failedBefore(path, 1, "it was lost"))
    yield* shown(context, results)
    yield* endWith(View.worst(results))
  })
