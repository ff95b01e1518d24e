/**
 * What a request asks of a session: whom it is made for, what it has to hold before, and what comes on top. What a model is
 * shown follows from the request alone; a session that holds a part of it already only saves work.
 */
import type { Codec } from "../../engine/codecs/Codec.ts"
import type { Registry } from "../../tools/Registry.ts"
import { keyOf, type Turn } from "../ai/AiConversation.ts"
import type { Past, PastEntry, ToldAnswer } from "../Past.ts"
import type { ChatConversation } from "./ChatMessages.ts"

export interface ChatPlan {
  readonly registry: Registry
  readonly system: string | undefined
  readonly turns: ReadonlyArray<Turn>
  /** One for whose it is, system text and tools, then one for each turn. */
  readonly keys: ReadonlyArray<string>
  /** The task by its words: what the user said last. */
  readonly task: string
}

export const planOf = (
  codec: Codec,
  registry: Registry,
  conversation: ChatConversation,
  ours: string | undefined,
  thinking: boolean | undefined,
  whose: string
): ChatPlan => {
  const texts = [ours, conversation.system].filter((text) => text !== undefined && text !== "")
  const system = texts.length === 0 ? undefined : texts.join("\n\n")
  const { turns } = conversation
  const options = { tools: registry.specs, ...(thinking === undefined ? {} : { thinking }) }
  // Sessions are each asker's own: that a conversation is held already would say that somebody has had it.
  // And turns of before are opened as this one is, whether or not that is with a block of reasoning.
  const opening = codec.opening({ ...options, after: "user" })
  const first = JSON.stringify([whose, registry.hash, system ?? null, codec.system(system, options), opening])
  const user = turns.findLast(({ kind }) => kind === "user")
  return {
    registry,
    system,
    turns,
    keys: [first, ...turns.map(keyOf)],
    task: user?.kind === "user" ? user.text : ""
  }
}

const toolEntries = (turn: Extract<Turn, { readonly kind: "answers" }>, at: number): ReadonlyArray<ToldAnswer> =>
  turn.answers.map(({ id, name, text }, ordinal) => ({
    callId: `call-${at}-${ordinal}`,
    name,
    content: text,
    ...(id === undefined ? {} : { id })
  }))

const entriesOf = (turn: Turn, at: number): ReadonlyArray<PastEntry> => {
  if (turn.kind === "user") return [{ kind: "user", content: turn.text }]
  if (turn.kind === "answers") return toolEntries(turn, at).map((entry) => ({ kind: "tool", ...entry }))
  const role = (turn.turn.calls ?? []).length > 0 ? "assistant_tool_call" : "assistant_final"
  return [{ kind: "assistant", role, raw: "", turn: 0, spoken: turn.turn }]
}

/** What comes last: the user's text, or the answers to the calls before it. */
export interface Pending {
  readonly told: ReadonlyArray<ToldAnswer> | undefined
  /** Entries that it becomes. */
  readonly count: number
}

export const pendingOf = ({ turns }: ChatPlan): Pending => {
  const last = turns.at(-1)!
  if (last.kind !== "answers") return { told: undefined, count: 1 }
  return { told: toolEntries(last, turns.length - 1), count: last.answers.length }
}

/** What a session that holds the first `held` keys lacks before what comes last; `undefined` where a run needs none of it. */
export const pastOf = (plan: ChatPlan, codec: string, held: number, runId: string): Past | undefined => {
  const before = plan.turns.slice(0, -1)
  const { told } = pendingOf(plan)
  // Answers go on with a turn that is there already; a text of the user's begins one.
  if (before.length === 0 || (held > before.length && told === undefined)) return undefined
  const system: ReadonlyArray<PastEntry> = held === 0 ? [{ kind: "system", content: plan.system ?? "" }] : []
  const from = Math.max(0, held - 1)
  return {
    rootRunId: runId,
    parts: 0,
    fromRunId: runId,
    fromSeq: 0,
    task: plan.task,
    system: plan.system ?? "",
    codec,
    toolsHash: plan.registry.hash,
    redact: [],
    entries: [...system, ...before.slice(from).flatMap((turn, at) => entriesOf(turn, from + at))],
    openTurn: undefined,
    answers: new Map(),
    nextTurn: 0,
    toolCalls: 0,
    completed: false,
    conversation: true,
    ...(told === undefined ? { asks: true } : { told })
  }
}
