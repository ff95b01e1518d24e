/** `writ run TASK…`: a task of the user's own. Everything that can be checked is checked before a model is opened. */

import { readFileSync, statSync } from "node:fs"
import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { problemWith } from "../effects/Limits.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Settings } from "../effects/SettingFields.ts"
import { limitsOf, load, type RawSettings } from "../effects/Settings.ts"
import { registry as builtin } from "../tools/builtin/index.ts"
import * as Registry from "../tools/Registry.ts"
import { inJson, type UsageError, usage } from "./Ending.ts"
import { execute, newRunId, type Showing } from "./Execute.ts"
import { checkCodec, checkModel, choose } from "./ModelChoice.ts"
import * as Screen from "./Screen.ts"

export interface RunFlags extends Showing {
  readonly task: ReadonlyArray<string>
  readonly prompt: string | undefined
  readonly promptFile: string | undefined
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
  const found = /^\S+$/.test(text) ? statSync(text, { throwIfNoEntry: false }) : undefined
  return found !== undefined && (found.isDirectory() || /\.ya?ml$/i.test(text))
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
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory() === true) return Effect.succeed(resolve(path))
  return usage(`--workspace ${path}: ${found === undefined ? "there is no such directory" : "it is not a directory"}`)
}

const registryOf = (tools: ReadonlyArray<string>) =>
  Effect.flatMap(builtin, (all) => Registry.pick(all, tools)).pipe(
    Effect.catchTag("RegistrationError", (error) => usage(`--tools ${error.tool}: ${error.message}`))
  )

/** Everything that needs no model. */
const check = Effect.fnUntraced(function* (settings: Settings) {
  const registry = yield* registryOf(settings.tools)
  yield* checkCodec(settings.codec)
  const problem = problemWith(limitsOf(settings))
  if (problem !== undefined) return yield* usage(problem)
  const workspace = yield* checkWorkspace(settings.workspace)
  yield* checkModel(settings.model)
  return { registry, workspace }
})

export const run = (flags: RunFlags) =>
  Effect.gen(function* () {
    const task = yield* taskOf(flags)
    const { settings } = yield* load(flags.settings)
    const { registry, workspace } = yield* check(settings)
    const runId = yield* newRunId
    const directory = settings.runDir === undefined ? RunDirectory.standard(runId) : RunDirectory.at(settings.runDir)
    yield* RunDirectory.check(directory)
    const screen = yield* Screen.make(flags.color)
    const model = yield* choose(settings, flags.json || flags.quiet ? () => {} : screen.progress)
    yield* execute({
      task,
      settings: { ...settings, workspace },
      model,
      registry,
      showing: flags,
      runId,
      directory,
      ...(model.tiny ? { notice: tinyNotice } : {})
    })
  }).pipe(inJson(flags.json))
