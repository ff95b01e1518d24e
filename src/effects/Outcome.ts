/** What a run comes to: how it stopped, what it said, what it cost, what it left behind. */
import type { ArtifactRef } from "../actors/ArtifactStore.ts"
import { nowMillis, type RunContext } from "./RunContext.ts"
import type { Stop } from "./State.ts"
import type { Recorded } from "./Transcript.ts"

export interface Outcome {
  readonly runId: string
  readonly stop: Stop
  /** The final answer; only a completed run has one. */
  readonly text: string | undefined
  readonly turns: number
  /** Executed calls. */
  readonly toolCalls: number
  /** Malformed turns and refused calls. */
  readonly rejected: number
  readonly skipped: number
  readonly artifacts: ReadonlyArray<ArtifactRef>
  readonly usage: { readonly prefillTokens: number; readonly outputTokens: number }
  /** Milliseconds: inside the engine, inside tools, and everything else. */
  readonly millis: {
    readonly total: number
    readonly model: number
    readonly tools: number
    readonly orchestration: number
  }
  readonly tracePath: string | undefined
  /** Replacements that redaction rules made in the record; with any, the run cannot be continued. */
  readonly redactions?: number
  /** The session's history, this run's part last; what a compaction removed from the context is marked. */
  readonly transcript: ReadonlyArray<Recorded>
}

export const outcomeOf = (run: RunContext, stop: Stop): Outcome => {
  const { budget } = run
  const total = nowMillis(run.clock) - run.startedAt
  return {
    runId: run.runId,
    stop,
    text: stop._tag === "Completed" ? stop.text : undefined,
    turns: budget.turns,
    toolCalls: budget.toolCalls,
    rejected: budget.rejected,
    skipped: budget.skipped,
    artifacts: run.artifacts,
    usage: { prefillTokens: budget.prefillTokens, outputTokens: budget.outputTokens },
    millis: {
      total,
      model: budget.modelMillis,
      tools: budget.toolMillis,
      orchestration: Math.max(0, total - budget.modelMillis - budget.toolMillis)
    },
    tracePath: run.trace.path,
    ...(run.trace.redactions() === 0 ? {} : { redactions: run.trace.redactions() }),
    transcript: run.session.transcript.all
  }
}

/** 0 completed, 1 failed, 4 cancelled, 5 limit, context or loop, 6 input or approval needed, 7 an effect's outcome is unknown. */
export const exitCode = (stop: Stop): number => {
  switch (stop._tag) {
    case "Completed":
      return 0
    case "Failed":
      return 1
    case "Cancelled":
      return 4
    case "Limit":
    case "ContextExhausted":
    case "LoopDetected":
      return 5
    case "NeedsInput":
    case "AwaitingApproval":
      return 6
    case "Escalated":
      return 7
  }
}
