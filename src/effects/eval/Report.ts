/**
 * The report of an evaluation as JSON (R-AILLY-29): totals, sums per class, every case with every assertion. Also reads
 * reports, old ones without newer fields included. Order and content depend on the conversations alone; only `timestamp` moves.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as JsonText from "../../tools/JsonText.ts"
import type { Conversation } from "../conversation/Conversation.ts"
import type { Decided, Evaluated, Matched } from "./Evaluation.ts"
import { type Outcome, outcomes } from "./Verdict.ts"

const Tally = Schema.Struct({
  passed: Schema.Natural,
  failed: Schema.Natural,
  deferred: Schema.Natural,
  malformed: Schema.Natural,
  errored: Schema.Natural
})

export const AssertionReport = Schema.Struct({
  class: Schema.String,
  outcome: Schema.Literals(outcomes),
  reason: Schema.optionalKey(Schema.String)
})

const MatchReport = Schema.Struct({ conversation: Schema.String, assertions: Schema.Array(AssertionReport) })

const CaseReport = Schema.Struct({ name: Schema.optionalKey(Schema.String), matches: Schema.Array(MatchReport) })

const Metrics = Schema.Struct({
  total_input_tokens: Schema.Natural,
  total_output_tokens: Schema.Natural,
  total_cache_hit_tokens: Schema.Natural,
  total_latency_ms: Schema.Finite,
  conversations_with_trace: Schema.Natural
})

export const Report = Schema.Struct({
  suite: Schema.String,
  run_id: Schema.String,
  /** When it was evaluated: ISO 8601, UTC. */
  timestamp: Schema.String,
  /** The model of all conversations; absent where they differ. */
  model: Schema.optionalKey(Schema.String),
  /** Absent where no turn has a trace. */
  metrics: Schema.optionalKey(Metrics),
  totals: Schema.Struct({ conversations_matched: Schema.Natural, assertions: Tally }),
  per_class: Schema.Record(Schema.String, Tally),
  cases: Schema.Array(CaseReport)
})

export type Report = typeof Report.Type
export type Tally = typeof Tally.Type
export type Metrics = typeof Metrics.Type

/** What several cost together; nothing where none says. */
export const sumOfMetrics = (all: ReadonlyArray<Metrics>): Metrics | undefined => {
  if (all.length === 0) return undefined
  const of = (key: keyof Metrics) => all.reduce((total, one) => total + one[key], 0)
  return {
    total_input_tokens: of("total_input_tokens"),
    total_output_tokens: of("total_output_tokens"),
    total_cache_hit_tokens: of("total_cache_hit_tokens"),
    total_latency_ms: of("total_latency_ms"),
    conversations_with_trace: of("conversations_with_trace")
  }
}
export type MatchReport = typeof MatchReport.Type
export type AssertionReport = typeof AssertionReport.Type

const noTally: Tally = { passed: 0, failed: 0, deferred: 0, malformed: 0, errored: 0 }

const tallied: Readonly<Record<Outcome, keyof Tally>> = {
  pass: "passed",
  fail: "failed",
  deferred: "deferred",
  malformed: "malformed",
  errored: "errored"
}

export const tallyOf = (found: Iterable<Outcome>): Tally => {
  const tally: { -readonly [K in keyof Tally]: number } = { ...noTally }
  for (const outcome of found) tally[tallied[outcome]] += 1
  return tally
}

/** All assertions that were decided, whatever came of it. */
export const sizeOf = (tally: Tally): number =>
  tally.passed + tally.failed + tally.deferred + tally.malformed + tally.errored

/** What a conversation took; `undefined` where none of its turns has a trace. */
export const metricsOf = ({ session }: Conversation): Omit<Metrics, "conversations_with_trace"> | undefined => {
  const traces = session.flatMap(({ trace }) => (trace === undefined ? [] : [trace]))
  if (traces.length === 0) return undefined
  const sum = (of: (trace: (typeof traces)[number]) => number) => traces.reduce((all, one) => all + of(one), 0)
  return {
    total_input_tokens: sum(({ tokens }) => tokens.input),
    total_output_tokens: sum(({ tokens }) => tokens.output),
    total_cache_hit_tokens: sum(({ tokens }) => tokens.cache_hit ?? 0),
    total_latency_ms: sum(({ latency_ms }) => latency_ms)
  }
}

