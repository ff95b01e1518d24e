/**
 * `writ run TASK…`: a task of the user's own, or with `--resume` the rest of one. Everything that can be checked is checked
 * before a model is opened.
 */

import { readFileSync } from "node:fs"
import { basename, resolve } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { problemWith } from "../effects/Limits.ts"
import type { Past } from "../effects/Past.ts"
import { nextPart } from "../effects/Run.ts"
import * as RunClaim from "../effects/RunClaim.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { gatesProblem, limitsOf, load, type RawSettings, type Resolved } from "../effects/Settings.ts"
import * as Families from "../engine/codecs/Families.ts"
import { repeated } from "./Continuing.ts"
import { isConversation } from "./ConversationInputs.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import * as EngineSettings from "./EngineSettings.ts"
import { type Engine, execute, type Job, newRunId, type Showing } from "./Execute.ts"
import * as FileToolSource from "./FileToolSource.ts"
import { checkLedgerPlace } from "./LedgerPlace.ts"
import * as McpSource from "./McpSource.ts"
import { checkCodec, checkModel, chooseToOpen } from "./ModelChoice.ts"
import { chosenBy, sameFile } from "./ModelNames.ts"
import { problemAt } from "./Places.ts"
import { Provisions } from "./Provisions.ts"
import * as Resuming from "./Resuming.ts"
import * as Screen from "./Screen.ts"
import * as ServerChoice from "./ServerChoice.ts"
import * as ToolEnvironment from "./ToolEnvironment.ts"
import * as WebSource from "./WebSource.ts"

export interface RunFlags extends Showing {
  readonly task: ReadonlyArray<string>
  readonly prompt: string | undefined
  readonly promptFile: string | undefined
  /** The run to continue: an id, a directory, a trace. */
  readonly resume: string | undefined
  readonly answer: string | undefined
  /** `--suspend`, which is short for `--approve suspend`. */
  readonly suspend?: boolean
  /** For conversation files: how many are filled at a time. */
  readonly parallel?: number | undefined
  /** For conversation files: play them again from themselves and compare. */
  readonly replay?: boolean
  readonly settings: RawSettings
}

const tinyNotice = "The tiny demo model: it knows a few tasks only. Name a real one with --model."

const readPrompt = (path: string): Effect.Effect<string, UsageError, Stdio.Stdio> => {
  if (path === "-") {
    return Effect.flatMap(Stdio.Stdio, ({ stdin }) => Stream.mkString(Stream.decodeText(stdin))).pipe(
      Effect.catch((error) => usage(`--prompt-file -: ${error.message}`))
    )
  }
  return Effect.try({
    try: () => readFileSync(path, "utf8"),
    catch: (cause) => (cause as { readonly code?: string }).code
  }).pipe(
    Effect.catch((code) =>
      usage(`--prompt-file ${path}: ${code === "ENOENT" ? "there is no such file" : `it cannot be read (${code})`}`)
    )
  )
}

const taskOf = Effect.fnUntraced(function* ({
  prompt,
  promptFile,
  task
}: RunFlags): Effect.fn.Return<string, UsageError, Stdio.Stdio> {
  const given = [task.length > 0, prompt !== undefined, promptFile !== undefined].filter((one) => one).length
  if (given === 0) return yield* usage('there is no task. Try: writ run "What is 17.5% of 240?"')
  if (given > 1) return yield* usage("give the task once: as arguments, with --prompt, or with --prompt-file")
  if (task.length === 1 && /^\S+\.ya?ml$/i.test(task[0]!)) {
    return yield* usage(`${task[0]}: there is no such conversation. For a task of that text use --prompt.`)
  }
  const text = prompt ?? (promptFile === undefined ? task.join(" ") : yield* readPrompt(promptFile))
  return text.trim() === "" ? yield* usage("the task is empty") : text
})

const checkWorkspace = (path: string): Effect.Effect<string, UsageError> => {
  const problem = problemAt(path, "Directory")
  return problem === undefined ? Effect.succeed(resolve(path)) : usage(`--workspace ${path}: ${problem}`)
}

/** Everything that needs no model. */
export const check = Effect.fnUntraced(function* (resolved: Resolved) {
  const { origins, settings } = resolved
  const mcp = yield* McpSource.open(settings)
  const toolEnv = yield* ToolEnvironment.granted(settings)
  const files = yield* FileToolSource.open(settings.toolsDir, toolEnv)
  const registry = yield* FileToolSource.registryOf(resolved, mcp, files)
  const web = yield* WebSource.open(resolved, registry)
  yield* checkCodec(settings.codec)
  const problem = problemWith(limitsOf(settings)) ?? gatesProblem(settings)
  if (problem !== undefined) return yield* usage(problem)
  const workspace = yield* checkWorkspace(settings.workspace)
  yield* ServerChoice.check(resolved)
  yield* checkLedgerPlace(settings)
  if (settings.engineUrl !== undefined)
    return { mcp, files, toolEnv, registry, web, settings: { ...settings, workspace } }
  if (settings.script === undefined) {
    yield* checkModel(settings.model, settings.modelsDir)
    yield* EngineSettings.check(settings)
  } else if (origins.model === "flag" && origins.script === "flag")
    return yield* usage("give --model or --script, not both")
  return { mcp, files, toolEnv, registry, web, settings: { ...settings, workspace } }
})

