/**
 * `writ trace replay TRACE`: executes recorded calls that only read once more, or with `--full` runs the whole run from its
 * recorded turns, and compares. No model, no network, nothing is changed.
 */

import { readdirSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { FileTools } from "../effects/FileTools.ts"
import { isDirectory, shown } from "../effects/RunDirectory.ts"
import { type RawSettings, resolve as resolveSettings } from "../effects/Settings.ts"
import { redactedReason } from "../effects/trace/Concealed.ts"
import { type ReplayVerdict, replay } from "../effects/trace/Replay.ts"
import { type CallVerdict, type ReplayCallsReport, replayCalls } from "../effects/trace/ReplayCalls.ts"
import type { TraceRecord } from "../effects/trace/TraceReader.ts"
import type { TraceCall } from "../effects/trace/TraceRun.ts"
import { show } from "../effects/trace/TraceTimeline.ts"
import * as Wiring from "../effects/Wiring.ts"
import { registry as builtin } from "../tools/builtin/index.ts"
import * as Registry from "../tools/Registry.ts"
import type { ToolOutcome } from "../tools/ToolCall.ts"
import { isUnrecorded } from "../tools/web/Recording.ts"
import { endWith, inJson, type UsageError, usage } from "./Ending.ts"
import * as FileToolSource from "./FileToolSource.ts"
import { problemAt } from "./Places.ts"
import { count, cut, inline, jsonText } from "./Printable.ts"
import * as ReplayScratch from "./ReplayScratch.ts"
import * as Screen from "./Screen.ts"
import * as ToolEnvironment from "./ToolEnvironment.ts"
import { load, type TraceFile } from "./TraceFile.ts"
import * as WebSource from "./WebSource.ts"

export interface ReplayFlags {
  readonly trace: string
  readonly full: boolean
  readonly workspace: string | undefined
  readonly fixture: ReadonlyArray<string>
  /** What the run was told of the web, and of tools that are files. */
  readonly settings: RawSettings
  readonly json: boolean
  readonly color: boolean | undefined
}

const saysNo = 3

/** The directory that file tools read: the one named, or the one that a demo run has beside its trace. */
const workspaceOf = (flags: ReplayFlags, { path }: TraceFile): Effect.Effect<string | undefined, UsageError> => {
  const { workspace } = flags
  if (workspace !== undefined) {
    const problem = problemAt(workspace, "Directory")
    return problem === undefined ? Effect.succeed(resolve(workspace)) : usage(`--workspace ${workspace}: ${problem}`)
  }
  const beside = join(dirname(path), "workspace")
  return Effect.succeed(isDirectory(beside) ? resolve(beside) : undefined)
}

const fixturesOf = (given: ReadonlyArray<string>): Effect.Effect<Readonly<Record<string, string>>, UsageError> => {
  const wrong = given.find((one) => one.indexOf("=") < 1)
  if (wrong !== undefined) return usage(`--fixture ${wrong}: expected KEY=VALUE`)
  return Effect.succeed(
    Object.fromEntries(given.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]))
  )
}

const readsArtifacts: ReadonlySet<string> = new Set(["list_artifacts", "read_artifact"])

const readsFiles: ReadonlySet<string> = new Set(["list_files", "read_text_file", "search_text"])

/** Hands bytes over and writes nothing itself: what it hands over is hashed here and dropped. */
const handsOver = "write_artifact"

/** An answer of the web that the run did not keep. */
const unanswered = (outcome: ToolOutcome): string | undefined =>
  outcome._tag !== "Succeeded" && outcome.errors.some(({ reason }) => isUnrecorded(outcome.kind, reason))
    ? "what the web answered was not kept in --web-cache"
    : undefined

/** A replay is told by its flags alone. */
const wordsOf = ({ settings: flags }: ReplayFlags) =>
  Effect.map(Effect.fromResult(resolveSettings({ flags, environment: {}, file: {} })), ({ settings }) => settings)

/** Our tools, and those of the directory that is named. */
const allOf = (files: FileTools | undefined): Effect.Effect<Registry.Registry, UsageError> =>
  Effect.flatMap(Effect.orDie(builtin), (own) => FileToolSource.withFiles(own, files)).pipe(
    Effect.catch(({ message, tool }) => usage(`--tools-dir: ${tool}: ${message}`))
  )

