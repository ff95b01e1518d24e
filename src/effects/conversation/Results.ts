/**
 * What a model is told about a call, as a `tool_result` a person can read, and back. A text result stays itself; a failure is
 * its reasons. What the block alone cannot give back is in the attributes of the call's event in the turn's trace.
 */
import type { Json, JsonObject } from "../../tools/JsonText.ts"
import { type Answer, answerText } from "../../tools/ToolCall.ts"
import type { Message, ToolResultBlock, TurnTrace } from "./Conversation.ts"
import { turnEvents } from "./Conversation.ts"

/** What a result in a file stands for when nothing else is said. */
const plainAnswer = ({ content, is_error }: Pick<ToolResultBlock, "content" | "is_error">): Answer =>
  is_error === true
    ? { ok: false, kind: "execution_failed", errors: [{ path: "", reason: content }] }
    : { ok: true, result: content }

const words = ({ errors, retry_hint }: Extract<Answer, { ok: false }>): string =>
  [
    ...errors.map(({ path, reason }) => (path === "" ? reason : `${path}: ${reason}`)),
    ...(retry_hint === undefined ? [] : [retry_hint])
  ].join("\n")

export interface Told {
  readonly block: ToolResultBlock
  /** `{ result: "json" }` or `{ told }`, where the block alone would be read as something else. */
  readonly attributes: JsonObject
}

/** A text the model was told, as a block. */
export const toldAs = (id: string, text: string): Told => {
  const answer = JSON.parse(text) as Answer
  if (answer.ok) {
    const plain = typeof answer.result === "string"
    const content = plain ? (answer.result as string) : JSON.stringify(answer.result)
    return { block: { type: "tool_result", tool_use_id: id, content }, attributes: plain ? {} : { result: "json" } }
  }
  const block: ToolResultBlock = { type: "tool_result", tool_use_id: id, content: words(answer), is_error: true }
  const exact = answerText(plainAnswer(block)) === text
  return { block, attributes: exact ? {} : { told: answer as unknown as Json } }
}

/** The event of a call in its turn's trace. */
const settledEventOf = (trace: TurnTrace | undefined, id: string): JsonObject | undefined =>
  trace?.events.find(({ attributes, name }) => name === turnEvents.call && attributes["id"] === id)?.attributes

/** A result as the answer it is. A content that says it is JSON and is none is text. */
export const answerIn = (block: ToolResultBlock, turn: Message): Answer => {
  const event = settledEventOf(turn.trace, block.tool_use_id)
  const told = event?.["told"]
  if (block.is_error === true && told !== undefined) return told as unknown as Answer
  if (block.is_error !== true && event?.["result"] === "json") {
    try {
      return { ok: true, result: JSON.parse(block.content) as Json }
    } catch {
      return plainAnswer(block)
    }
  }
  return plainAnswer(block)
}
