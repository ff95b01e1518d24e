/** Writes a run's terminal event: how it stopped and what it counted. After it the trace takes nothing. */
import * as Effect from "effect/Effect"
import type { EventData, TraceInput } from "../actors/TraceEvent.ts"
import { nowMillis, type RunContext, round3 } from "./RunContext.ts"
import type { Stop } from "./State.ts"

const counts = (run: RunContext) => {
  const { budget } = run
  return {
    turns: budget.turns,
    tool_calls: budget.toolCalls,
    rejected_calls: budget.rejected,
    skipped_calls: budget.skipped,
    artifacts: budget.artifacts,
    output_tokens: budget.outputTokens,
    model_ms: round3(budget.modelMillis),
    tool_ms: round3(budget.toolMillis),
    total_ms: round3(nowMillis(run.clock) - run.startedAt),
    events: run.trace.length()
  }
}

const terminated = (
  run: RunContext,
  reason: EventData<"run_terminated">["reason"],
  more: Partial<EventData<"run_terminated">>
): TraceInput => ({ type: "run_terminated", step: "finalize", data: { ...counts(run), reason, ...more } })

const terminal = (run: RunContext, stop: Stop): TraceInput => {
  const { text } = run.trace
  const step = "finalize"
  switch (stop._tag) {
    case "Completed":
      return { type: "run_completed", step, data: { ...counts(run), final_text: text(stop.text) } }
    case "NeedsInput":
      return { type: "run_needs_input", step, data: { ...counts(run), question: text(stop.question) } }
    case "AwaitingApproval":
      return { type: "run_awaiting_approval", step, data: { ...counts(run), call: stop.callId } }
    case "Cancelled":
      return { type: "run_cancelled", step, data: { ...counts(run), at: stop.at } }
    case "Failed":
      return { type: "run_failed", step, data: { ...counts(run), class: stop.class, error: text(stop.message) } }
    case "Limit": {
      const partial = stop.partialText === undefined ? {} : { partial_text: text(stop.partialText) }
      return terminated(run, "limit", { limit_hit: stop.kind, ...partial })
    }
    case "ContextExhausted":
      return terminated(run, "context_exhausted", { detail: text(stop.detail) })
    case "LoopDetected":
      return terminated(run, "loop_detected", { detail: text(stop.detail) })
    case "Escalated":
      return terminated(run, "escalated", { detail: text(stop.detail) })
  }
}

/** Closes the record. A record that cannot be closed is what the run failed of, whatever it stopped of before. */
export const closeRecord = (run: RunContext, stop: Stop): Effect.Effect<Stop> =>
  Effect.suspend(() => {
    run.closed = true
    return run.trace.append(terminal(run, stop))
  }).pipe(
    Effect.as(stop),
    Effect.catchTag("TraceError", (error) =>
      Effect.succeed<Stop>({ _tag: "Failed", class: "trace", message: error.message })
    )
  )
