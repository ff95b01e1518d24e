/** What a run has come to, as the answer to the request it was for: a message with the reason it ended, or an error. */
import * as Effect from "effect/Effect"
import type { MessageCall } from "../../engine/Message.ts"
import type { Stop } from "../State.ts"
import type { Answer, Answered, AnsweringError } from "./Answering.ts"
import { type ChatError, failed, invalid, unavailable } from "./ChatError.ts"
import type { ChatRequest } from "./ChatRequest.ts"
import { cut } from "./StopTexts.ts"

export interface Reply {
  readonly _tag: "Reply"
  readonly content: string | null
  readonly calls: ReadonlyArray<MessageCall>
  readonly finish: "stop" | "length" | "tool_calls"
  /** How the run stopped, where that is not what the reason to finish says by itself. */
  readonly stopped: { readonly stop: string; readonly limit?: string } | undefined
  readonly usage: Usage
}

export interface Usage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number }
}

const usageOf = ({ cachedTokens, outcome, promptTokens }: Answered): Usage => {
  const { outputTokens } = outcome.usage
  return {
    prompt_tokens: promptTokens,
    completion_tokens: outputTokens,
    total_tokens: promptTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: Math.min(cachedTokens, promptTokens) }
  }
}

/** Seconds after which a server that has just been too busy is asked again. */
const soon = 2

const failureOf = (stop: Extract<Stop, { readonly _tag: "Failed" }>, run: string): ChatError =>
  failed(500, `${stop.class}_failed`, `The run ${run} failed (${stop.class}): ${stop.message}`)

/** Stops with an answer, or with what there is of one. */
type WithAnswer = Extract<Stop, { readonly _tag: "Completed" | "NeedsInput" | "Limit" }>

const hasAnswer = (stop: Stop): stop is WithAnswer =>
  stop._tag === "Completed" || stop._tag === "NeedsInput" || stop._tag === "Limit"

const errorOf = (stop: Exclude<Stop, WithAnswer>, run: string): ChatError => {
  switch (stop._tag) {
    case "AwaitingApproval":
      return failed(
        403,
        "approval_required",
        `The run ${run} waits for an approval of ${stop.callId}; nothing of that call was done. Who may decide: writ approve ${run}`
      )
    case "ContextExhausted":
      return invalid("messages", `${stop.detail} (run ${run})`, "context_length_exceeded")
    case "LoopDetected":
      return failed(422, "loop_detected", `The run ${run} was stopped because it went in circles: ${stop.detail}`)
    case "Escalated":
      return failed(
        500,
        "outcome_unknown",
        `The run ${run} stopped because nobody knows whether an effect happened: ${stop.detail}. Do not repeat the request before that is settled`
      )
    case "Cancelled":
      return failed(503, "cancelled", `The run ${run} was cancelled before it had an answer`)
    case "Failed":
      return failureOf(stop, run)
  }
}

/** An error that comes before there is a run. */
export const refusalOf = (error: AnsweringError | ChatError): ChatError => {
  switch (error._tag) {
    case "ChatError":
      return error
    case "InvalidOptions":
      return invalid(null, error.message)
    case "TraceError":
      return failed(500, "trace_failed", `The run could not be put on record: ${error.message}`)
    case "EngineError":
      if (error.reason === "no_session") return unavailable("overloaded", error.message, soon)
      if (error.reason === "context_overflow") return invalid("messages", error.message, "context_length_exceeded")
      return failed(500, "engine_failed", error.message)
  }
}

export const bug = failed(500, "internal_error", "This is a bug in the server; its log says more")

/** What a run has come to, or why it came to nothing. A defect is logged here, at the edge. */
export const resultOf = (answer: Answer): Effect.Effect<Answered | ChatError> =>
  answer.ended.pipe(
    Effect.matchEffect({
      onFailure: (error) => Effect.succeed<Answered | ChatError>(refusalOf(error)),
      onSuccess: (answered) => Effect.succeed<Answered | ChatError>(answered)
    }),
    Effect.catchDefect((defect) => Effect.as(Effect.logError(`the run ${answer.runId} failed`, defect), bug))
  )

const notInForm = (run: string): ChatError =>
  failed(422, "answer_not_in_form", `The run ${run} ended with an answer that is not the object that was asked for`)

/** The answer of a run that has ended. */
export const replyOf = (
  answered: Answered,
  { form, stop: stops }: Pick<ChatRequest, "form" | "stop">
): Reply | ChatError => {
  const { calls, object, outcome } = answered
  const { runId, stop } = outcome
  if (!hasAnswer(stop)) return errorOf(stop, runId)
  const reply = (content: string | null, finish: Reply["finish"], stopped?: Reply["stopped"]): Reply => ({
    _tag: "Reply",
    content,
    calls,
    finish,
    stopped,
    usage: usageOf(answered)
  })
  if (object !== undefined) return reply(object, "stop")
  if (stop._tag === "Completed") {
    return form._tag === "Text" ? reply(cut(stop.text, stops), "stop") : notInForm(runId)
  }
  if (stop._tag === "NeedsInput") {
    return calls.length > 0
      ? reply(answered.prose === "" ? null : answered.prose, "tool_calls")
      : reply(stop.question, "stop", { stop: "needs_input" })
  }
  const partial = cut(stop.partialText ?? "", stops)
  return reply(partial, "length", stop.kind === "output_tokens" ? undefined : { stop: "limit", limit: stop.kind })
}