const calls = Effect.fnUntraced(function* (file: TraceFile, flags: ReplayFlags) {
  const words = yield* wordsOf(flags)
  const toolEnv = yield* ToolEnvironment.granted(words)
  const files = yield* FileToolSource.open(words.toolsDir, toolEnv)
  const tools = yield* allOf(files)
  const workspace = yield* workspaceOf(flags, file)
  const fixtures = yield* fixturesOf(flags.fixture)
  const web = yield* WebSource.replaying(words)
  const scratch = yield* ReplayScratch.make(file, yield* earlierOf(file))
  // Our own tools that read cannot write; of a program nobody can be sure.
  const programs = files !== undefined && files.inWorkspace.size > 0
  const copy = programs && workspace !== undefined ? scratch.copyOf(workspace) : undefined
  const lacks = ({ name }: Registry.RegisteredTool, call: TraceCall): string | undefined => {
    if (readsArtifacts.has(name)) {
      const gone = scratch.before(call)
      return gone === undefined
        ? undefined
        : `it read the artifacts of the run, and ${inline(gone)} is not beside the trace`
    }
    const program = files?.inWorkspace.has(name) === true
    if ((readsFiles.has(name) || program) && workspace === undefined)
      return "it read the workspace of the run: name it with --workspace"
    if (program && copy === undefined) return "it is a program, and the workspace is too large to be copied for it"
    if (name === "lookup" && flags.fixture.length === 0) return "it looked up a fact of the run: give it with --fixture"
    return WebSource.lacksForReplay(name, words)
  }
  const pool = Wiring.layerTools({ toolEnv })
  return yield* replayCalls(file.run, {
    tools,
    settings: {
      fixtures,
      workspace: copy ?? workspace ?? scratch.workspace,
      artifacts: scratch.artifacts,
      ...(web === undefined ? {} : { web })
    },
    mayRun: ({ contract, name }) => contract.risk === "read" || name === handsOver,
    lacks,
    unanswered
  }).pipe(Effect.provide(files === undefined ? pool : files.layer(pool)))
}, Effect.scoped)

const values = (recorded: unknown, replayed: unknown): string =>
  `recorded ${recorded === undefined ? "nothing" : cut(show(recorded), 100)}, now ${replayed === undefined ? "nothing" : cut(show(replayed), 100)}`

const callLine = (one: CallVerdict, paint: Screen.Paint): string => {
  const words = {
    Match: () => paint.green("match"),
    Mismatch: ({ path, recorded, replayed }: CallVerdict & { _tag: "Mismatch" }) =>
      `${paint.red("MISMATCH")} ${inline(path)}: ${values(recorded, replayed)}`,
    Skipped: ({ reason }: CallVerdict & { _tag: "Skipped" }) => paint.dim(`skipped: ${reason}`)
  }
  const verdict =
    one._tag === "Match" ? words.Match() : one._tag === "Mismatch" ? words.Mismatch(one) : words.Skipped(one)
  const changed = one.changed && one._tag !== "Skipped" ? paint.yellow(" (the tool is not the one of the record)") : ""
  return `${inline(one.call).padEnd(12)} ${inline(one.tool).padEnd(16)} ${verdict}${changed}`
}

const verdictWords = (verdict: ReplayCallsReport["verdict"], paint: Screen.Paint): string =>
  verdict === "match" ? paint.green(verdict) : paint.red(verdict)

const reportCalls = Effect.fnUntraced(function* (file: TraceFile, flags: ReplayFlags) {
  const report = yield* calls(file, flags)
  const { matched, mismatched, skipped, verdict } = report
  if (flags.json) {
    const listed = report.calls.map(({ _tag, ...one }) => ({ verdict: _tag.toLowerCase(), ...one }))
    const document = { file: file.path, run_id: file.run.runId, mode: "calls", verdict: verdict.replaceAll(" ", "_") }
    yield* Console.log(jsonText({ ...document, matched, mismatched, skipped, calls: listed }))
  } else {
    const paint = yield* Screen.paintFor(flags.color)
    const totals = `${matched} matched, ${mismatched} mismatched, ${skipped} skipped`
    const lines = report.calls.map((one) => callLine(one, paint))
    yield* Console.log([...lines, `${verdictWords(verdict, paint)} ${paint.dim(`(${totals})`)}`].join("\n"))
  }
  return yield* endWith(verdict === "match" ? 0 : saysNo)
})

