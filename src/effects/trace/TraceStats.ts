/**
 * Many runs in numbers: how they ended, what failed in them, how long turns, tools and runs took, how many tokens. Takes one
 * event at a time, so a run may be of any length; per run only its durations are kept.
 */
import { emberSchema, fromEmber } from "./EmberTrace.ts"
import type { TraceRecord } from "./TraceReader.ts"
import { type Status, Totals } from "./TraceTimeline.ts"

type Counts = Readonly<Record<string, number>>

/** What is kept of one run. */
export interface RunStats {
  readonly file: string
  readonly runId: string
  readonly model: string | undefined
  readonly codec: string | undefined
  readonly status: Status
  readonly statusDetail: string
  readonly turns: number
  readonly calls: number
  readonly rejected: number
  readonly artifacts: number
  readonly prefillTokens: number
  readonly outputTokens: number
  readonly totalMillis: number
  /** Milliseconds of each turn, prefill and generation. */
  readonly modelMillis: ReadonlyArray<number>
  readonly toolMillis: ReadonlyArray<number>
  readonly decodeMillis: number
  /** Failed executions by kind. */
  readonly failures: Counts
  /** Calls that never ran by kind, and malformed turns by code. */
  readonly rejections: Counts
  /** Failed attempts of all kinds by their class, from the closed table; those of traces that name none are not counted. */
  readonly classes: Counts
  /** Of the calls that ran, as their contracts price them, in units of value. `undefined`: no price is on record. */
  readonly cost: number | undefined
  /** What a failed run failed of. */
  readonly failedOf: string | undefined
  readonly unreadable: number
}

const num = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0)

const count = (counts: Record<string, number>, name: unknown): void => {
  const key = typeof name === "string" && name !== "" ? name : "unknown"
  counts[key] = (Object.hasOwn(counts, key) ? counts[key]! : 0) + 1
}

const bare = (): Record<string, number> => Object.create(null) as Record<string, number>

/**
 * What the calls that ran cost: the price a call was weighed with, else the one somebody was asked with. A call without either
 * has none on record, and one that is infinitely dear does not run. Another try of a call is no other call.
 */
class Costs {
  readonly #priced = new Map<string, number>()
  total: number | undefined

  readonly see = ({ data, event_type: type }: TraceRecord): void => {
    const call = String(data["call"])
    if (type === "proposal_scored" && Array.isArray(data["candidates"])) {
      const own = data["candidates"].find((one: TraceRecord["data"] | null) => one?.["id"] === data["call"])
      if (data["call"] !== undefined && typeof own?.["cost"] === "number") this.#priced.set(call, own["cost"])
    } else if (type === "approval_requested" && typeof data["cost"] === "number") {
      if (!this.#priced.has(call)) this.#priced.set(call, data["cost"])
    } else if (type === "tool_execution_started" && this.#priced.has(call)) {
      this.total = (this.total ?? 0) + this.#priced.get(call)!
      this.#priced.delete(call)
    }
  }
}

/** Counts one run while its events go by. */
export class RunCounter {
  readonly #totals = new Totals()
  readonly #model: Array<number> = []
  readonly #tools: Array<number> = []
  readonly #failures = bare()
  readonly #rejections = bare()
  readonly #classes = bare()
  readonly #costs = new Costs()
  #prefill = 0
  #decode = 0
  #total: number | undefined
  #failedOf: string | undefined
  unreadable = 0

