/**
 * Two recorded runs side by side: what is the same, what differs, what nobody can tell, and the first event at which they
 * part. Times, and what only names a run, are left out (the lists below); everything else counts.
 */

import { concealed } from "./Concealed.ts"
import { emberSchema } from "./EmberTrace.ts"
import { leftOutOfData } from "./TraceCompare.ts"
import type { TraceRecord } from "./TraceReader.ts"
import { eventOf, fateOf, type TraceCall, type TraceRun, takeApart } from "./TraceRun.ts"
import { type Apart, apart, sha256 } from "./TraceValues.ts"

/** What is compared, in the order it is shown. */
export const aspects = [
  "task",
  "provenance",
  "limits",
  "skeleton",
  "turns",
  "calls",
  "arguments",
  "results",
  "artifacts",
  "answers",
  "stop",
  "counts"
] as const

export type Aspect = (typeof aspects)[number]

/** One thing that differs, or that cannot be told. */
export interface Finding extends Apart {
  readonly aspect: Aspect
}

/** The first event at which the runs part. */
export interface Divergence {
  /** Place in the events that are compared, from 0: as many agree. */
  readonly at: number
  /** The event on either side; missing where that record has ended. */
  readonly a: TraceRecord | undefined
  readonly b: TraceRecord | undefined
  readonly path: string
  readonly valueA: unknown
  readonly valueB: unknown
  /** In words. */
  readonly why: string
}

export interface Diff {
  /** `undetermined`: nothing differs, and not everything could be compared. */
  readonly verdict: "same" | "different" | "undetermined"
  readonly aspects: Readonly<Record<Aspect, "same" | "different" | "undetermined">>
  readonly findings: ReadonlyArray<Finding>
  readonly divergence: Divergence | undefined
  /** One run's events are the first of the other's. */
  readonly prefix: "a" | "b" | undefined
  readonly notes: ReadonlyArray<string>
}

/** Fields that name a run, or follow from its name or seed. The run's own seed is compared. */
const naming = ["call", "key", "seed", "from_run", "root_run", "from_seq", "prev", "events"]

/** Fields of events that are not compared: time, and names. */
export const leftOut: ReadonlySet<string> = new Set([...leftOutOfData, ...naming].filter((name) => name !== "product"))

/** Events of these types say how a run was made; they are compared as provenance, not as steps. */
const making = new Set(["run_started", "provenance", "phase_started"])

/** Where the schemas differ, only what both have in the same places can be lined up. */
const everySchema: ReadonlySet<string> = new Set([
  "run_started",
  "model_call_started",
  "model_call_finished",
  "assistant_action_parsed",
  "tool_call_validated",
  "tool_call_rejected",
  "tool_execution_started",
  "tool_execution_finished",
  "artifact_written",
  "run_completed",
  "run_cancelled",
  "run_terminated",
  "run_failed"
])

const skeletonOf = (run: TraceRun, mixed: boolean): ReadonlyArray<TraceRecord> =>
  run.records.filter(({ event_type: type }) => (mixed ? everySchema.has(type) : type !== "generation_token"))

/** @param levels of fields at which, between schemas, only what both record counts */
type Compare = (path: string, a: unknown, b: unknown, levels?: number) => ReadonlyArray<Apart>

const inTurn = ({ step }: TraceRecord): string => {
  const turn = /^model-(\d+)$/.exec(step)?.[1]
  return turn === undefined ? "" : ` in turn ${Number(turn) + 1}`
}