export type About = Pick<Job, "engine" | "model" | "notice">

/** A script as a model. */
export const scripted = Effect.fnUntraced(function* (path: string, codec: string | undefined, skip: number) {
  const { read } = yield* Effect.promise(() => import("./ScriptFile.ts"))
  const { make } = yield* Effect.promise(() => import("../engine/ScriptedModel.ts"))
  const script = yield* read(path)
  const engine: Engine = { _tag: "Script", scripted: make({ ...script, turns: script.turns.slice(skip) }) }
  return {
    engine,
    model: { codec: familyOf(codec), title: `script ${script.name}` }
  } satisfies About
})

/** `codec` was looked up before. */
const familyOf = (codec = "qwen2.5"): string => Result.getOrThrow(Families.byId(codec)).id

/** A model in a file, the one that ships if none is named. */
export const local = Effect.fnUntraced(function* (settings: Settings, flags: Showing, screen: Screen.Screen) {
  const progress = flags.json || flags.quiet ? () => {} : screen.progress
  const { codec, path, tiny, title } = yield* chooseToOpen(settings, progress)
  if (tiny) yield* EngineSettings.checkTiny(settings)
  const about: About = {
    engine: { _tag: "File", path },
    model: { codec, title },
    ...(tiny ? { notice: tinyNotice } : {})
  }
  return about
})

/** A model of a server. */
export const served = Effect.fnUntraced(function* (settings: Settings & { readonly engineUrl: string }) {
  const { codec, model, title } = yield* ServerChoice.choose(settings)
  return { engine: { _tag: "Server", model }, model: { codec, title } } satisfies About
})

/** The model that the settings name, wherever it runs; a script is one too. */
export const engineOf = Effect.fnUntraced(function* (settings: Settings, flags: Showing, screen: Screen.Screen) {
  const { engineUrl } = settings
  if (engineUrl !== undefined) return yield* served({ ...settings, engineUrl })
  if (settings.script !== undefined) return yield* scripted(settings.script, settings.codec, 0)
  return yield* local({ ...settings, model: (yield* chosenBy(settings)).model }, flags, screen)
})

/** What the record holds neither as itself nor as a name. */
const notRecorded = "Not in the record, so as given now or by default: the model's file, workspace, fixtures."

/** The engine of a run that is continued: the same one, unless another is named. */
const engineAgain = Effect.fnUntraced(function* (
  { origins, settings }: Resolved,
  flags: RunFlags,
  screen: Screen.Screen,
  found: Resuming.Found,
  past: Past
) {
  const before = Resuming.modelOf(found)
  if (settings.script !== undefined) {
    if (!before.scripted) return yield* usage(`--script: the run was made with the model ${before.name}`)
    return { ...(yield* scripted(settings.script, past.codec, Resuming.playedTurns(found, past))), notice: notRecorded }
  }
  if (before.scripted && origins.model !== "flag") {
    return yield* usage(`the run was played from the script ${before.name}: name its file with --script`)
  }
  if (settings.engineUrl !== undefined) {
    const model = settings.model ?? (before.server === undefined ? undefined : before.name)
    return {
      ...(yield* served({ ...settings, engineUrl: settings.engineUrl, codec: past.codec, model })),
      notice: notRecorded
    }
  }
  if (before.server !== undefined && origins.model !== "flag") {
    return yield* usage(`the run was made with ${before.name} at ${before.server}: name the server with --engine-url`)
  }
  const model = settings.model ?? sameFile(before.name, settings.modelsDir)
  const about = yield* local({ ...settings, codec: past.codec, model }, flags, screen)
  const name = about.engine._tag === "File" ? basename(about.engine.path) : ""
  if (name === before.name) return { ...about, notice: notRecorded }
  if (origins.model !== "flag") {
    return yield* usage(`the run was made with the model ${before.name}: name its file, or another one, with --model`)
  }
  return {
    ...about,
    notice: `The run was made with the model ${before.name}; it goes on with ${name}.\n${notRecorded}`
  }
})

/** A demonstration brings its workspace along, in its own directory. */
const withOwnWorkspace = (loaded: Resolved, directory: string): Resolved => {
  const { workspace } = RunDirectory.at(directory)
  const here = loaded.origins.workspace === "default" && RunDirectory.isDirectory(workspace)
  return here ? { ...loaded, settings: { ...loaded.settings, workspace } } : loaded
}