  readonly see = (recorded: TraceRecord): void => {
    const record = recorded.schema === emberSchema ? fromEmber([recorded])[0]! : recorded
    this.#totals.add(recorded)
    const { data, event_type: type } = record
    if (type === "model_call_finished") {
      // As exact as the record is: sums of its thousandths.
      this.#model.push(Math.round((num(data["prefill_ms"]) + num(data["decode_ms"])) * 1000) / 1000)
      this.#prefill += num(data["prefill_tokens"])
      this.#decode += num(data["decode_ms"])
    } else if (type === "tool_execution_finished") {
      this.#tools.push(num(data["duration_ms"]))
      if (data["ok"] !== true) count(this.#failures, data["failure_kind"])
    } else if (type === "tool_call_rejected") count(this.#rejections, data["kind"])
    else if (type === "assistant_action_parsed" && recorded.data["action"] === "malformed") {
      // Ember says the same again as a rejection, and names the action otherwise.
      count(this.#rejections, data["code"] ?? "malformed")
    }
    const failed = type === "tool_execution_finished" || type === "tool_call_rejected" || type === "legality_checked"
    if (failed && typeof data["class"] === "string") count(this.#classes, data["class"])
    this.#costs.see(record)
    if (typeof data["total_ms"] === "number") this.#total = data["total_ms"]
    if (type === "run_failed") this.#failedOf = typeof data["class"] === "string" ? data["class"] : "unknown"
  }

  readonly end = (file: string): RunStats => {
    const { summary } = this.#totals
    return {
      file,
      runId: summary.runIds[0] ?? "",
      model: summary.model,
      codec: summary.codec,
      status: summary.status,
      statusDetail: summary.statusDetail,
      turns: summary.turns,
      calls: summary.toolCalls,
      rejected: summary.rejected,
      artifacts: summary.artifacts,
      prefillTokens: this.#prefill,
      outputTokens: summary.outputTokens,
      totalMillis: this.#total ?? summary.seconds * 1000,
      modelMillis: this.#model,
      toolMillis: this.#tools,
      decodeMillis: this.#decode,
      failures: this.#failures,
      rejections: this.#rejections,
      classes: this.#classes,
      cost: this.#costs.total,
      failedOf: this.#failedOf,
      unreadable: this.unreadable
    }
  }
}

/** Milliseconds: `p` of a hundred values are at most this. Nearest rank: each is a value that was measured. */
export interface Percentiles {
  readonly count: number
  readonly min: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly max: number
}

/** The value below or at which `percent` of `sorted` (ascending, not empty) lie. */
export const percentile = (sorted: ReadonlyArray<number>, percent: number): number =>
  sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)]!

export const percentilesOf = (values: ReadonlyArray<number>): Percentiles | undefined => {
  if (values.length === 0) return undefined
  const sorted = [...values].sort((a, b) => a - b)
  const at = (percent: number) => percentile(sorted, percent)
  return { count: sorted.length, min: sorted[0]!, p50: at(50), p90: at(90), p99: at(99), max: sorted.at(-1)! }
}

export interface Stats {
  readonly runs: number
  readonly outcomes: Counts
  /** What failed runs failed of. */
  readonly failedOf: Counts
  readonly failures: Counts
  readonly rejections: Counts
  readonly classes: Counts
  /** Over the runs that have one. */
  readonly cost: number | undefined
  readonly turns: number
  readonly calls: number
  readonly artifacts: number
  readonly prefillTokens: number
  readonly outputTokens: number
  /** Tokens written per second of generation, over all runs. */
  readonly tokensPerSecond: number | undefined
  readonly model: Percentiles | undefined
  readonly tools: Percentiles | undefined
  readonly total: Percentiles | undefined
}

const added = (all: ReadonlyArray<Counts>): Counts => {
  const sums = bare()
  for (const counts of all) for (const [name, n] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + n
  return sums
}

const tally = (names: ReadonlyArray<string>): Counts => {
  const counts = bare()
  for (const name of names) count(counts, name)
  return counts
}

/** All runs together. */
export const statsOf = (runs: ReadonlyArray<RunStats>): Stats => {
  const sum = (of: (run: RunStats) => number) => runs.reduce((total, run) => total + of(run), 0)
  const outputTokens = sum((run) => run.outputTokens)
  const decodeMillis = sum((run) => run.decodeMillis)
  return {
    runs: runs.length,
    outcomes: tally(runs.map(({ status }) => status)),
    failedOf: tally(runs.flatMap(({ failedOf }) => failedOf ?? [])),
    failures: added(runs.map(({ failures }) => failures)),
    rejections: added(runs.map(({ rejections }) => rejections)),
    classes: added(runs.map(({ classes }) => classes)),
    cost: added(runs.map(({ cost }) => (cost === undefined ? {} : { cost })))["cost"],
    turns: sum((run) => run.turns),
    calls: sum((run) => run.calls),
    artifacts: sum((run) => run.artifacts),
    prefillTokens: sum((run) => run.prefillTokens),
    outputTokens,
    tokensPerSecond: decodeMillis > 0 ? (outputTokens * 1000) / decodeMillis : undefined,
    model: percentilesOf(runs.flatMap(({ modelMillis }) => modelMillis)),
    tools: percentilesOf(runs.flatMap(({ toolMillis }) => toolMillis)),
    // A run without an end has no duration, only a last sign of life.
    total: percentilesOf(runs.filter(({ status }) => status !== "unfinished").map(({ totalMillis }) => totalMillis))
  }
}
