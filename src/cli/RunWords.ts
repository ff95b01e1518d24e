/** Parts of a run in a few words, for whatever shows one: arguments, an answer, a restart, how it stopped. Paints and cuts nothing. */
import type { AgentEvent } from "../effects/AgentEvent.ts"
import type { Stop } from "../effects/State.ts"
import type { JsonObject } from "../tools/JsonText.ts"
import type { Answer } from "../tools/ToolCall.ts"
import { count } from "./Printable.ts"

/** `name: value`, side by side. */
export const argumentsText = (args: JsonObject): string =>
  Object.entries(args)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join("  ")

/** A result in one line; a failure as its kind and its reasons. */
export const answerText = (answer: Answer): string => {
  if (answer.ok) return typeof answer.result === "string" ? answer.result : JSON.stringify(answer.result)
  const reasons = answer.errors.map(({ path, reason }) => (path === "" ? reason : `${path}: ${reason}`))
  return `${answer.kind.replaceAll("_", " ")}: ${reasons.join("; ")}`
}

/** What became of an engine that died, in a few words. */
export const restartText = ({ cause, restarts }: Extract<AgentEvent, { readonly _tag: "EngineRestarted" }>): string => {
  const died = { crashed: "crashed", stalled: "did not move any more", out_of_memory: "ran out of memory" }[cause]
  return `the engine ${died} and was opened again, ${count(restarts, "restart")} so far; the run goes on where it was`
}

/** How a run stopped, in a sentence. */
export const stopText = (stop: Stop): string => {
  switch (stop._tag) {
    case "Completed":
      return "done"
    case "NeedsInput":
      return "the model asks a question"
    case "AwaitingApproval":
      return `stopped before ${stop.callId} (it needs an approval)`
    case "Limit":
      return `stopped at the limit of ${stop.kind.replaceAll("_", " ")}`
    case "ContextExhausted":
      return `the context is full: ${stop.detail.replace(/larger context\.$/, "larger context (--context TOKENS).")}`
    case "LoopDetected":
      return `stopped in a loop: ${stop.detail}`
    case "Escalated":
      return `stopped: ${stop.detail}`
    case "Cancelled":
      return `cancelled (${stop.at})`
    case "Failed":
      return `failed (${stop.class}): ${stop.message}`
  }
}
