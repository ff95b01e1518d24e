/** `writ metrics TRACE…`: the six numbers about tool use, from traces alone, and the alarm for a rate that climbs. */
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import {
  type Drift,
  type DriftPlace,
  type DriftWindow,
  type Metrics,
  MetricsCounter,
  type Share
} from "../effects/trace/TraceMetrics.ts"
import { readFile } from "../effects/trace/TraceReader.ts"
import { endWith, inJson, type UsageError, usage } from "./Ending.ts"
import { type Input, type Inputs, inputsOf, readScores } from "./MetricsInputs.ts"
import { table } from "./MetricsTable.ts"
import { jsonText } from "./Printable.ts"
import * as Screen from "./Screen.ts"

export interface MetricsFlags {
  readonly traces: ReadonlyArray<string>
  readonly scores: string | undefined
  readonly window: number | undefined
  readonly alarm: string | undefined
  readonly json: boolean
  readonly color: boolean | undefined
}

const defaultWindow = 100

/** The exit code of an alarm: a check said no. */
const alarmed = 3

/** `0.05` or `5%`, from nothing to all. */
const rateOf = (text: string): number | undefined => {
  const found = /^(\d+(?:\.\d+)?|\.\d+)\s*(%?)$/.exec(text.trim())
  if (found === null) return undefined
  const rate = found[2] === "%" ? Number(found[1]) / 100 : Number(found[1])
  return rate <= 1 ? rate : undefined
}

const driftOptions = Effect.fnUntraced(function* ({ alarm, window }: MetricsFlags) {
  if (alarm === undefined && window === undefined) return undefined
  if (window !== undefined && window < 1) return yield* usage("--window: expected a whole number of at least 1")
  const rate = alarm === undefined ? undefined : rateOf(alarm)
  if (alarm !== undefined && rate === undefined) {
    return yield* usage(`--alarm: expected a rate from 0 to 1 or from 0% to 100%, found ${alarm}`)
  }
  return { window: window ?? defaultWindow, alarm: rate }
})

/** Feeds one trace to the counter; the number of lines that cannot be read. */
const feed = Effect.fnUntraced(function* (
  counter: MetricsCounter,
  { path }: Input
): Effect.fn.Return<number, UsageError> {
  const into = counter.feed(path)
  let unreadable = 0
  yield* Stream.runForEach(readFile(path, { sources: true }), (item) =>
    Effect.sync(() => {
      if (item._tag === "Unreadable") unreadable += 1
      else {
        const epoch = item.source?.envelope["ts_epoch_ms"]
        into.see(item.record, typeof epoch === "number" ? epoch : undefined)
      }
    })
  ).pipe(Effect.catchTag("TraceReadError", (error) => usage(error.message)))
  into.end()
  return unreadable
})

const shareDocument = ({ count, of, rate }: Share) => ({ count, of, rate: rate ?? null })

const placeDocument = ({ at, attempt, call, file, runId, seq }: DriftPlace) => ({
  attempt,
  run_id: runId,
  call: call ?? null,
  file,
  seq,
  time: at === undefined ? null : Math.round(at)
})

const windowDocument = (found: DriftWindow | undefined) =>
  found === undefined
    ? null
    : {
        violations: found.violations,
        rate: found.rate,
        from: placeDocument(found.from),
        to: placeDocument(found.to)
      }

const driftDocument = (drift: Drift) => ({
  window: drift.window,
  alarm: drift.alarm ?? null,
  tripped: drift.tripped !== undefined,
  attempts: drift.attempts,
  windows: drift.windows,
  above: drift.above,
  first_above: windowDocument(drift.tripped),
  worst: windowDocument(drift.worst),
  latest: windowDocument(drift.last)
})

const utilityDocument = ({ budget, calls, gain, perCall, reason, runs, scored, unused }: Metrics["utility"]) => ({
  per_call: perCall ?? null,
  gain,
  calls,
  budget:
    budget === undefined
      ? null
      : {
          wall_ms: budget.wallMillis,
          model_turns: budget.modelTurns,
          output_tokens: budget.outputTokens,
          think_tokens: budget.thinkTokens
        },
  scored_runs: scored,
  runs,
  unused_scores: unused,
  reason: reason ?? null
})

const documentOf = (found: Metrics, { copies, traces }: Inputs, unreadable: number) => ({
  runs: found.runs,
  parts: found.parts,
  without_end: found.parts - found.ended,
  attempts: found.schemaViolations.of,
  schema_violations: shareDocument(found.schemaViolations),
  precondition_violations: shareDocument(found.preconditionViolations),
  authorization_refusals: shareDocument(found.authorizationRefusals),
  postcondition_success: shareDocument(found.postconditionSuccess),
  read_success: shareDocument(found.readSuccess),
  duplicate_effects: shareDocument(found.duplicateEffects),
  rollbacks: shareDocument(found.rollbacks),
  turns_rolled_back: shareDocument(found.turnsRolledBack),
  progress_after_failure: shareDocument(found.progressAfterFailure),
  utility: utilityDocument(found.utility),
  classes: found.classes,
  left_out: {
    unjudged_effects: found.left.unjudged,
    unclear_executions: found.left.unclear,
    possible_duplicates: found.left.possibleDuplicates,
    undecided_failures: found.left.undecided,
    calls_without_intent: found.left.withoutIntent
  },
  keys_comparable_across_runs: !found.keyedByTrace,
  drift: found.drift === undefined ? null : driftDocument(found.drift),
  traces: traces.map(({ path, runId }) => ({ file: path, run_id: runId })),
  copies,
  unreadable
})

export const metrics = (flags: MetricsFlags) =>
  Effect.gen(function* () {
    if (flags.traces.length === 0) {
      return yield* usage("name at least one trace: a file, a directory of runs, a pattern, or a run's id")
    }
    const drift = yield* driftOptions(flags)
    const scores = flags.scores === undefined ? undefined : yield* readScores(flags.scores)
    const inputs = yield* inputsOf(flags.traces)
    const counter = new MetricsCounter()
    const lines = yield* Effect.forEach(inputs.traces, (input) => feed(counter, input))
    const unreadable = lines.reduce((sum, n) => sum + n, 0)
    const found = counter.measure({
      ...(scores === undefined ? {} : { scores }),
      ...(drift === undefined ? {} : { drift })
    })
    const read = { traces: inputs.traces.length, copies: inputs.copies.length, unreadable }
    if (flags.json) yield* Console.log(jsonText(documentOf(found, inputs, unreadable)))
    else yield* Console.log(table(found, read, yield* Screen.paintFor(flags.color)))
    return yield* endWith(found.drift?.tripped === undefined ? 0 : alarmed)
  }).pipe(inJson(flags.json))