const allMetrics = (conversations: Evaluated["conversations"]): Metrics | undefined => {
  const each = conversations.flatMap(({ conversation }) => metricsOf(conversation) ?? [])
  if (each.length === 0) return undefined
  const sum = (key: keyof (typeof each)[number]) => each.reduce((all, one) => all + one[key], 0)
  return {
    total_input_tokens: sum("total_input_tokens"),
    total_output_tokens: sum("total_output_tokens"),
    total_cache_hit_tokens: sum("total_cache_hit_tokens"),
    total_latency_ms: sum("total_latency_ms"),
    conversations_with_trace: each.length
  }
}

const assertionReport = ({ class: kind, verdict: { outcome, reason } }: Decided): AssertionReport => ({
  class: kind,
  outcome,
  ...(reason === undefined ? {} : { reason })
})

const matchReport = ({ assertions, conversation }: Matched): MatchReport => ({
  conversation,
  assertions: assertions.map(assertionReport)
})

/** @param timestamp ISO 8601 */
export const of = (evaluated: Evaluated, runId: string, timestamp: string): Report => {
  const cases = evaluated.cases.map(({ matches, name }) => ({
    ...(name === undefined ? {} : { name }),
    matches: matches.map(matchReport)
  }))
  const all = cases.flatMap(({ matches }) => matches.flatMap(({ assertions }) => assertions))
  const classes = [...new Set(all.map((one) => one.class))].sort()
  const models = new Set(evaluated.conversations.map(({ conversation }) => conversation.meta.model))
  const metrics = allMetrics(evaluated.conversations)
  return {
    suite: evaluated.suite,
    run_id: runId,
    timestamp,
    ...(models.size === 1 ? { model: [...models][0]! } : {}),
    ...(metrics === undefined ? {} : { metrics }),
    totals: {
      conversations_matched: evaluated.conversations.length,
      assertions: tallyOf(all.map(({ outcome }) => outcome))
    },
    per_class: Object.fromEntries(
      classes.map((kind) => [kind, tallyOf(all.filter((one) => one.class === kind).map(({ outcome }) => outcome))])
    ),
    cases
  }
}

/** Did anything go wrong? Deferred programs and scripts count: they were meant to run. `strict`: so does whatever deferred. */
export const isRed = ({ cases, totals }: Report, strict = false): boolean => {
  const { deferred, errored, failed, malformed, passed } = totals.assertions
  if (failed + malformed + errored > 0 || totals.conversations_matched === 0) return true
  if (strict) return deferred > 0 || passed === 0
  return cases.some(({ matches }) =>
    matches.some(({ assertions }) =>
      assertions.some((one) => one.outcome === "deferred" && (one.class === "script" || one.class === "program"))
    )
  )
}

export const emit = (report: Report): string => `${JSON.stringify(report, undefined, 2)}\n`

const decode = Schema.decodeUnknownResult(Report)

/** Fields that later versions add are ignored, and those an older one lacks are filled with nothing. */
const completed = (value: JsonText.JsonObject): JsonText.JsonObject => {
  const tally = (given: JsonText.Json | undefined): JsonText.Json =>
    given !== undefined && JsonText.isObject(given) ? { ...noTally, ...given } : { ...noTally }
  const { metrics, per_class, totals } = value
  const sums = totals !== undefined && JsonText.isObject(totals) ? totals : {}
  const classes = per_class !== undefined && JsonText.isObject(per_class) ? per_class : {}
  return {
    timestamp: "",
    cases: [],
    ...value,
    ...(metrics !== undefined && JsonText.isObject(metrics)
      ? {
          metrics: {
            total_input_tokens: 0,
            total_output_tokens: 0,
            total_cache_hit_tokens: 0,
            total_latency_ms: 0,
            conversations_with_trace: 0,
            ...metrics
          }
        }
      : {}),
    totals: { conversations_matched: 0, ...sums, assertions: tally(sums.assertions) },
    per_class: Object.fromEntries(Object.entries(classes).map(([kind, given]) => [kind, tally(given)]))
  }
}

/** The report a text holds, or why it is none. */
export const parse = (text: string): Result.Result<Report, string> => {
  const read = JsonText.parse(text, { maxDepth: 100 })
  if (Result.isFailure(read))
    return Result.fail(`it is not JSON: ${read.failure.reason} at character ${read.failure.position}`)
  if (!JsonText.isObject(read.success)) return Result.fail("it is no report of an evaluation")
  return Result.mapError(
    decode(completed(read.success)),
    ({ message }) => `it is no report of an evaluation: ${message}`
  )
}
