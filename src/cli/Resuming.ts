/**
 * `--resume`: from a name to the parts of a run, what their record says the run was made with, and what can be made of
 * them. Reads traces, opens nothing else.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { everything } from "../effects/Authority.ts"
import { fold, type Past } from "../effects/Past.ts"
import { answerProblem, plan, ResumeError, rulesUnsaid } from "../effects/Resume.ts"
import * as RunDirectory from "../effects/RunDirectory.ts"
import type { Settings } from "../effects/SettingFields.ts"
import type { Raw } from "../effects/SettingForms.ts"
import { authorityOf, type RawSettings } from "../effects/Settings.ts"
import { collect, TraceReadError, type TraceRecord } from "../effects/trace/TraceReader.ts"
import * as Families from "../engine/codecs/Families.ts"
import { nearest } from "../tools/Nearest.ts"
import type { Registry } from "../tools/Registry.ts"
import { type UsageError, usage } from "./Ending.ts"

/** A run as it was found: its directory, and the events of each part, oldest first. */
export interface Found {
  readonly directory: string
  readonly traces: ReadonlyArray<ReadonlyArray<TraceRecord>>
}

/** Events of one part. A line that the end of the file has cut is what a crash leaves; any other is damage. */
const readPart = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<ReadonlyArray<TraceRecord>, TraceReadError> {
  const records: Array<TraceRecord> = []
  for (const item of yield* collect(path)) {
    if (item._tag === "Event") records.push(item.record)
    else if (!item.cut) {
      const message = `${RunDirectory.shown(path)}, line ${item.line}: ${item.reason}. A damaged record cannot be continued from`
      return yield* new TraceReadError({ path, message })
    }
  }
  return records
})

/** The run in `.writ/runs` whose id is nearest to a name that none has. */
const nearestRun = (named: string): string => {
  const near = nearest(named, RunDirectory.ids())
  return near === undefined ? "" : `; did you mean ${near}?`
}

/**
 * Finds a run by the id of any of its parts, by its directory, or by one of its traces, and reads all of it. `by`: what the
 * name was given with.
 */
export const find = Effect.fnUntraced(function* (
  named: string,
  by = "--resume"
): Effect.fn.Return<Found, UsageError | TraceReadError> {
  const trace = RunDirectory.findTrace(named)
  if (trace === undefined) {
    const place = RunDirectory.look(named)
    const problem = place._tag === "Unknown" ? place.reason : "there is no such run"
    const how = `give a run's id in .writ/runs, its directory, or its trace${nearestRun(named)}`
    return yield* usage(`${by} ${named}: ${problem}: ${how}`)
  }
  const directory = RunDirectory.directoryOf(trace)
  if (directory === undefined) {
    return yield* usage(`${by} ${named}: a run goes on beside its trace, which has to be called trace.jsonl there`)
  }
  const paths = RunDirectory.partsIn(directory)
  const missing = paths.indexOf(undefined)
  if (missing >= 0) {
    const part = RunDirectory.shown(RunDirectory.at(directory, missing + 1).trace)
    return yield* usage(`${by} ${named}: ${part} is missing, a part of the run before the last one`)
  }
  const traces = yield* Effect.forEach(paths as ReadonlyArray<string>, (path) => readPart(path))
  return { directory, traces }
})

/** Can a run that left this be continued at all? */
export const check = ({ traces }: Found): Effect.Effect<void, ResumeError> => {
  const folded = fold(traces)
  return Result.isFailure(folded) ? Effect.fail(new ResumeError({ message: folded.failure })) : Effect.void
}

type Data = Readonly<Record<string, unknown>>

const within = (data: Data, name: string): Data => {
  const value = data[name]
  return typeof value === "object" && value !== null ? (value as Data) : {}
}

/** Data of the newest event of a type. */
const newest = ({ traces }: Found, type: string): Data => {
  for (const records of traces.toReversed()) {
    const found = records.find(({ event_type }) => event_type === type)
    if (found !== undefined) return found.data
  }
  return {}
}

/** Seconds as settings have them; no limit is `null` in the record. */
const limit = (value: unknown, scale = 1): Raw | undefined =>
  value === null ? "none" : typeof value === "number" ? value / scale : undefined

const toolNames = (tools: unknown): Raw | undefined => {
  if (!Array.isArray(tools)) return undefined
  return tools.length === 0 ? "none" : tools.map((tool) => String((tool as Data)["name"]))
}

