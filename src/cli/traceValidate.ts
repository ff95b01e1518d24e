/** `writ trace validate`: one line per trace, and below it every invariant that does not hold, with its number and place. */

import { readdirSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isDirectory, shown } from "../effects/RunDirectory.ts"
import { readFile } from "../effects/trace/TraceReader.ts"
import { type ValidateOptions, type Verdict, type Violation, validateFile } from "../effects/trace/TraceValidator.ts"
import { endWith, inJson, usage } from "./Ending.ts"
import { count, inline, jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"
import { locate } from "./TraceFile.ts"
import { violationsDocument } from "./TraceProblems.ts"

export interface ValidateFlags {
  readonly traces: ReadonlyArray<string>
  readonly allowIncomplete: boolean
  /** Compare the files beside the trace too. */
  readonly artifacts: boolean
  readonly json: boolean
  readonly color: boolean | undefined
}

interface Judged {
  readonly path: string
  readonly verdict: Verdict
  readonly valid: boolean
}

/** Hashes of the artifacts that the other traces of a directory mention: the parts of a resumed run share theirs. */
const mentionedBeside = Effect.fnUntraced(function* (path: string) {
  const directory = dirname(path)
  const hashes = new Set<string>()
  const others = readdirSync(directory).filter((name) => name.endsWith(".jsonl") && name !== basename(path))
  for (const name of others) {
    yield* Stream.runForEach(readFile(join(directory, name)), (item) =>
      Effect.sync(() => {
        if (item._tag === "Event" && item.record.event_type === "artifact_written") {
          hashes.add(String(item.record.data["sha256"]))
        }
      })
    )
  }
  return hashes
})

/** A trace lies in a run's directory if it is called `trace.jsonl`, or if artifacts lie beside it. */
export const optionsFor = Effect.fnUntraced(function* (path: string, wanted: boolean) {
  const artifacts = join(dirname(path), "artifacts")
  if (!wanted || (basename(path) !== "trace.jsonl" && !isDirectory(artifacts))) return {}
  return { artifacts, mentionedElsewhere: yield* mentionedBeside(path) } satisfies ValidateOptions
})

const judge = Effect.fnUntraced(function* (path: string, flags: ValidateFlags) {
  const verdict = yield* validateFile(path, yield* optionsFor(path, flags.artifacts))
  // A file without a single event is not a trace that was cut short; it is no trace.
  const ended = verdict.complete || (flags.allowIncomplete && verdict.counts.events > 0)
  return { path, verdict, valid: verdict.ok && ended } satisfies Judged
})

const headline = ({ path, verdict }: Judged, paint: Screen.Paint): string => {
  const { complete, counts, cut, violationCount } = verdict
  const ending = complete ? "" : cut ? "incomplete: it ends inside a line" : "incomplete: it has no terminal event"
  const problems = violationCount === 0 ? "" : count(violationCount, "problem")
  const state = counts.events === 0 ? "no events" : [problems, ending].filter((part) => part !== "").join(", ")
  const words = state === "" ? paint.green("valid") : (violationCount > 0 ? paint.red : paint.yellow)(state)
  return `${inline(shown(path))}: ${words} ${paint.dim(`(${count(counts.events, "event")})`)}`
}

const problemLine = ({ invariant, line, message, seq }: Violation, paint: Screen.Paint): string => {
  const place = [...(seq === undefined ? [] : [`event ${seq}`]), ...(line === undefined ? [] : [`line ${line}`])].join(
    ", "
  )
  return `  ${paint.red(invariant)} ${inline(message)}${place === "" ? "" : paint.dim(` (${place})`)}`
}

const human = (judged: ReadonlyArray<Judged>, paint: Screen.Paint): string =>
  judged
    .flatMap((one) => {
      const { violationCount, violations } = one.verdict
      const more = violationCount - violations.length
      return [
        headline(one, paint),
        ...violations.map((violation) => problemLine(violation, paint)),
        ...(more > 0 ? [`  and ${more} more`] : [])
      ]
    })
    .join("\n")

const documentOf = (judged: ReadonlyArray<Judged>) => ({
  valid: judged.every(({ valid }) => valid),
  traces: judged.map(({ path, valid, verdict }) => ({
    file: path,
    run_id: verdict.runId ?? null,
    valid,
    complete: verdict.complete,
    cut: verdict.cut,
    violation_count: verdict.violationCount,
    violations: violationsDocument(verdict),
    unjudged: verdict.unjudged,
    counts: {
      events: verdict.counts.events,
      turns: verdict.counts.turns,
      tool_calls: verdict.counts.toolCalls,
      rejected: verdict.counts.rejected,
      skipped: verdict.counts.skipped,
      artifacts: verdict.counts.artifacts,
      output_tokens: verdict.counts.outputTokens
    }
  }))
})

const notValid = 3

export const validate = (flags: ValidateFlags) =>
  Effect.gen(function* () {
    if (flags.traces.length === 0)
      return yield* usage("name at least one trace: a file, a run's directory, or a run's id")
    const paths = yield* Effect.forEach(flags.traces, locate)
    const judged = yield* Effect.forEach(paths, (path) => judge(path, flags)).pipe(
      Effect.catchTag("TraceReadError", (error) => usage(error.message))
    )
    if (flags.json) yield* Console.log(jsonText(documentOf(judged)))
    else yield* Console.log(human(judged, yield* Screen.paintFor(flags.color)))
    return yield* endWith(judged.every(({ valid }) => valid) ? 0 : notValid)
  }).pipe(inJson(flags.json))
