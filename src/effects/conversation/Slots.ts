/**
 * Where a conversation goes on: the first blank slot, or the first turn whose calls are not all answered. And what cannot be
 * put before a model at all. Pure; messages count from 0.
 */
import {
  blocksOf,
  type Conversation,
  callsOf,
  isBlank,
  type Message,
  type ToolResultBlock,
  turnEvents
} from "./Conversation.ts"

/** `chain`: the index of the first turn of the exchange of calls and results that the place belongs to. */
export type Place =
  | { readonly _tag: "Blank"; readonly at: number; readonly chain: number }
  /** A blank slot is missing at the end, after results. */
  | { readonly _tag: "Missing"; readonly at: number; readonly chain: number }
  /** The assistant's message at `at` has calls without results. */
  | { readonly _tag: "Open"; readonly at: number; readonly chain: number }

export const resultsOf = (message: Message | undefined): ReadonlyArray<ToolResultBlock> =>
  message?.role === "tool" ? blocksOf(message).filter((block) => block.type === "tool_result") : []

/** Back over calls and their results, to the turn the slot was filled with first. */
const chainOf = (messages: ReadonlyArray<Message>, at: number): number => {
  let first = at
  while (messages[first - 1]?.role === "tool" && callsOf(messages[first - 2] ?? { role: "user" }).length > 0) first -= 2
  return first
}

const openAt = (messages: ReadonlyArray<Message>, at: number): boolean => {
  const answered = new Set(resultsOf(messages[at + 1]).map(({ tool_use_id }) => tool_use_id))
  return callsOf(messages[at]!).some(({ id }) => !answered.has(id))
}

/** The first thing there is to do; `undefined` when every slot is filled and every call answered. */
export const nextPlace = (messages: ReadonlyArray<Message>): Place | undefined => {
  for (const [at, message] of messages.entries()) {
    if (isBlank(message)) return { _tag: "Blank", at, chain: chainOf(messages, at) }
    if (message.role === "assistant" && openAt(messages, at)) return { _tag: "Open", at, chain: chainOf(messages, at) }
  }
  const at = messages.length
  return messages.at(-1)?.role === "tool" ? { _tag: "Missing", at, chain: chainOf(messages, at) } : undefined
}

/** Turns of the model in `messages[from..to)`, those counted that were no call and no answer. */
export const turnsIn = (messages: ReadonlyArray<Message>, from: number, to: number): number => {
  let turns = 0
  for (const { role, trace } of messages.slice(from, to)) {
    if (role !== "assistant") continue
    turns += 1 + (trace?.events.filter(({ name }) => name === turnEvents.malformed).length ?? 0)
  }
  return turns
}

export interface Problem {
  readonly at: number
  readonly reason: string
}

const repeatedIn = (ids: ReadonlyArray<string>): string | undefined => ids.find((id, at) => ids.indexOf(id) !== at)

const problemOf = (messages: ReadonlyArray<Message>, at: number): string | undefined => {
  const message = messages[at]!
  if (blocksOf(message).some(({ type }) => type === "image")) {
    return "it has a picture, and the engines there are read text only: describe it in words"
  }
  if (message.role === "system" && messages.slice(0, at).some(({ role }) => role !== "system")) {
    return "system messages come before all others: move it to the beginning"
  }
  const twice = repeatedIn(callsOf(message).map(({ id }) => id))
  if (twice !== undefined) return `two of its calls have the id ${twice}: an id stands for one call`
  if (message.role !== "tool") return undefined
  const calls = callsOf(messages[at - 1] ?? { role: "user" }).map(({ id }) => id)
  if (calls.length === 0) return "it answers no calls: a tool message follows the assistant's message with the calls"
  const ids = resultsOf(message).map(({ tool_use_id }) => tool_use_id)
  const again = repeatedIn(ids)
  if (again !== undefined) return `it has two results for the call ${again}`
  const stray = ids.find((id) => !calls.includes(id))
  return stray === undefined
    ? undefined
    : `it has a result for ${stray}, and the message before it calls ${calls.join(", ")}`
}

/** The first message that no run can put before a model. */
export const problemIn = ({ session }: Conversation): Problem | undefined => {
  for (const at of session.keys()) {
    const reason = problemOf(session, at)
    if (reason !== undefined) return { at, reason }
  }
  return undefined
}