/** Whoever is asked may be asked again; that calls were let through is said anew each time. */
const modes: Readonly<Record<string, Raw>> = { suspend: "suspend", person: "ask" }

/** Who decides about calls. Records from before there were gates say nothing of them. */
const recordedGates = (provenance: Data): Readonly<Record<string, unknown>> => {
  const gates = within(provenance, "gates")
  const retry = within(gates, "retry")
  return {
    approve: modes[String(provenance["policy"])],
    profile: within(gates, "profile")["name"],
    retryAttempts: retry["attempts"],
    retryDelay: retry["delay_ms"] === undefined ? undefined : `${retry["delay_ms"]}ms`,
    retryFactor: retry["factor"],
    candidates: gates["candidates"],
    dryRun: gates["dry_run"]
  }
}

/** What turns that may become calls are shown of. */
const streamOf = (provenance: Data): Raw | undefined => {
  const { stream } = within(within(provenance, "phases"), "plan")
  return stream === undefined ? undefined : stream === true ? "all" : "answers"
}

/** What the record says the newest part was run with, as settings. */
export const recorded = (found: Found): RawSettings => {
  const started = newest(found, "run_started")
  const provenance = newest(found, "provenance")
  const limits = within(started, "limits")
  const sampling = within(provenance, "sampling")
  const { clarify, constrained, thinking } = within(provenance, "profile")
  const said: Record<string, unknown> = {
    codec: provenance["codec"],
    system: provenance["system"] === "" ? undefined : provenance["system"],
    tools: toolNames(provenance["tools"]),
    calls: started["calls"],
    thinking: thinking ?? undefined,
    constrained,
    clarify,
    stream: streamOf(provenance),
    seed: sampling["seed"],
    temperature: sampling["temperature"],
    topK: sampling["topK"],
    topP: sampling["topP"],
    maxTurns: limit(limits["modelTurns"]),
    maxToolCalls: limit(limits["toolCalls"]),
    wallTime: limit(limits["wallMillis"], 1000),
    toolTimeout: limit(limits["toolMillis"], 1000),
    maxOutputTokens: limits["outputTokens"],
    maxThinkTokens: limit(limits["thinkTokens"]),
    maxResultBytes: limit(limits["resultBytes"]),
    maxRepairs: limit(limits["repairs"]),
    loopThreshold: limit(limits["loopThreshold"]),
    context: modelOf(found).contextTokens,
    contextPolicy: within(provenance, "context")["on_full"],
    traceContent: started["content"],
    ...recordedGates(provenance)
  }
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) as RawSettings
}

export interface RecordedModel {
  readonly scripted: boolean
  /** The file's name without its directory, or what a script calls itself. */
  readonly name: string
  /** The address of the server it ran on, if it did. */
  readonly server: string | undefined
  /** Of a model file: a script's is not one of its settings. */
  readonly contextTokens: number | undefined
}

/** The model that the record names. */
export const modelOf = (found: Found): RecordedModel => {
  const model = within(newest(found, "provenance"), "model")
  const { contextTokens, engine, name } = model
  const server = engine === "openai" ? String(within(model, "build")["server"]) : undefined
  const scripted = engine === "scripted"
  return {
    scripted,
    name: String(name),
    server,
    // What a server can hold it says again.
    contextTokens: scripted || server !== undefined || typeof contextTokens !== "number" ? undefined : contextTokens
  }
}

/** What the run's tools came from has to be named again, where it was neither this program nor this machine's settings. */
export const checkTools = (
  found: Found,
  own: Registry,
  { mcp, toolsDir }: Pick<Settings, "mcp" | "toolsDir">
): Effect.Effect<void, UsageError> => {
  const { tools } = newest(found, "provenance")
  const names = Array.isArray(tools) ? tools.map((tool) => String((tool as Data)["name"])) : []
  const missing = names.filter((name) => own.get(name) === undefined)
  const [remote, local] = [
    missing.filter((name) => name.includes("__")),
    missing.filter((name) => !name.includes("__"))
  ]
  if (local.length > 0 && toolsDir === undefined) {
    return usage(`the run had tools of a directory: add --tools-dir DIR (${local.join(", ")})`)
  }
  if (remote.length > 0 && mcp.length === 0) {
    return usage(`the run had tools of an MCP server: add --mcp NAME=ADDRESS (${remote.join(", ")})`)
  }
  return Effect.void
}

