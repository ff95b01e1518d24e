/** Which reasoning the Qwen templates keep in history: only that of turns after the last question somebody asked. */
import type { Message } from "../Message.ts"
import type { AssistantTurn } from "./Codec.ts"
import { lstripNewlines, rstripNewlines } from "./PythonText.ts"

/** Index of the last user message that is a question; results that were written as user messages are not. */
export const lastQuery = (messages: ReadonlyArray<Message>): number =>
  messages.findLastIndex(
    (message) =>
      message.role === "user" &&
      !(message.content.startsWith("<tool_response>") && message.content.endsWith("</tool_response>"))
  )

/** A turn's answer and reasoning. Without a reasoning field, text up to the last `</think>` counts as reasoning. */
export const keptParts = (message: AssistantTurn): { readonly content: string; readonly reasoning: string } => {
  if (message.reasoning !== undefined) return { content: message.content, reasoning: message.reasoning }
  const parts = message.content.split("</think>")
  if (parts.length === 1) return { content: message.content, reasoning: "" }
  const before = rstripNewlines(parts[0]!).split("<think>")
  return { content: lstripNewlines(parts[parts.length - 1]!), reasoning: lstripNewlines(before[before.length - 1]!) }
}