/** `--resume`: the run's own settings, then what was said now. */
const resumed = Effect.fnUntraced(function* (flags: RunFlags, named: string) {
  if (flags.task.length > 0 || flags.prompt !== undefined || flags.promptFile !== undefined) {
    return yield* usage("--resume: the run has its task already; leave the other one out")
  }
  const found = yield* Resuming.find(named)
  yield* RunClaim.refuseHeld(found.directory)
  yield* Resuming.check(found)
  yield* Resuming.checkFixed(found, flags.settings)
  const resolved = yield* load({ ...Resuming.recorded(found), ...flags.settings }).pipe(
    Effect.map((loaded) => withOwnWorkspace(loaded, found.directory))
  )
  yield* Resuming.checkPermitted(found, resolved.settings)
  if (flags.settings.tools === undefined) {
    yield* Resuming.checkTools(found, yield* (yield* Provisions).tools, resolved.settings)
  }
  const checked = yield* check(resolved)
  const past = yield* Resuming.pastOf(found, checked.registry, flags.answer)
  const screen = yield* Screen.make(flags.color)
  const runId = nextPart(past)
  const directory = RunDirectory.at(found.directory, RunDirectory.partOf(runId).part)
  yield* RunDirectory.check(directory)
  return {
    ...(yield* engineAgain(resolved, flags, screen, found, past)),
    ...checked,
    task: past.task,
    showing: flags,
    runId,
    directory,
    again: repeated(resolved),
    past: { found, past, answer: flags.answer }
  } satisfies Job
})

const fresh = Effect.fnUntraced(function* (flags: RunFlags) {
  if (flags.answer !== undefined) return yield* usage("--answer: it answers a run that asked; name that with --resume")
  const task = yield* taskOf(flags)
  const resolved = yield* load(flags.settings)
  const { settings } = resolved
  const checked = yield* check(resolved)
  // Which model is meant is settled before anything is made for the run.
  if (settings.script === undefined && settings.engineUrl === undefined) yield* chosenBy(settings)
  const runId = yield* newRunId
  const directory = settings.runDir === undefined ? RunDirectory.standard(runId) : RunDirectory.at(settings.runDir)
  yield* RunDirectory.check(directory)
  const screen = yield* Screen.make(flags.color)
  const about: About = yield* engineOf(settings, flags, screen)
  return {
    ...about,
    ...checked,
    task,
    showing: flags,
    runId,
    directory,
    again: repeated(resolved)
  } satisfies Job
})

const withSuspend = (flags: RunFlags): Effect.Effect<RunFlags, UsageError> => {
  if (flags.suspend !== true) return Effect.succeed(flags)
  const { approve } = flags.settings
  return approve === undefined || approve === "suspend"
    ? Effect.succeed({ ...flags, settings: { ...flags.settings, approve: "suspend" } })
    : usage(`give --suspend or --approve ${String(approve)}, not both`)
}

/** Why nothing would be kept. A kept state is content, and nothing in it is redacted. */
const notKept = ({ engine, settings: { keepState, redact, traceContent } }: Job): string | undefined => {
  if (!keepState) return undefined
  if (!traceContent) return "--keep-state keeps nothing without --trace-content: what it keeps is content"
  if (redact.length > 0) return "--keep-state keeps nothing with --redact: nothing in it would be redacted"
  return engine._tag === "File" ? undefined : "--keep-state keeps nothing here: only a model in a file has a state"
}

/** Said before the run, when it costs nothing yet. */
const warningsOf = (job: Job): ReadonlyArray<string> => {
  const { approve, dryRun, traceContent } = job.settings
  const kept = notKept(job)
  return [
    ...(approve === "suspend" && !traceContent && !dryRun
      ? ["without --trace-content a run that stops for an approval cannot go on after it; add it if this one should"]
      : []),
    ...(kept === undefined ? [] : [kept])
  ]
}

/** Conversation files are given like tasks. A task of that text takes `--prompt`. */
const areConversations = ({ prompt, promptFile, resume, task }: RunFlags): boolean =>
  task.length > 0 &&
  prompt === undefined &&
  promptFile === undefined &&
  resume === undefined &&
  task.every(isConversation)

export const run = (flags: RunFlags) =>
  Effect.gen(function* () {
    const asked = yield* withSuspend(flags)
    if (areConversations(asked)) {
      const { runConversations } = yield* Effect.promise(() => import("./runConversation.ts"))
      return yield* runConversations(asked)
    }
    if (asked.parallel !== undefined || asked.replay === true) {
      return yield* usage("--parallel and --replay are for conversation files: name one, or a directory of them")
    }
    const job: Job = yield* asked.resume === undefined ? fresh(asked) : resumed(asked, asked.resume)
    for (const warning of warningsOf(job)) yield* Console.error(`writ: ${warning}`)
    yield* execute(job)
  }).pipe(Effect.scoped, inJson(flags.json))
