/**
 * A script for both sides of a conversation (R-AILLY-21 to 23): what the engine says, turn by turn, and what tools answer, call
 * by call. What the engine says goes through the codec of the run as text; blocks are written as the model would write them.
 */
import type { Codec } from "../../engine/codecs/Codec.ts"
import { flatten } from "../../engine/Prompt.ts"
import { make, type Script, type Scripted, type ScriptedFault, type ScriptedTurn } from "../../engine/ScriptedModel.ts"
import type { JsonObject } from "../../tools/JsonText.ts"
import type { ToolSpec } from "../../tools/ToolCall.ts"
import {
  type Block,
  type Conversation,
  callsOf,
  type Message,
  type ToolUseBlock,
  type TurnTrace,
  turnEvents
} from "./Conversation.ts"
import { spokenOf } from "./History.ts"
import { resultsOf } from "./Slots.ts"
import type { Voice } from "./Voice.ts"

/** One turn. Of `text`, `blocks` and `raw` there is one at most; a fault alone says nothing. */
export interface Reply extends Omit<ScriptedTurn, "text" | "onceClosed"> {
  /** An answer in words. */
  readonly text?: string
  /** A call needs no id. The blocks go into the file as they are. */
  readonly blocks?: ReadonlyArray<Exclude<Block, ToolUseBlock> | (Omit<ToolUseBlock, "id"> & { readonly id?: string })>
  /** What the model writes, markup included. An array says where its tokens end. */
  readonly raw?: string | ReadonlyArray<string>
  /** Goes into the file as it is. */
  readonly trace?: TurnTrace
  readonly fault?: ScriptedFault
}

/** What a tool does with one call. */
export interface ToolReply {
  /** The result; with `is_error`, what went wrong. */
  readonly content?: string
  readonly is_error?: boolean
  readonly delay_ms?: number
  /** The tool breaks with these words. */
  readonly throw?: string
  /** It never answers. */
  readonly hang?: boolean
  /** The arguments it must be called with: otherwise the script fails. */
  readonly expect_input?: JsonObject
}

export interface Fixture {
  readonly name: string
  /** `auto`: `noop-0`, `noop-1`, … without end. */
  readonly engine: "auto" | ReadonlyArray<Reply>
  /** By tool, in the order of its calls. Without it the registered tools run. */
  readonly tools?: Readonly<Record<string, ReadonlyArray<ToolReply>>>
  readonly contextTokens?: number
}

const blocksIn = ({ blocks = [] }: Reply): ReadonlyArray<Block> =>
  blocks.map((block): Block => (block.type === "tool_use" ? { ...block, id: block.id ?? "" } : block))

/** A call without an id of its own is written without one. */
const partsOf = (reply: Reply): Message => ({ role: "assistant", content: reply.text ?? blocksIn(reply) })

const written = (codec: Codec, tools: ReadonlyArray<ToolSpec>, reply: Reply): ScriptedTurn["text"] => {
  if (reply.raw !== undefined) return reply.raw
  const { calls = [], ...turn } = spokenOf(partsOf(reply))
  const named = calls.map(({ id, ...call }) => (id === undefined || id === "" ? call : { ...call, id }))
  return flatten(codec.written({ ...turn, calls: named }, { tools, after: "user" }))
}

const turnOf = (codec: Codec, tools: ReadonlyArray<ToolSpec>, reply: Reply): ScriptedTurn => {
  const { fault, millisPerToken, prefillMillis, stop } = reply
  return {
    text: written(codec, tools, reply),
    ...(fault === undefined ? {} : { fault }),
    ...(millisPerToken === undefined ? {} : { millisPerToken }),
    ...(prefillMillis === undefined ? {} : { prefillMillis }),
    ...(stop === undefined ? {} : { stop })
  }
}

/** How many turns of a script a conversation has used up: those it was filled with, with what it took to get them. */
export const played = ({ session }: Conversation): number => {
  let turns = 0
  for (const { trace } of session) {
    if (trace === undefined) continue
    const malformed = trace.events.filter(({ name }) => name === turnEvents.malformed).length
    const said = trace.events.find(({ name }) => name === turnEvents.engineTurns)?.attributes["count"]
    turns += typeof said === "number" ? said : 1 + malformed
  }
  return turns
}

/** How many results of each tool a conversation has used up. A call that was refused took none. */
export const answered = ({ session }: Conversation): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const [at, message] of session.entries()) {
    if (message.trace === undefined) continue
    const results = new Set(resultsOf(session[at + 1]).map(({ tool_use_id }) => tool_use_id))
    const events = message.trace.events.filter(({ name }) => name === turnEvents.call)
    const unexecuted = new Set(
      events.flatMap(({ attributes }) => (attributes["executed"] === false ? [attributes["id"]] : []))
    )
    for (const { id, name } of callsOf(message)) {
      if (results.has(id) && !unexecuted.has(id)) counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  }
  return counts
}

