/** A turn that was kept, as the message that fills its slot: blocks in order, ids for calls, and the trace of what it took. */
import { canonical, type Json, type JsonObject } from "../../tools/JsonText.ts"
import type { Entry } from "../Transcript.ts"
import { type Block, type Message, type ToolUseBlock, type TurnTrace, turnEvents } from "./Conversation.ts"

type AssistantEntry = Extract<Entry, { readonly kind: "assistant" }>

/** What a script said of a turn, where it said more than its text. */
export interface Scripted {
  /** Goes into the file as it is, if it is what the codec read. */
  readonly blocks?: ReadonlyArray<Block>
  readonly trace?: TurnTrace
}

/** `call_1_0` for the first call of message 1, unless the model has an id of its own that no other call of the turn has. */
const withIds = (at: number, calls: AssistantEntry["calls"]): ReadonlyArray<ToolUseBlock> => {
  const taken = new Set<string>()
  return calls.map(({ arguments: input, id, name }, ordinal) => {
    const own = id !== undefined && id !== "" && !taken.has(id) ? id : `call_${at}_${ordinal}`
    taken.add(own)
    return { type: "tool_use", id: own, name, input }
  })
}

/** Reasoning, prose, calls, prose. A turn of prose alone is its text. */
const contentOf = (entry: AssistantEntry, at: number): string | ReadonlyArray<Block> => {
  const { calls, content, contentAfter = "", reasoning } = entry
  if (calls.length === 0 && reasoning === undefined) return content
  const thinking: ReadonlyArray<Block> = reasoning === undefined ? [] : [{ type: "thinking", thinking: reasoning }]
  const text = (said: string): ReadonlyArray<Block> => (said.trim() === "" ? [] : [{ type: "text", text: said }])
  return [...thinking, ...text(content), ...withIds(at, calls), ...text(contentAfter)]
}

const callsIn = (blocks: ReadonlyArray<Block>): Json =>
  blocks.flatMap((block) => (block.type === "tool_use" ? [[block.name, block.input]] : []))

/** The script's own blocks, ids included, where the codec read the same calls. */
const verbatim = (made: string | ReadonlyArray<Block>, { blocks }: Scripted) => {
  if (blocks === undefined) return made
  const read = callsIn(typeof made === "string" ? [] : made)
  if (canonical(callsIn(blocks)) !== canonical(read)) return made
  const ids = typeof made === "string" ? [] : made.filter((block) => block.type === "tool_use").map(({ id }) => id)
  let call = 0
  return blocks.map((block) => {
    if (block.type !== "tool_use") return block
    const id = ids[call++] ?? ""
    return block.id === "" ? { ...block, id } : block
  })
}

export const messageOf = (entry: AssistantEntry, at: number, scripted: Scripted): Message => ({
  role: "assistant",
  content: verbatim(contentOf(entry, at), scripted)
})

export interface Cost {
  readonly spanId: string
  readonly model: string
  readonly input: number
  readonly output: number
  readonly millis: number
}

export type TurnEvent = TurnTrace["events"][number]

export const event = (name: string, attributes: JsonObject): TurnEvent => ({ name, attributes })

export const traceOf = (
  { input, millis, model, output, spanId }: Cost,
  events: ReadonlyArray<TurnEvent>
): TurnTrace => ({
  span_id: spanId,
  model,
  tokens: { input, output },
  latency_ms: millis,
  events
})

export const withEvents = (message: Message, events: ReadonlyArray<TurnEvent>): Message =>
  message.trace === undefined ? message : { ...message, trace: { ...message.trace, events } }

const ended = ({ name }: TurnEvent): boolean => name === turnEvents.end

/** What an earlier run of the slot ended with does not count any more, once it goes on. */
export const goingOn = (message: Message): Message => {
  const events = message.trace?.events ?? []
  return events.some(ended)
    ? withEvents(
        message,
        events.filter((found) => !ended(found))
      )
    : message
}

/** How the run ended that got as far as this turn. */
export const endedWith = (message: Message, state: string, reason: string | undefined): Message =>
  withEvents(message, [
    ...(message.trace?.events ?? []).filter((found) => !ended(found)),
    event(turnEvents.end, reason === undefined ? { state } : { state, reason })
  ])
