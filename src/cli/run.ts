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
import type { FileTools } from "../effects/FileTools.ts"
import { problemWith } from "../effects/Limits.ts"
import type { McpTools } from "../effects/McpTools.ts"
import type { Past } from "../effects/Past.ts"
import { nextPart } from "../effects/Run.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { gatesProblem, limitsOf, load, type RawSettings, type Resolved } from "../effects/Settings.ts"
import * as Families from "../engine/codecs/Families.ts"
import { repeated } from "./Continuing.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import { type Engine, execute, type Job, newRunId, type Showing } from "./Execute.ts"
import * as FileToolSource from "./FileToolSource.ts"
import * as McpSource from "./McpSource.ts"
import { checkCodec, checkModel, choose } from "./ModelChoice.ts"
import { problemAt } from "./Places.ts"
import { Provisions } from "./Provisions.ts"
import * as Resuming from "./Resuming.ts"
import * as Screen from "./Screen.ts"
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
  readonly settings: RawSettings
}

const tinyNotice = "The tiny demo model: it knows a few tasks only. Name a real one with --model (see the README)."

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

/** Conversation files are given like tasks, so that a name of one must not be mistaken for a task's text. */
const isConversation = (text: string): boolean => {
  if (!/^\S+$/.test(text)) return false
  const { _tag } = RunDirectory.look(text)
  return _tag === "Directory" || (/\.ya?ml$/i.test(text) && (_tag === "File" || _tag === "Other"))
}

const taskOf = Effect.fnUntraced(function* ({
  prompt,
  promptFile,
  task
}: RunFlags): Effect.fn.Return<string, UsageError, Stdio.Stdio> {
  const given = [task.length > 0, prompt !== undefined, promptFile !== undefined].filter((one) => one).length
  if (given === 0) return yield* usage('there is no task. Try: writ run "What is 17.5% of 240?"')
  if (given > 1) return yield* usage("give the task once: as arguments, with --prompt, or with --prompt-file")
  if (task.length === 1 && isConversation(task[0]!)) {
    return yield* usage(
      `${task[0]} is a file or directory; conversations cannot be run yet. For a task of that text use --prompt.`
    )
  }
  const text = prompt ?? (promptFile === undefined ? task.join(" ") : yield* readPrompt(promptFile))
  return text.trim() === "" ? yield* usage("the task is empty") : text
})

const checkWorkspace = (path: string): Effect.Effect<string, UsageError> => {
  const problem = problemAt(path, "Directory")
  return problem === undefined ? Effect.succeed(resolve(path)) : usage(`--workspace ${path}: ${problem}`)
}

/** Where nobody names any: those by default, and all of the directory and of the servers. */
const registryOf = ({ origins, settings }: Resolved, mcp: McpTools | undefined, files: FileTools | undefined) =>
  Effect.gen(function* () {
    const own = yield* FileToolSource.withFiles(yield* (yield* Provisions).tools, files)
    const named = origins.tools !== "default"
    const extra = named ? [] : (files?.registry.tools ?? []).map((tool) => tool.name)
    return yield* McpSource.pick(own, mcp, [...settings.tools, ...extra], named)
  }).pipe(Effect.catchTag("RegistrationError", (error) => usage(`--tools ${error.tool}: ${error.message}`)))

/** Everything that needs no model. */
const check = Effect.fnUntraced(function* (resolved: Resolved) {
  const { origins, settings } = resolved
  const mcp = yield* McpSource.open(settings)
  const files = yield* FileToolSource.open(settings.toolsDir)
  const registry = yield* registryOf(resolved, mcp, files)
  const web = yield* WebSource.open(resolved, registry)
  yield* checkCodec(settings.codec)
  const problem = problemWith(limitsOf(settings)) ?? gatesProblem(settings)
  if (problem !== undefined) return yield* usage(problem)
  const workspace = yield* checkWorkspace(settings.workspace)
  if (settings.script === undefined) yield* checkModel(settings.model)
  else if (origins.model === "flag" && origins.script === "flag")
    return yield* usage("give --model or --script, not both")
  return { mcp, files, registry, web, workspace }
})

type About = Pick<Job, "engine" | "model" | "notice">

/** A script as a model. */
const scripted = Effect.fnUntraced(function* (path: string, codec: string | undefined, skip: number) {
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

const local = Effect.fnUntraced(function* (settings: Settings, flags: RunFlags, screen: Screen.Screen) {
  const { codec, path, tiny, title } = yield* choose(settings, flags.json || flags.quiet ? () => {} : screen.progress)
  const about: About = {
    engine: { _tag: "File", path },
    model: { codec, title },
    ...(tiny ? { notice: tinyNotice } : {})
  }
  return about
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
  const about = yield* local({ ...settings, codec: past.codec }, flags, screen)
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
  yield* Resuming.check(found)
  yield* Resuming.checkFixed(found, flags.settings)
  const resolved = yield* load({ ...Resuming.recorded(found), ...flags.settings }).pipe(
    Effect.map((loaded) => withOwnWorkspace(loaded, found.directory))
  )
  yield* Resuming.checkPermitted(found, resolved.settings)
  const { files, mcp, registry, web, workspace } = yield* check(resolved)
  const past = yield* Resuming.pastOf(found, registry, flags.answer)
  const screen = yield* Screen.make(flags.color)
  const runId = nextPart(past)
  const directory = RunDirectory.at(found.directory, RunDirectory.partOf(runId).part)
  yield* RunDirectory.check(directory)
  return {
    ...(yield* engineAgain(resolved, flags, screen, found, past)),
    task: past.task,
    settings: { ...resolved.settings, workspace },
    registry,
    files,
    mcp,
    web,
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
  const { files, mcp, registry, web, workspace } = yield* check(resolved)
  const runId = yield* newRunId
  const directory = settings.runDir === undefined ? RunDirectory.standard(runId) : RunDirectory.at(settings.runDir)
  yield* RunDirectory.check(directory)
  const screen = yield* Screen.make(flags.color)
  const about: About = yield* settings.script === undefined
    ? local(settings, flags, screen)
    : scripted(settings.script, settings.codec, 0)
  return {
    ...about,
    task,
    settings: { ...settings, workspace },
    registry,
    files,
    mcp,
    web,
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

/** Said before the run, when it costs nothing yet. */
const warnOf = ({ approve, dryRun, traceContent }: Settings): Effect.Effect<void> =>
  approve === "suspend" && !traceContent && !dryRun
    ? Console.error(
        "writ: without --trace-content a run that stops for an approval cannot go on after it; add it if this one should"
      )
    : Effect.void

export const run = (flags: RunFlags) =>
  Effect.gen(function* () {
    const asked = yield* withSuspend(flags)
    const job: Job = yield* asked.resume === undefined ? fresh(asked) : resumed(asked, asked.resume)
    yield* warnOf(job.settings)
    yield* execute(job)
  }).pipe(Effect.scoped, inJson(flags.json))