/** Why two events of one type differ, in words; the path decides where the type has several reasons. */
const reason = (record: TraceRecord, path: string): string => {
  const { data } = record
  const tool = typeof data["tool"] === "string" ? data["tool"] : "a tool"
  switch (record.event_type) {
    case "message_committed":
      return `the ${String(data["role"])} message is another one`
    case "session_state_changed":
      return data["role"] === "system"
        ? "the system message takes another number of tokens: its text, the tools or the codec are others"
        : "the context holds another number of tokens"
    case "model_call_started":
      return `the model was asked in another state${inTurn(record)}`
    case "model_call_finished":
      return path === "data.text"
        ? `the model wrote something else${inTurn(record)}`
        : `the model's turn ended differently${inTurn(record)}`
    case "assistant_action_parsed":
      return `what the model wrote was read as something else${inTurn(record)}`
    case "legality_checked":
      return `a call was judged differently${inTurn(record)}`
    case "tool_call_validated":
      return path.startsWith("data.tool")
        ? `another tool was called${inTurn(record)}`
        : `${tool} was called with other arguments${inTurn(record)}`
    case "tool_call_rejected":
      return `a call was rejected for another reason${inTurn(record)}`
    case "approval_decided":
      return `the decision about ${tool} was another one`
    case "tool_execution_finished":
      return `${tool} came to something else`
    case "artifact_written":
      return `${String(data["producer_tool"] ?? "a tool")} wrote something else`
    case "effect_settled":
      return `the ledger holds another outcome of ${tool}`
    default:
      return record.event_type.startsWith("run_")
        ? "the runs ended differently"
        : `the event ${record.event_type} says something else`
  }
}

const typeReason = (a: TraceRecord | undefined, b: TraceRecord | undefined): string => {
  if (a === undefined) return `the record of A ends, B goes on with ${b!.event_type}`
  if (b === undefined) return `the record of B ends, A goes on with ${a.event_type}`
  return `A goes on with ${a.event_type}, B with ${b.event_type}`
}

interface Walked {
  readonly divergence: Divergence | undefined
  readonly skeleton: ReadonlyArray<Apart>
  readonly prefix: "a" | "b" | undefined
}

/** The data of an event without what is not compared. What a call brings or gives has its own fields, which all count. */
const comparable = (record: TraceRecord): unknown =>
  Object.fromEntries(Object.entries(record.data).filter(([name]) => !leftOut.has(name)))

/** What explains the others, as far as it differs: numbers of tokens follow from a text, sizes from a result. */
const causes = /^data\.(?:text|payload|arguments|tool|action|ok)\b/

const telling = (found: ReadonlyArray<Apart>): Apart | undefined => {
  const different = found.filter(({ comparison }) => comparison === "different")
  return different.find(({ path }) => causes.test(path)) ?? different[0]
}

/** Event by event to the first that differs, and to the first of another type. */
const walk = (left: ReadonlyArray<TraceRecord>, right: ReadonlyArray<TraceRecord>, compare: Compare): Walked => {
  let divergence: Divergence | undefined
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const [a, b] = [left[at], right[at]]
    if (a?.event_type !== b?.event_type || a === undefined || b === undefined) {
      const [valueA, valueB] = [a?.event_type, b?.event_type]
      divergence ??= { at, a, b, path: "event_type", valueA, valueB, why: typeReason(a, b) }
      const prefix = a === undefined ? "a" : b === undefined ? "b" : undefined
      return { divergence, skeleton: [{ path: `[${at}]`, a: valueA, b: valueB, comparison: "different" }], prefix }
    }
    if (divergence !== undefined || making.has(a.event_type)) continue
    const found = telling(compare("data", comparable(a), comparable(b), 1))
    if (found === undefined) continue
    divergence = { at, a, b, path: found.path, valueA: found.a, valueB: found.b, why: reason(a, found.path) }
  }
  return { divergence, skeleton: [], prefix: undefined }
}

const data = (record: TraceRecord | undefined): Readonly<Record<string, unknown>> => record?.data ?? {}

/** Tools by name: their order matters less than which they are. */
const byName = (tools: unknown): unknown =>
  Array.isArray(tools)
    ? Object.fromEntries(tools.map((tool: Readonly<Record<string, unknown>>) => [String(tool["name"]), tool]))
    : tools

const madeWith = (run: TraceRun): unknown => {
  const { tools, ...made } = data(run.provenance)
  const { calls, render } = data(run.started)
  return { ...made, tools: byName(tools), calls, render }
}

