/** `writ demo`: the flagship task on the model that ships, in a workspace of its own. Exit code 0 only for the right answer. */

import { mkdirSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as RunDirectory from "../effects/RunDirectory.ts"
import { defaultTools } from "../effects/SettingFields.ts"
import { resolve as resolveSettings } from "../effects/Settings.ts"
import { registry as builtin } from "../tools/builtin/index.ts"
import * as Registry from "../tools/Registry.ts"
import { Ended, inJson } from "./Ending.ts"
import { execute, newRunId, type Showing } from "./Execute.ts"
import { choose } from "./ModelChoice.ts"

/** The experiment summaries the demo reads: ours, so their content may go into the trace. */
const files = {
  "baseline.json": '{"run":"baseline_q4","score":0.612}',
  "tuned.json": '{"run":"tuned_q8","score":0.744}'
}

const task =
  "Read baseline.json and tuned.json, compute the relative improvement of score in percent and write report.md."
const system = "You are a small local assistant. Use the tools when they help and answer briefly."

/** All seven tools the model was trained with, in that order. */
const tools = [...defaultTools, "clarify"]

const notice = "The tiny demo model (2 million parameters): it knows a few tasks and shows how Writ works."

/** Fills the workspace of a run whose directory is there. */
const bring = ({
  directory,
  workspace
}: RunDirectory.RunDirectory): Effect.Effect<void, RunDirectory.RunDirectoryError> =>
  Effect.try({
    try: () => {
      if (!RunDirectory.isDirectory(workspace)) mkdirSync(workspace)
      for (const [name, text] of Object.entries(files)) writeFileSync(join(workspace, name), text)
    },
    catch: (cause) =>
      new RunDirectory.RunDirectoryError({
        message: `${directory} cannot be written: ${cause instanceof Error ? cause.message : String(cause)}`
      })
  })

export interface DemoFlags extends Showing {
  readonly runDir: string | undefined
}

export const demo = (flags: DemoFlags) =>
  Effect.gen(function* () {
    // The demo is the same everywhere: only where it is written can be chosen, and no file or variable has a say.
    const sources = { flags: { traceContent: true, threads: "1" }, environment: {}, file: {} }
    const { settings } = yield* Effect.fromResult(resolveSettings(sources))
    const runId = yield* newRunId
    const directory = flags.runDir === undefined ? RunDirectory.standard(runId) : RunDirectory.at(flags.runDir)
    yield* RunDirectory.check(directory)
    const registry = yield* Effect.flatMap(builtin, (all) => Registry.pick(all, tools))
    const model = yield* choose(settings, () => {})
    const outcome = yield* execute({
      task,
      settings: { ...settings, system, workspace: resolve(directory.workspace) },
      model,
      engine: { _tag: "File", path: model.path },
      registry,
      showing: flags,
      runId,
      directory,
      bring: bring(directory),
      notice,
      again: []
    })
    if (outcome.text?.startsWith("DONE 21.57%") === true && outcome.artifacts.length === 1) return undefined
    yield* Console.error("writ: the demo ended, but not with the answer and the artifact it should have")
    return yield* new Ended({ code: 1 })
  }).pipe(inJson(flags.json))
