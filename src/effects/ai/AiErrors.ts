/** What can go wrong, in the words of `effect/ai`: an engine's reasons and a codec's refusals as reasons of an `AiError`. */
import * as AiError from "effect/ai/AiError"
import type { Action } from "../../engine/codecs/Codec.ts"
import type { EngineError } from "../../engine/EngineError.ts"
import type { TurnUsage } from "../../engine/Generation.ts"

const module = "LlamaLanguageModel"

export type Method = "generateText" | "generateObject" | "streamText"

export const aiError = (method: Method, reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module, method, reason })

/** Retryable: no free session, and an engine that was lost, opened again or failed. Everything else fails the same way again. */
export const engineReason = ({ message, reason }: EngineError): AiError.AiErrorReason => {
  switch (reason) {
    case "no_session":
      return new AiError.RateLimitError({ metadata: { writ: { reason, message } } })
    case "lost":
    case "restarted":
    case "stalled":
    case "failed":
      return new AiError.InternalProviderError({ description: message, metadata: { writ: { reason } } })
    case "context_overflow":
      return new AiError.InvalidRequestError({
        parameter: "prompt",
        constraint: reason,
        description: message,
        metadata: { writ: { reason } }
      })
    default:
      return new AiError.InvalidRequestError({
        parameter: reason === "bad_request" ? "request" : "model",
        constraint: reason,
        description: message,
        metadata: { writ: { reason } }
      })
  }
}

const spent = ({ outputTokens }: TurnUsage) => ({ completionTokens: outputTokens })

/** A turn that is, or tries to be, a call and cannot be used. */
export const malformed = (action: Extract<Action, { _tag: "Malformed" }>, usage: TurnUsage): AiError.AiErrorReason =>
  new AiError.InvalidOutputError({
    description: `${action.code}: ${action.reason}`,
    usage: spent(usage),
    metadata: { writ: { code: action.code, excerpt: action.excerpt, position: action.position } }
  })

/** The request asked for a call and there is none. */
export const noCall = (usage: TurnUsage): AiError.AiErrorReason =>
  new AiError.InvalidOutputError({
    description: "a call was required and the model answered in text",
    usage: spent(usage)
  })

/** The value was not complete when the turn's tokens were used up. */
export const cutValue = (text: string, usage: TurnUsage): AiError.AiErrorReason =>
  new AiError.StructuredOutputError({
    description: `the value was cut off after ${usage.outputTokens} tokens: allow more of them (maxTokens), or bound its texts and lists (objectBounds)`,
    responseText: text,
    usage: spent(usage)
  })
