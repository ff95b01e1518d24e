/** An auditor: reads nothing but the lines of a trace, and says what each attempt was judged to be and came to. */
import { type Metrics, MetricsCounter, type MetricsOptions } from "../../src/effects/trace/TraceMetrics.ts"
import { Lines } from "../../src/effects/trace/TraceReader.ts"
import { type Line, lines } from "./script.ts"

type Check = "pass" | "fail" | "not_evaluated"

export interface Attempt {
  readonly call: string
  readonly results: readonly [schema: Check, scopes: Check, pre: Check]
  /** What follows from the three results alone. */
  readonly legal: boolean
  /** What the run decided: a refusal after legality (too dear, not approved, dry run) is of a legal call. */
  readonly held: boolean
  readonly blockedBy: ReadonlyArray<string>
  readonly follows: number | undefined
  readonly resembles: number | undefined
  readonly seq: number
}

const afterLegality: ReadonlySet<unknown> = new Set(["governor", "approval", "execution"])

/** A ledger that knows the attempt stands for the precondition; nothing else that was not looked at does. */
const isLegal = ({ cause, pre, schema, scopes }: Record<string, unknown>): boolean =>
  schema === "pass" &&
  scopes === "pass" &&
  (pre === "pass" || (pre === "not_evaluated" && cause === "superseded_by_ledger"))

const heldLegal = (rest: ReadonlyArray<Line>, call: string): boolean => {
  const decision = rest.find(
    ({ data, event_type }) =>
      data["call"] === call && (event_type === "tool_call_validated" || event_type === "tool_call_rejected")
  )
  if (decision === undefined) return false
  return decision.event_type === "tool_call_validated" || afterLegality.has(decision.data["stage"])
}

/** Every attempt of a run, malformed text included. */
export const attempts = (text: string): ReadonlyArray<Attempt> => {
  const events = lines(text)
  return events.flatMap(({ data, event_type, seq }, at) =>
    event_type !== "legality_checked"
      ? []
      : [
          {
            call: String(data["call"]),
            results: [data["schema"], data["scopes"], data["pre"]] as unknown as Attempt["results"],
            legal: isLegal(data),
            held: heldLegal(events.slice(at + 1), String(data["call"])),
            blockedBy: (data["blocked_by"] ?? []) as ReadonlyArray<string>,
            follows: data["follows_refusal_of"] as number | undefined,
            resembles: data["resembles"] as number | undefined,
            seq
          }
        ]
  )
}

export interface Failure {
  readonly class: unknown
  readonly stage: unknown
  readonly effect: unknown
}

/** Every failed attempt of a run by what is on record of it: refused, malformed, or executed without success. */
export const failures = (text: string): ReadonlyArray<Failure> =>
  lines(text).flatMap(({ data, event_type }) => {
    const malformed = event_type === "legality_checked" && data["cause"] === "malformed"
    const failed = event_type === "tool_execution_finished" && data["ok"] === false
    if (!malformed && !failed && event_type !== "tool_call_rejected") return []
    return [{ class: data["class"], stage: data["stage"], effect: malformed ? "none" : data["effect"] }]
  })

/** How many of each class. */
export const census = (text: string): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const { class: name } of failures(text)) counts[String(name)] = (counts[String(name)] ?? 0) + 1
  return counts
}

/** The six numbers of a log, from its text alone. */
export const measured = (texts: ReadonlyArray<string>, options: MetricsOptions = {}): Metrics => {
  const counter = new MetricsCounter()
  for (const [at, text] of texts.entries()) {
    const feed = counter.feed(`${at}.jsonl`)
    const read = new Lines(undefined, { sources: true })
    for (const item of [...read.push(Buffer.from(text)), ...read.end()]) {
      if (item._tag === "Event") feed.see(item.record, Number(item.source!.envelope["ts_epoch_ms"]))
    }
    feed.end()
  }
  return counter.measure(options)
}