const placeOf = (call: TraceCall): string => `${call.turn ?? "?"}.${call.ordinal ?? call.id}`

const callsOf = (run: TraceRun) =>
  Object.fromEntries(
    run.calls.map((call) => [
      placeOf(call),
      {
        tool: call.tool,
        fate: fateOf(call, run),
        kind: eventOf(call, "tool_call_rejected")?.data["kind"],
        decision: eventOf(call, "approval_decided")?.data["decision"]
      }
    ])
  )

/** The calls that both runs have, by their places. */
const paired = (a: TraceRun, b: TraceRun): ReadonlyArray<readonly [place: string, a: TraceCall, b: TraceCall]> => {
  const others = new Map(b.calls.map((call) => [placeOf(call), call]))
  return a.calls.flatMap((call) => {
    const other = others.get(placeOf(call))
    return other === undefined ? [] : [[placeOf(call), call, other] as const]
  })
}

const argumentsOf = (call: TraceCall): unknown => eventOf(call, "tool_call_validated")?.data["arguments"]

const resultOf = (call: TraceCall): unknown => {
  const finished = eventOf(call, "tool_execution_finished")
  if (finished === undefined) return undefined
  const { effect, failure_kind, ok, payload, payload_bytes } = finished.data
  return { ok, failure_kind, effect, payload_bytes, payload }
}

const artifactsOf = (run: TraceRun): unknown =>
  run.artifacts.map(({ data: { media_type, name, sha256: hash, size_bytes } }) => ({
    name,
    sha256: hash,
    size_bytes,
    media_type
  }))

const answersOf = ({ terminal }: TraceRun): unknown => {
  const { final_text, partial_text, question } = data(terminal)
  return { final_text, partial_text, question }
}

const stopOf = ({ terminal }: TraceRun): unknown => {
  const { at, class: kind, limit_hit, reason: why } = data(terminal)
  return { event: terminal?.event_type, reason: why, limit_hit, at, class: kind }
}

/** Ember has no task in its first event; the user's message is one. */
const taskOf = (run: TraceRun): unknown =>
  data(run.started)["task"] ??
  run.records.find(({ data: fields, event_type: type }) => type === "message_committed" && fields["role"] === "user")
    ?.data["content"]

const turnsOf = (run: TraceRun): unknown =>
  run.turns.map(({ finished, parsed, rolledBack }) => ({
    text: data(finished.at(-1))["text"],
    stop_reason: data(finished.at(-1))["stop_reason"],
    output_tokens: finished.reduce((sum, record) => sum + Number(record.data["output_tokens"] ?? 0), 0),
    action: parsed?.data["action"],
    rolled_back: rolledBack?.data["reason"]
  }))

/** From the events, so that a record without an end and one of the other schema have the same. */
const countsOf = (run: TraceRun): unknown => ({
  turns: run.turns.length,
  calls: run.calls.length,
  executions: run.records.filter(({ event_type: type }) => type === "tool_execution_finished").length,
  rejected: run.records.filter(({ event_type: type }) => type === "tool_call_rejected").length,
  skipped: run.records.filter(({ event_type: type }) => type === "call_skipped").length,
  artifacts: run.artifacts.length,
  output_tokens: run.records.reduce(
    (sum, { data: fields, event_type: type }) =>
      type === "model_call_finished" ? sum + Number(fields["output_tokens"] ?? 0) : sum,
    0
  )
})

/** The digest beside a result that is on record, so that two lines are enough to see that they differ. */
const withDigest = (found: Apart): Apart =>
  found.path.endsWith(".payload") || found.path.includes(".payload.") || found.path.includes(".payload[")
    ? { ...found, a: digested(found.a), b: digested(found.b) }
    : found

const digested = (value: unknown): unknown =>
  value === undefined || (typeof value === "object" && value !== null && ("hmac" in value || "sha256" in value))
    ? value
    : { sha256: sha256(value), value }

