/**
 * What a call is worth: how much better runs were scored with tools than without, per executed call, under one budget of time
 * and tokens. Scores are not in traces, they are handed in; budgets are, and runs of different budgets are never mixed.
 */
import type { RunLog } from "./TraceMetricsRuns.ts"

/** What an evaluation gave the same task with tools and without, on any scale. */
export interface Score {
  readonly with: number
  readonly without: number
}

/** The limits that bound a run's time and tokens. */
export interface Budget {
  readonly wallMillis: number
  readonly modelTurns: number
  /** Per turn. */
  readonly outputTokens: number
  /** Per turn; `null` is none. */
  readonly thinkTokens: number | null
}

export interface Utility {
  /** Sum of `with` less `without` over the runs that have a score. */
  readonly gain: number
  /** Executions of these runs. */
  readonly calls: number
  readonly perCall: number | undefined
  readonly budget: Budget | undefined
  /** Runs with a score, of so many. */
  readonly scored: number
  readonly runs: number
  /** Scores of runs that were not read. */
  readonly unused: number
  /** Why there is no number. */
  readonly reason: string | undefined
}

const scoreOf = (run: RunLog, scores: ReadonlyMap<string, Score>, used: Set<string>): Score | undefined => {
  const name = [run.root, ...run.parts].find((id) => scores.has(id))
  if (name === undefined) return undefined
  used.add(name)
  return scores.get(name)
}

/** The budget of a run, or why it has none that could be compared. */
const budgetOf = (run: RunLog): Budget | string => {
  const [limits] = run.limits
  if (limits === undefined || run.limits.length !== run.parts.size)
    return `the limits of run ${run.root} are not on record`
  if (run.parts.size > 1 || run.resumed) return `run ${run.root} was resumed, and each part has a budget of its own`
  const { modelTurns, outputTokens, thinkTokens, wallMillis } = limits
  if (typeof wallMillis !== "number") return `run ${run.root} had no limit of time`
  if (typeof modelTurns !== "number" || typeof outputTokens !== "number") {
    return `run ${run.root} had no limit of tokens (turns, and tokens per turn)`
  }
  return { wallMillis, modelTurns, outputTokens, thinkTokens: typeof thinkTokens === "number" ? thinkTokens : null }
}

const common = (runs: ReadonlyArray<RunLog>): Budget | string => {
  const budgets = runs.map(budgetOf)
  const why = budgets.find((budget) => typeof budget === "string")
  if (why !== undefined) return why
  const kinds = new Set(budgets.map((budget) => JSON.stringify(budget))).size
  return kinds === 1
    ? budgets[0]!
    : `the runs had ${kinds} different budgets of time and tokens; give one kind at a time`
}

export const utilityOf = (runs: ReadonlyArray<RunLog>, scores: ReadonlyMap<string, Score> | undefined): Utility => {
  const none = { gain: 0, calls: 0, perCall: undefined, budget: undefined, scored: 0, runs: runs.length }
  if (scores === undefined) return { ...none, unused: 0, reason: "no scores were given" }
  const used = new Set<string>()
  const scored = runs.flatMap((run) => {
    const score = scoreOf(run, scores, used)
    return score === undefined ? [] : [{ run, score }]
  })
  const unused = scores.size - used.size
  if (scored.length === 0) return { ...none, unused, reason: "none of the runs has a score" }
  const gain = scored.reduce((sum, { score }) => sum + (score.with - score.without), 0)
  const calls = scored.reduce((sum, { run }) => run.calls.reduce((all, call) => all + call.executions, sum), 0)
  const budget = common(scored.map(({ run }) => run))
  const about = { gain, calls, scored: scored.length, runs: runs.length, unused }
  if (typeof budget === "string") return { ...about, perCall: undefined, budget: undefined, reason: budget }
  if (calls === 0) return { ...about, perCall: undefined, budget, reason: "no call was executed" }
  return { ...about, perCall: gain / calls, budget, reason: undefined }
}