/** The traces that this run continued, oldest first: they lie beside it. */
const earlierOf = Effect.fnUntraced(function* (file: TraceFile) {
  const parts: Array<ReadonlyArray<TraceRecord>> = []
  const directory = dirname(file.path)
  const names = file.run.resumed === undefined ? [] : readdirSync(directory).filter((name) => name.endsWith(".jsonl"))
  const beside = yield* Effect.forEach(names, (name) => Effect.option(load(join(directory, name))))
  const byRun = new Map(
    beside.flatMap((found) => (found._tag === "Some" ? [[found.value.run.runId, found.value] as const] : []))
  )
  const seen = new Set([file.run.runId])
  for (let run = file.run; run.resumed !== undefined; ) {
    const from = String(run.resumed.data["from_run"])
    const found = byRun.get(from)
    if (found === undefined || seen.has(from)) break
    seen.add(from)
    parts.unshift(found.records)
    run = found.run
  }
  return parts
})

const toolsOf = Effect.fnUntraced(function* (file: TraceFile, flags: ReplayFlags) {
  const { tools } = file.run.provenance?.data ?? {}
  const names = Array.isArray(tools) ? tools.map((tool: Readonly<Record<string, unknown>>) => String(tool["name"])) : []
  const { toolsDir } = yield* wordsOf(flags)
  const all = yield* allOf(yield* FileToolSource.open(toolsDir))
  return yield* Effect.catchTag(Registry.pick(all, names), "RegistrationError", ({ tool }) =>
    usage(
      `the run had a tool ${tool} that is not one of Writ's own: name its directory with --tools-dir, or replay it with Replay.replay and its registry`
    )
  )
})

interface Full {
  readonly verdict: ReplayCallsReport["verdict"]
  readonly reason: string | undefined
  readonly found: ReplayVerdict | undefined
}

const judgeFull = Effect.fnUntraced(function* (file: TraceFile, flags: ReplayFlags) {
  const nothing = (reason: string): Full => ({ verdict: "nothing to compare", reason, found: undefined })
  if (file.records.length === 0) return nothing("the trace is empty")
  if (file.unreadable > 0) return nothing(`${count(file.unreadable, "line")} of the trace cannot be read`)
  const redacted = redactedReason(file.records)
  if (redacted !== undefined) return nothing(redacted)
  const tools = yield* toolsOf(file, flags)
  const earlier = yield* earlierOf(file)
  return yield* replay(file.records, { tools, earlier }).pipe(
    Effect.map((found): Full => ({ verdict: found.same ? "match" : "mismatch", reason: undefined, found })),
    Effect.catchTag("ReplayError", ({ message }) => Effect.succeed(nothing(message)))
  )
})

const fullLines = ({ found, reason, verdict }: Full, paint: Screen.Paint): ReadonlyArray<string> => {
  const { compared = 0, divergence, stoppedAt } = found ?? {}
  return [
    ...(divergence === undefined
      ? []
      : [
          `event ${divergence.seq} (${inline(divergence.eventType)}), ${inline(divergence.path)}: ${values(divergence.recorded, divergence.replayed)}`
        ]),
    ...(stoppedAt === undefined ? [] : [`event ${stoppedAt.seq}: ${inline(stoppedAt.reason)}`]),
    ...(reason === undefined ? [] : [inline(reason)]),
    `${verdictWords(verdict, paint)} ${paint.dim(`(${count(compared, "event")} came out as recorded)`)}`
  ]
}

const reportFull = Effect.fnUntraced(function* (file: TraceFile, flags: ReplayFlags) {
  const full = yield* judgeFull(file, flags)
  const { found, reason, verdict } = full
  if (flags.json) {
    const document = {
      file: file.path,
      run_id: file.run.runId,
      mode: "full",
      verdict: verdict.replaceAll(" ", "_"),
      reason: reason ?? null,
      compared: found?.compared ?? 0,
      divergence: found?.divergence ?? null,
      stopped_at: found?.stoppedAt ?? null
    }
    yield* Console.log(jsonText(document))
  } else yield* Console.log(fullLines(full, yield* Screen.paintFor(flags.color)).join("\n"))
  return yield* endWith(verdict === "match" ? 0 : saysNo)
})

export const replayTrace = (flags: ReplayFlags) =>
  Effect.gen(function* () {
    const file = yield* load(flags.trace)
    if (file.run.schema !== "" && file.run.schema !== "writ.trace.v1") {
      return yield* usage(
        `${shown(file.path)} is of schema ${file.run.schema}; only traces of writ.trace.v1 can be replayed`
      )
    }
    return yield* flags.full ? reportFull(file, flags) : reportCalls(file, flags)
  }).pipe(inJson(flags.json))