const compareAll = (
  a: TraceRun,
  b: TraceRun,
  compare: Compare,
  skeleton: ReadonlyArray<Apart>
): ReadonlyArray<Finding> => {
  const pairs = paired(a, b)
  const perCall = (what: (call: TraceCall) => unknown, levels?: number) =>
    pairs.flatMap(([place, left, right]) => compare(place, what(left), what(right), levels))
  const found: Readonly<Record<Aspect, ReadonlyArray<Apart>>> = {
    task: compare("", { task: taskOf(a) }, { task: taskOf(b) }, 1),
    provenance: compare("", madeWith(a), madeWith(b), 4),
    limits: compare("", data(a.started)["limits"], data(b.started)["limits"], 1),
    skeleton,
    turns: compare("", turnsOf(a), turnsOf(b), 2),
    calls: compare("", callsOf(a), callsOf(b)),
    arguments: perCall(argumentsOf),
    results: perCall(resultOf, 1).map(withDigest),
    artifacts: compare("", artifactsOf(a), artifactsOf(b), 1),
    answers: compare("", answersOf(a), answersOf(b), 1),
    stop: compare("", stopOf(a), stopOf(b), 1),
    counts: compare("", countsOf(a), countsOf(b))
  }
  return aspects.flatMap((aspect) => found[aspect].map((one) => ({ aspect, ...one })))
}

const verdictOf = (findings: ReadonlyArray<Apart>) => {
  if (findings.some(({ comparison }) => comparison === "different")) return "different"
  return findings.length > 0 ? "undetermined" : "same"
}

const notesOf = (a: TraceRun, b: TraceRun, findings: ReadonlyArray<Finding>, mixed: boolean): ReadonlyArray<string> => {
  const without = [a.content ? "" : "A", b.content ? "" : "B"].filter((side) => side !== "").join(" and ")
  const unknown = findings.filter(({ comparison }) => comparison === "unknown").length
  const endless = [a.terminal === undefined ? "A" : "", b.terminal === undefined ? "B" : ""].filter(
    (side) => side !== ""
  )
  return [
    ...(without === "" ? [] : [`${without} ${without.length > 1 ? "were" : "was"} recorded without content`]),
    ...(unknown === 0
      ? []
      : [
          `${unknown} ${unknown === 1 ? "value is" : "values are"} equally long and cannot be compared further: their digests are made under different keys`
        ]),
    ...endless.map((side) => `${side} has no terminal event: the process died, was killed, or is still at it`),
    ...(mixed ? ["the traces are of different schemas: only what both record is compared"] : [])
  ]
}

/** Marks that are alike may stand for texts that are not: what was redacted is compared as what was left out. */
const unmarked = (run: TraceRun): TraceRun =>
  run.records.some(({ redacted }) => redacted !== undefined) ? takeApart(run.records.map(concealed)) : run

/** Compares two runs. */
export const diff = (first: TraceRun, second: TraceRun): Diff => {
  const [a, b] = [unmarked(first), unmarked(second)]
  const mixed = a.schema !== b.schema
  const sameKey = a.runId === b.runId && a.schema !== emberSchema
  const compare: Compare = (path, left, right, levels = 0) =>
    apart(path, left, right, { sameKey, shared: mixed ? levels : 0 })
  const { divergence, prefix, skeleton } = walk(skeletonOf(a, mixed), skeletonOf(b, mixed), compare)
  const findings = compareAll(a, b, compare, skeleton)
  const states = aspects.map((aspect) => [aspect, verdictOf(findings.filter((one) => one.aspect === aspect))] as const)
  // What an event alone shows counts as well: not every field of one is an aspect.
  const verdict = divergence === undefined ? verdictOf(findings) : "different"
  return {
    verdict,
    aspects: Object.fromEntries(states) as Diff["aspects"],
    findings,
    divergence,
    prefix,
    notes: notesOf(a, b, findings, mixed)
  }
}
