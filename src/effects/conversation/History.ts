/**
 * Messages of a file as what has been before a model: the entries a session is restored from. A turn that was generated here
 * comes back as it was generated, with what it took to get it; one that somebody wrote is written as the model would have.
 */
import type { AssistantTurn } from "../../engine/codecs/Codec.ts"
import { answerText } from "../../tools/ToolCall.ts"
import type { PastEntry } from "../Past.ts"
import { blocksOf, callsOf, type Message, textOf, turnEvents } from "./Conversation.ts"
import { answerIn } from "./Results.ts"
import { resultsOf } from "./Slots.ts"

/** The system text: the messages before all others, with a blank line between two. Empty where there is none. */
export const systemOf = (messages: ReadonlyArray<Message>): string => {
  const end = messages.findIndex(({ role }) => role !== "system")
  return messages
    .slice(0, end < 0 ? messages.length : end)
    .map(textOf)
    .join("\n\n")
}

const textAt = (attributes: Readonly<Record<string, unknown>>, key: string): string => String(attributes[key] ?? "")

/** The id, unless it is one that no model wrote. */
const modelId = (id: string): { readonly id?: string } => (/^call_\d+_\d+$/.test(id) ? {} : { id })

/** The parts of an assistant's message as a codec writes them. */
export const spokenOf = (message: Message): AssistantTurn => {
  const reasoning = blocksOf(message).flatMap((block) => (block.type === "thinking" ? [block.thinking] : []))
  return {
    role: "assistant",
    content: textOf(message),
    ...(reasoning.length === 0 ? {} : { reasoning: reasoning.join("\n") }),
    calls: callsOf(message).map(({ id, input, name }) => ({ name, arguments: input, ...modelId(id) }))
  }
}

const assistantEntries = (message: Message): ReadonlyArray<PastEntry> => {
  const entries: Array<PastEntry> = []
  const events = message.trace?.events ?? []
  for (const { attributes, name } of events) {
    if (name !== turnEvents.malformed) continue
    const raw = textAt(attributes, "text")
    entries.push({ kind: "assistant", role: "assistant_malformed", raw, turn: 0 })
    entries.push({ kind: "feedback", code: textAt(attributes, "code"), content: textAt(attributes, "told") })
  }
  const generated = events.find(({ name }) => name === turnEvents.generated)
  const role = callsOf(message).length > 0 ? "assistant_tool_call" : "assistant_final"
  entries.push(
    generated === undefined
      ? { kind: "assistant", role, raw: "", turn: 0, spoken: spokenOf(message) }
      : { kind: "assistant", role, raw: textAt(generated.attributes, "text"), turn: 0 }
  )
  return entries
}

/** One result per call, in the order of the calls. */
const resultEntries = (turn: Message, message: Message): ReadonlyArray<PastEntry> => {
  const results = resultsOf(message)
  return callsOf(turn).flatMap(({ id, name }): ReadonlyArray<PastEntry> => {
    const block = results.find(({ tool_use_id }) => tool_use_id === id)
    return block === undefined
      ? []
      : [{ kind: "tool", callId: id, name, content: answerText(answerIn(block, turn)), ...modelId(id) }]
  })
}

/** What messages `from` up to `to` put before a model. From the first message on there is a system entry, if an empty one. */
export const entriesOf = (messages: ReadonlyArray<Message>, from: number, to: number): ReadonlyArray<PastEntry> => {
  const entries: Array<PastEntry> = from === 0 ? [{ kind: "system", content: systemOf(messages) }] : []
  for (const [offset, message] of messages.slice(from, to).entries()) {
    if (message.role === "user") entries.push({ kind: "user", content: textOf(message) })
    if (message.role === "assistant") entries.push(...assistantEntries(message))
    if (message.role === "tool") entries.push(...resultEntries(messages[from + offset - 1]!, message))
  }
  return entries
}
