/**
 * A conversation file as data (R-AILLY-4): who is asked, with which tools, and every message in order. Reading, writing and
 * filling it are other files here; this one knows neither YAML nor disks.
 */
import type { Json, JsonObject } from "../../tools/JsonText.ts"

/** A tool as the file advertises it: a schema, not a behaviour (R-AILLY-6). */
export interface ToolDefinition {
  readonly name: string
  readonly description: string
  readonly input_schema: JsonObject
}

export interface Meta {
  /** `noop` is the scripted engine; anything else is a model as `--model` takes it. */
  readonly model: string
  readonly debug?: Json
  readonly assembly?: string
  /** The values of the matrix this file was assembled for, by axis. */
  readonly binding?: Readonly<Record<string, string>>
  readonly tools?: ReadonlyArray<ToolDefinition>
}

export interface TextBlock {
  readonly type: "text"
  readonly text: string
}

export interface ToolUseBlock {
  readonly type: "tool_use"
  readonly id: string
  readonly name: string
  readonly input: JsonObject
}

export interface ToolResultBlock {
  readonly type: "tool_result"
  readonly tool_use_id: string
  readonly content: string
  readonly is_error?: boolean
}

export interface ThinkingBlock {
  readonly type: "thinking"
  readonly thinking: string
  readonly signature?: string
}

export interface ImageBlock {
  readonly type: "image"
  readonly source: JsonObject
}

export type Block = TextBlock | ToolUseBlock | ToolResultBlock | ThinkingBlock | ImageBlock

/** What an assistant turn cost, inline: there is no second file. Milliseconds; tokens as the engine counts them. */
export interface TurnTrace {
  readonly span_id: string
  readonly model: string
  readonly tokens: {
    readonly input: number
    readonly output: number
    readonly cache_hit?: number
    readonly cache_write?: number
  }
  readonly latency_ms: number
  /** What happened to the turn and its calls: `{ name: "call_settled", attributes: {…} }`. The names are in docs/conversations.md. */
  readonly events: ReadonlyArray<{ readonly name: string; readonly attributes: JsonObject }>
}

export type Role = "system" | "user" | "assistant" | "tool"

export interface Message {
  readonly role: Role
  /** Absent on an assistant: a blank slot, to be filled by a run. */
  readonly content?: string | ReadonlyArray<Block>
  /** A cache breakpoint. */
  readonly cache?: boolean
  readonly trace?: TurnTrace
}

/** Also what assertions see as JSON: exactly these two keys. */
export interface Conversation {
  readonly meta: Meta
  readonly session: ReadonlyArray<Message>
}

export const isBlank = ({ content, role }: Message): boolean => role === "assistant" && content === undefined

/** The blocks of a message; a text that is no list is one block, a blank slot has none. */
export const blocksOf = ({ content }: Message): ReadonlyArray<Block> =>
  content === undefined ? [] : typeof content === "string" ? [{ type: "text", text: content }] : content

export const callsOf = (message: Message): ReadonlyArray<ToolUseBlock> =>
  blocksOf(message).filter((block) => block.type === "tool_use")

/** The text blocks, joined with a newline. Calls and reasoning contribute nothing. */
export const textOf = (message: Message): string =>
  blocksOf(message)
    .flatMap((block) => (block.type === "text" ? [block.text] : []))
    .join("\n")

/** The names of events a run writes into a turn's trace, so that assertions about effects need no other file. */
export const turnEvents = {
  /** `{ id, tool, outcome, class?, effect?, executed }`: what one call came to. */
  call: "call_settled",
  /** `{ id, tool, sha256, name, bytes }` */
  artifact: "artifact_written",
  /** `{ state, reason? }`: how the run that filled the slot ended, where it ended in it. */
  end: "run_ended",
  /** `{ under }`: the name the effects of this slot's calls are keyed under; in the first turn that calls, where a tool can act. */
  keyed: "effects_keyed",
  /** `{ text }`: what the model wrote, where it is not what the blocks would be written as. */
  generated: "generated",
  /** `{ code, text, told }`: a turn before this one that was no call and no answer, and what the model was told about it. */
  malformed: "malformed_turn",
  /** `{ count }`: turns of the engine it took to get this one, where it was more than one. */
  engineTurns: "engine_turns"
} as const
