/** One turn of a model: what is asked of the engine and what it streams back. */
import type { CallGrammar } from "./Grammar.ts"

/** Sampling of one turn. `temperature` 0 is greedy and ignores the rest. `seed` is derived per turn and always explicit. */
export interface Sampling {
  readonly temperature: number
  readonly topK: number
  readonly topP: number
  readonly seed: number
}

/** What stands around reasoning, and what the engine writes in the model's place when the budget is used up. */
export interface ThinkingBounds {
  readonly open: string
  readonly close: string
  /** Reasoning may begin anywhere in the turn, not only at its beginning. */
  readonly anywhere?: boolean
  /** What closes it. Absent: `close` on a line of its own. */
  readonly closing?: string
  /** What is written if reasoning begins once more after that. Absent: nothing. */
  readonly again?: string
}

/** What reasoning may cost. When it is used up the engine closes the block in the model's place. */
export interface ThinkingBudget extends ThinkingBounds {
  /** The prompt began the block. */
  readonly opened: boolean
  /** At least 1. */
  readonly maxTokens: number
}

/** 5 goes first. What is evaluated does not depend on it, only when. */
export type Priority = 1 | 2 | 3 | 4 | 5

export interface TurnRequest {
  /** Tokens the turn may generate, at least 1. */
  readonly maxTokens: number
  readonly sampling: Sampling
  /** Texts that end the turn; the text up to and including the stop is part of it. */
  readonly stops: ReadonlyArray<string>
  /** Marks that end the turn like the model's own end token, where they are tokens of its vocabulary. */
  readonly ends?: ReadonlyArray<string>
  /** Holds each call of the turn to a grammar. Engines that cannot do so ignore it. */
  readonly grammar?: CallGrammar
  /** Engines that cannot do so ignore it. */
  readonly thinking?: ThinkingBudget
  /**
   * Does anybody read along? Default true. Otherwise what is written comes as one piece behind the first, with the turn's end:
   * telling takes time from the model's. Engines that cannot do so ignore it.
   */
  readonly live?: boolean
  /** Among the sessions of one engine. Default 3. Engines that serve one at a time ignore it. */
  readonly priority?: Priority
}

/** `eog`: the model ended its turn. `stop`: a stop text was written. `length`: `maxTokens` were generated. */
export type EndReason = "eog" | "stop" | "length"

export interface TurnUsage {
  /** Tokens evaluated before the first new one: the turn's own prompt plus what was not in the cache. */
  readonly prefillTokens: number
  readonly outputTokens: number
  readonly prefillMillis: number
  readonly decodeMillis: number
}

export type GenerationEvent =
  | { readonly _tag: "Prefill"; readonly done: number; readonly total: number }
  /** Text that is complete characters, and the token ids it came from. The end-of-turn token is never part of it. */
  | { readonly _tag: "Piece"; readonly text: string; readonly tokens: ReadonlyArray<number> }
  | {
      readonly _tag: "End"
      readonly reason: EndReason
      readonly usage: TurnUsage
      /** The reasoning was closed after so many tokens, because its budget was used up. */
      readonly thinkClosed?: number
    }