/** What is in the context has been written in one family's syntax and under one system text: both stay. */
export const checkFixed = (found: Found, flags: RawSettings): Effect.Effect<void, UsageError> => {
  const provenance = newest(found, "provenance")
  const family = typeof flags.codec === "string" ? Families.byId(flags.codec) : undefined
  if (family !== undefined && Result.isSuccess(family) && family.success.id !== provenance["codec"]) {
    return usage(`--codec ${String(flags.codec)}: the run goes on with its own codec, ${String(provenance["codec"])}`)
  }
  if (flags.system !== undefined && flags.system !== provenance["system"]) {
    return usage("--system: the run goes on with its own system text")
  }
  if (flags.runDir !== undefined) return usage("--run-dir: the run goes on in its own directory")
  const gates = within(provenance, "gates")
  if (gates["dry_run"] === true) return usage("a dry run cannot be continued: run its task again")
  if (flags.dryRun === true) return usage("--dry-run: the run was none so far; run its task again")
  if (flags.ledger === "memory") return usage("--ledger memory: it knows nothing of what the run has done so far")
  return Effect.void
}

/**
 * Permissions and redaction rules are in a record by name only. Going on without any, where there were some, would be
 * permitted more, or be written down.
 */
export const checkPermitted = (found: Found, settings: Settings): Effect.Effect<void, UsageError> => {
  const rules = newest(found, "run_started")["redact"]
  const unsaid = rulesUnsaid(Array.isArray(rules) ? rules.map(String) : [], settings.redact)
  if (unsaid !== undefined) return usage(`${unsaid} (--redact NAME=PATTERN)`)
  const before = within(newest(found, "provenance"), "gates")["authority"]
  if (before === undefined || before === everything.name || authorityOf(settings) !== undefined) return Effect.void
  return usage("the run was permitted certain things only: repeat its --grant, --deny and --scope")
}

/** The question that the run stopped with, if that was the last it did. */
const questionOf = ({ traces }: Found): string | undefined => {
  const last = traces.findLast((records) => records.length > 0)?.at(-1)
  return last?.event_type === "run_needs_input" ? String(last.data["question"]) : undefined
}

/** What the run had come to; refuses what cannot be continued. */
export const pastOf = Effect.fnUntraced(function* (found: Found, registry: Registry, answer: string | undefined) {
  const past = yield* plan(found.traces, registry)
  const question = questionOf(found)
  if (answer === undefined && question !== undefined) {
    return yield* usage(`the run stopped to ask: ${question}\nGive the answer with --answer TEXT`)
  }
  const problem = answerProblem(
    { traces: found.traces, tools: registry, ...(answer === undefined ? {} : { answer }) },
    past
  )
  if (problem !== undefined) return yield* usage(`--answer: ${problem}`)
  if (answer?.trim() === "") return yield* usage("--answer: the answer is empty")
  return past
})

/** Calls of the run whose outcome is known: their answers are, or will be, before the model, and none runs again. */
export const knownCalls = ({ answers, entries }: Past): number =>
  entries.filter(({ kind }) => kind === "tool").length + answers.size

/** How many turns of a script the run has kept: a resumed one goes on after them. */
export const playedTurns = ({ traces }: Found, { nextTurn }: Past): number => {
  const finished = traces.flat().filter(({ event_type }) => event_type === "model_call_finished")
  const kept = finished.filter(({ data }) => Number(data["turn"]) < nextTurn)
  return new Set(kept.map(({ data }) => `${data["turn"]}/${data["attempt"]}`)).size
}

/** Effects that had begun in the turn that is still open, and of which the record does not say what they came to. */
export const openEffects = ({ traces }: Found, { openTurn }: Past): ReadonlyArray<{ call: string; key: string }> => {
  if (openTurn === undefined) return []
  const open = new Map<string, string>()
  for (const { data, event_type } of traces.flat()) {
    const call = String(data["call"])
    if (event_type === "effect_intent" && call.startsWith(`call-${openTurn.turn}-`)) open.set(call, String(data["key"]))
    if (event_type === "effect_settled") open.delete(call)
  }
  return [...open].map(([call, key]) => ({ call, key }))
}
