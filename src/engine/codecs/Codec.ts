/**
 * What a model family's syntax is to the rest of Writ: bytes out, actions in. A codec is pure; it never sees a model.
 * Rules for what counts as a call, and what is malformed, are the same for every family (docs/codecs.md).
 */
import type { ProposedCall, ToolSpec } from "../../tools/ToolCall.ts"
import type { EndReason, ThinkingBounds } from "../Generation.ts"
import type { CompiledGrammar } from "../Grammar.ts"
import type { Message } from "../Message.ts"
import type { Segment } from "../Prompt.ts"

/** Why a turn that is, or tries to be, a call cannot be used. Stable: the trace and the model see these words. */
export type MalformedCode =
  | "invalid_json"
  | "duplicate_key"
  | "unsafe_integer"
  | "number_out_of_range"
  | "lone_surrogate"
  | "too_deep"
  | "trailing_characters"
  | "not_an_object"
  | "missing_name"
  | "invalid_name"
  | "arguments_not_object"
  | "conflicting_arguments"
  | "unknown_envelope_key"
  | "unclosed_call"
  | "truncated"
  | "missing_opener"
  | "missing_closer"
  | "wrong_envelope"
  | "call_in_code_block"
  | "call_in_reasoning"
  | "unclosed_reasoning"
  | "forged_tool_response"
  | "forged_turn"
  | "duplicate_parameter"
  | "ambiguous_delimiter"
  | "empty_call"
  | "text_after_call"
  | "empty_turn"
  /** Not a codec's: what looks like a question to the user and is none. */
  | "invalid_question"

/** Exactly one of these comes of a turn; `reasoning` is split off first and never scanned. */
export type Action =
  | { readonly _tag: "FinalText"; readonly text: string; readonly reasoning?: string }
  | {
      readonly _tag: "ToolCalls"
      /** In order, at least one. */
      readonly calls: ReadonlyArray<ProposedCall>
      /** Prose before the first call and after the last, as written. */
      readonly textBefore: string
      readonly textAfter: string
      readonly reasoning?: string
    }
  | {
      readonly _tag: "Malformed"
      readonly code: MalformedCode
      /** In words for a model: what is wrong and how to write it instead. */
      readonly reason: string
      /** Up to 160 characters around the fault. */
      readonly excerpt: string
      /** UTF-16 offset of the fault in the turn's text. */
      readonly position: number
      /** Which call of the turn is broken, from 0; absent when no call was recognised. */
      readonly ordinal?: number
      /** Calls that were whole before the fault. None of them runs. */
      readonly partial: ReadonlyArray<ProposedCall>
      readonly reasoning?: string
    }

/** What a reader of the stream may see as it arrives. `Retract`: text shown since the turn began was not an answer. */
export type Visible =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Reasoning"; readonly text: string }

/** Parses one turn as it arrives. The outcome does not depend on how the text was cut into pieces. */
export interface TurnParser {
  /** Takes the next text and returns what may be shown of it now (held back while it may still become a marker). */
  readonly push: (text: string, tokens?: ReadonlyArray<number>) => ReadonlyArray<Visible>
  /** Ends the turn: the rest of what may be shown, and the action. */
  readonly end: (reason: EndReason) => { readonly visible: ReadonlyArray<Visible>; readonly action: Action }
}

export interface ParserOptions {
  /** Names of the advertised tools. Empty: nothing is parsed as a call. */
  readonly tools: ReadonlyArray<ToolSpec>
  /** The prompt itself opened a reasoning block. */
  readonly reasoningOpen?: boolean
  /** A call inside an unclosed reasoning block: malformed, or the end of the reasoning. */
  readonly thinkCalls?: "reject" | "implicit_close"
}

export interface RenderOptions {
  readonly tools: ReadonlyArray<ToolSpec>
  /** Asked of families that can think; others ignore it. */
  readonly thinking?: boolean
  /** What the assistant's opening follows; absent: a user's turn. Some families write nothing after answers. */
  readonly after?: "user" | "answers"
  /** The date, for families whose system text tells it, as `30 Nov 2026` or `2026-11-30` by family; absent: the template's fixed one. */
  readonly today?: string
  /** End with the assistant's opening. */
  readonly generationPrompt?: boolean
}

export interface ToolAnswer {
  readonly name: string
  readonly text: string
  readonly id?: string
}

/** What stands around reasoning. */
export interface ThinkingTags {
  readonly open: string
  readonly close: string
  /** A word that may stand alone on the first line of a block and is not part of the reasoning. */
  readonly label?: string
}

export type AssistantTurn = Extract<Message, { readonly role: "assistant" }>

export interface Codec {
  readonly id: string
  /** Texts besides the model's own end token that end a turn. */
  readonly stops: ReadonlyArray<string>
  /** Marks that end the model's turn: tokens of the vocabulary, where the file's own metadata may not name them. */
  readonly ends: ReadonlyArray<string>
  /** The tags of a reasoning block, where the family writes them as text. */
  readonly reasoning?: ThinkingTags
  /** How reasoning is closed in the model's place, where that is not said by `reasoning`. */
  readonly thinking?: (options: RenderOptions) => ThinkingBounds
  /** What opens a conversation: system text and tools. `undefined` system: the family's own default, if it has one. */
  readonly system: (system: string | undefined, options: RenderOptions) => ReadonlyArray<Segment>
  readonly user: (content: string) => ReadonlyArray<Segment>
  /** All answers of one turn, in call order. */
  readonly answers: (answers: ReadonlyArray<ToolAnswer>) => ReadonlyArray<Segment>
  /** The assistant's opening, part of the speculative turn. */
  readonly opening: (options: RenderOptions) => ReadonlyArray<Segment>
  /** What follows the generated text when a turn is kept. */
  readonly closing: ReadonlyArray<Segment>
  /** The same after a turn of calls, where that differs. */
  readonly closingAfterCalls?: ReadonlyArray<Segment>
  /**
   * A turn of the assistant as the model would have written it, between opening and closing: for conversations that were
   * not generated here. `options` are those of the opening, where that has begun a block of reasoning.
   */
  readonly written: (turn: AssistantTurn, options?: RenderOptions) => ReadonlyArray<Segment>
  /** The whole conversation byte-equal to the family's official template. */
  readonly render: (messages: ReadonlyArray<Message>, options: RenderOptions) => ReadonlyArray<Segment>
  readonly parser: (options: ParserOptions) => TurnParser
  /** Grammar of one call of these tools. Absent: this family's calls are not constrained. `undefined`: no tool can be. */
  readonly grammar?: (tools: ReadonlyArray<ToolSpec>) => CompiledGrammar | undefined
}
