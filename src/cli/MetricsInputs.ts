/**
 * What `writ metrics` reads: the traces that were named, in the order in which they began and each once, and the file of
 * scores. What a run's tools wrote or read lies beside its trace and is never taken for one.
 */
import { hash } from "node:crypto"
import { existsSync, globSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs"
import { dirname, join, relative, sep } from "node:path"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { reasonOf } from "../actors/Directories.ts"
import { findTrace, isDirectory, partOf, standard } from "../effects/RunDirectory.ts"
import type { Score } from "../effects/trace/TraceMetrics.ts"
import { readFile } from "../effects/trace/TraceReader.ts"
import { type UsageError, usage } from "./Ending.ts"
import { noTrace } from "./Places.ts"

/** A trace, its run, and when it began in milliseconds since 1970, if it says so. */
export interface Input {
  readonly path: string
  readonly runId: string
  readonly began: number | undefined
}

const owned = new Set(["artifacts", "workspace"])

/** Does it lie in a directory that belongs to a run's tools? */
const isTheirs = (root: string, path: string): boolean => {
  const segments = relative(root, dirname(path)).split(sep)
  return segments.some((name, at) => owned.has(name) && existsSync(join(root, ...segments.slice(0, at), "trace.jsonl")))
}

/** Files that may be traces, all the way down. Links are not followed. */
const filesIn = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".jsonl"))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !isTheirs(directory, path))
    .sort()

const isPattern = (named: string): boolean => /[*?[{]/.test(named)

const matches = (pattern: string): ReadonlyArray<string> =>
  globSync(pattern)
    .sort()
    .flatMap((path) => (isDirectory(path) ? filesIn(path) : path.endsWith(".jsonl") ? [path] : []))

/** The files meant by one name: a directory is everything below it, an id of a run all its parts. */
const filesOf = (named: string): ReadonlyArray<string> => {
  if (isDirectory(named)) return filesIn(named)
  const found = findTrace(named)
  if (found === undefined) return isPattern(named) ? matches(named) : []
  const whole = found !== named && partOf(named).part === 1
  return whole ? filesIn(standard(named).directory) : [found]
}

const resolve = (named: string): Effect.Effect<ReadonlyArray<string>, UsageError> =>
  Effect.flatMap(
    Effect.try({ try: () => filesOf(named), catch: (cause) => `${named} cannot be read: ${reasonOf(cause)}` }).pipe(
      Effect.catch((message) => usage(message))
    ),
    (files) => {
      if (files.length > 0) return Effect.succeed(files)
      if (isDirectory(named)) return usage(`there are no traces in ${named}`)
      return usage(isPattern(named) ? `no trace matches ${named}` : noTrace(named))
    }
  )

interface Looked extends Input {
  /** Says which run's which record it is: equal for a file and its copy. */
  readonly head: string
  readonly bytes: number
}

/** Looks at the first event; `undefined` for a file without one, which is no trace. */
const look = Effect.fnUntraced(function* (path: string) {
  const first = yield* readFile(path, { sources: true }).pipe(
    Stream.filter((item) => item._tag === "Event"),
    Stream.map(({ record, source }) => {
      const epoch = source?.envelope["ts_epoch_ms"]
      const began = typeof epoch === "number" ? epoch - record.t_ms : undefined
      return { runId: record.run_id, began, head: hash("sha256", source!.bytes) }
    }),
    Stream.take(1),
    Stream.runCollect
  )
  const [found] = first
  return found === undefined ? undefined : ({ path, ...found, bytes: statSync(path).size } satisfies Looked)
})

export interface Inputs {
  readonly traces: ReadonlyArray<Input>
  /** Copies of traces that are counted, most of them shorter. */
  readonly copies: ReadonlyArray<string>
}

/** Finds, orders and sorts out. Of several copies of one record the longest is taken. */
export const inputsOf = Effect.fnUntraced(function* (
  named: ReadonlyArray<string>
): Effect.fn.Return<Inputs, UsageError> {
  const files = (yield* Effect.forEach(named, resolve)).flat()
  const places = new Map(files.map((path) => [realpathSync(path), path]))
  const looked = yield* Effect.forEach(places.values(), look).pipe(
    Effect.catchTag("TraceReadError", (error) => usage(error.message))
  )
  const records = new Map<string, Looked>()
  const copies: Array<string> = []
  for (const one of looked) {
    if (one === undefined) continue
    const same = records.get(one.head)
    if (same !== undefined) copies.push(same.bytes >= one.bytes ? one.path : same.path)
    if (same === undefined || same.bytes < one.bytes) records.set(one.head, one)
  }
  if (records.size === 0) return yield* usage(`there are no traces in ${named.join(", ")}`)
  // What does not say when it began comes first, in the order of its name.
  const traces = [...records.values()].sort((a, b) => (a.began ?? 0) - (b.began ?? 0))
  return { traces, copies }
})

const shape = 'an object from run ids to {"with": NUMBER, "without": NUMBER}'

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value)

const scoresIn = (text: string): ReadonlyMap<string, Score> | undefined => {
  const read: unknown = JSON.parse(text)
  if (typeof read !== "object" || read === null || Array.isArray(read)) return undefined
  const scores = new Map<string, Score>()
  for (const [id, value] of Object.entries(read)) {
    const { with: tools, without } = (value ?? {}) as Readonly<Record<string, unknown>>
    if (!isNumber(tools) || !isNumber(without)) return undefined
    scores.set(id, { with: tools, without })
  }
  return scores
}

/** Scores by run id. */
export const readScores = (path: string): Effect.Effect<ReadonlyMap<string, Score>, UsageError> =>
  Effect.try({
    try: () => scoresIn(readFileSync(path, "utf8")),
    catch: (cause) => (cause instanceof SyntaxError ? "it is not JSON" : reasonOf(cause))
  }).pipe(
    Effect.catch((reason) => usage(`${path} cannot be used: ${reason}`)),
    Effect.flatMap((scores) => (scores === undefined ? usage(`${path} has to be ${shape}`) : Effect.succeed(scores)))
  )