export interface FixtureEngine {
  readonly scripted: Scripted
  readonly voice: Voice
}

/** Does a script call tools in blocks? Then calls are heard even where none is declared: they are the model's mistake. */
export const callsInBlocks = ({ engine }: Fixture): boolean =>
  engine !== "auto" && engine.some(({ blocks = [] }) => blocks.some(({ type }) => type === "tool_use"))

/** The engine of a conversation that goes on behind what it has played already. */
export const engineOf = (
  fixture: Fixture,
  conversation: Conversation,
  codec: Codec,
  tools: ReadonlyArray<ToolSpec>
): FixtureEngine => {
  const before = played(conversation)
  const replies = fixture.engine === "auto" ? [] : fixture.engine.slice(before)
  const script: Script = {
    name: fixture.name,
    turns: replies.map((reply) => turnOf(codec, tools, reply)),
    playedBefore: before,
    ...(fixture.contextTokens === undefined ? {} : { contextTokens: fixture.contextTokens }),
    ...(fixture.engine === "auto" ? { further: (index) => turnOf(codec, tools, { text: `noop-${index}` }) } : {})
  }
  const scripted = make(script)
  const last = () => scripted.played() - 1
  return {
    scripted,
    voice: {
      spanId: () => `noop-${before + last()}`,
      said: () => {
        const reply = replies[last()]
        if (reply === undefined) return {}
        return {
          ...(reply.blocks === undefined ? {} : { blocks: blocksIn(reply) }),
          ...(reply.trace === undefined ? {} : { trace: reply.trace })
        }
      }
    }
  }
}

/** What is wrong with a reply in itself. */
export const replyProblem = (reply: Reply): string | undefined => {
  const said = (["text", "blocks", "raw"] as const).filter((key) => reply[key] !== undefined)
  if (said.length > 1) return `it has ${said.join(" and ")}: a turn is one of them`
  if (said.length === 0 && reply.fault === undefined) return "it says nothing: give text, blocks or raw, or a fault"
  const ids = blocksIn(reply).flatMap((block) => (block.type === "tool_use" && block.id !== "" ? [block.id] : []))
  const twice = ids.find((id, at) => ids.indexOf(id) !== at)
  if (twice !== undefined) return `two of its calls have the id ${twice}`
  const stray = blocksIn(reply).find(({ type }) => type === "tool_result" || type === "image")
  return stray === undefined ? undefined : `a block of type ${stray.type} is nothing an assistant says`
}

const replyOf = ({ content = "", trace }: Message): Reply => {
  const generated = trace?.events.find(({ name }) => name === turnEvents.generated)?.attributes["text"]
  const said = trace === undefined ? {} : { trace }
  if (typeof generated === "string") return { raw: generated, ...said }
  return typeof content === "string"
    ? { text: content, ...said }
    : { blocks: content as NonNullable<Reply["blocks"]>, ...said }
}

/** The script that a filled conversation is, for playing it again (R-AILLY-33, L3). */
export const fixtureOf = (conversation: Conversation, name: string): Fixture => {
  const { session } = conversation
  const engine: Array<Reply> = []
  const tools: Record<string, Array<ToolReply>> = {}
  for (const { name: tool } of conversation.meta.tools ?? []) tools[tool] = []
  for (const [at, message] of session.entries()) {
    if (message.trace === undefined) continue
    for (const { attributes, name: event } of message.trace.events) {
      if (event === turnEvents.malformed) engine.push({ raw: String(attributes["text"]) })
    }
    engine.push(replyOf(message))
    const part = { ...conversation, session: session.slice(at, at + 2) }
    const executed = answered(part)
    for (const { content, is_error, tool_use_id } of resultsOf(session[at + 1])) {
      const call = callsOf(message).find(({ id }) => id === tool_use_id)
      if (call === undefined || !executed.has(call.name) || isUnexecuted(message, tool_use_id)) continue
      ;(tools[call.name] ??= []).push({ content, ...(is_error === true ? { is_error } : {}) })
    }
  }
  return { name, engine, tools }
}

const isUnexecuted = ({ trace }: Message, id: string): boolean =>
  trace?.events.some(
    ({ attributes, name }) => name === turnEvents.call && attributes["id"] === id && attributes["executed"] === false
  ) === true

/** The conversation before it was filled: of each exchange of turns that were generated one blank slot is left. */
export const blanked = ({ meta, session }: Conversation): Conversation => {
  const kept: Array<Message> = []
  let within = false
  for (const [at, message] of session.entries()) {
    const generated = message.trace !== undefined
    if (message.role === "tool" && session[at - 1]?.trace !== undefined) continue
    if (!generated && !(within && message.role === "assistant" && message.content === undefined)) kept.push(message)
    else if (!within) kept.push({ role: "assistant", ...(message.cache === true ? { cache: true } : {}) })
    within = generated && callsOf(message).length > 0
  }
  return { meta, session: kept }
}
