/**
 * What a run may cost. Every limit has a default, can be `Infinity` ("none") and can be 0; what 0 means is said at each.
 * Limits are checked at explicit boundaries; wall time also ends what is running.
 */
export interface Limits {
  /** Model turns. 0: nothing is generated; the prompt is committed and the run stops. */
  readonly modelTurns: number
  /** Executed tool calls, whatever their outcome. 0: the first admitted call stops the run. */
  readonly toolCalls: number
  /** Milliseconds for the whole run. 0: stops after the prompt is committed. */
  readonly wallMillis: number
  /** Milliseconds for one execution, clipped to the wall time that is left. 0: every execution times out unstarted. */
  readonly toolMillis: number
  /** Tokens one turn may generate. At least 1. */
  readonly outputTokens: number
  /** Tokens the reasoning of one turn may take; then it is closed, once, and the turn goes on. At least 1. */
  readonly thinkTokens: number
  /** UTF-8 bytes of one answer to the model; longer ones become head and tail. Never more than a quarter of the context. */
  readonly resultBytes: number
  /** Turns in a row that were malformed or refused as a whole. 0: the first one stops the run. */
  readonly repairs: number
  /** Equal (tool, arguments, answer) in a row, or rounds of a two-call ping-pong, that count as a loop. Below 2: never. */
  readonly loopThreshold: number
}

/** What a run has used of its budgets, in all its parts. */
export interface Spent {
  readonly toolCalls: number
  readonly repairs: number
  /** Milliseconds, the user's time to answer not counted. */
  readonly wallMillis: number
}

export const nothingSpent: Spent = { toolCalls: 0, repairs: 0, wallMillis: 0 }

export const defaults: Limits = {
  modelTurns: 8,
  toolCalls: 16,
  wallMillis: 600_000,
  toolMillis: 60_000,
  outputTokens: 512,
  thinkTokens: Infinity,
  resultBytes: 32_768,
  repairs: 3,
  loopThreshold: 3
}

/** Why a set of limits cannot be used: the field and what it takes. `undefined` when it can. */
export const problemWith = (limits: Limits): string | undefined => {
  for (const [name, value] of Object.entries(limits)) {
    if (typeof value !== "number" || Number.isNaN(value) || value < 0) return `${name}: must be 0 or more, or Infinity`
    if (value !== Infinity && !Number.isInteger(value)) return `${name}: must be a whole number`
  }
  if (limits.outputTokens < 1) return "outputTokens: must be at least 1"
  if (limits.thinkTokens < 1) return "thinkTokens: must be at least 1; switch thinking off instead"
  if (limits.outputTokens === Infinity) return "outputTokens: must be finite, a turn has to end"
  return undefined
}

/** The limits as the trace records them: `null` stands for none. */
export const recorded = (limits: Limits): Record<string, number | null> =>
  Object.fromEntries(Object.entries(limits).map(([name, value]) => [name, value === Infinity ? null : value]))
