/**
 * Splits reasoning from the answer as text arrives. A state machine, so the split does not depend on how text is cut:
 *
 * ```text
 *   start --open tag--> open --close tag--> gap --open tag--> open …
 *     |                                      |
 *     +---------- anything else -------------+--> answer (for good: later tags are data)
 * ```
 *
 * A tag counts only where a block can begin: an answer that mentions `<think>` is not silenced. What a call inside
 * reasoning means is for the scanner to say.
 */
import { flatten } from "../Prompt.ts"
import type { Codec, RenderOptions, ThinkingTags } from "./Codec.ts"
import { heldBack, isSpace, Window } from "./Window.ts"

/** Does the assistant's opening leave a reasoning block open? That is what a parser needs as `reasoningOpen`. */
export const opensReasoning = (codec: Pick<Codec, "opening" | "reasoning">, options: RenderOptions): boolean =>
  codec.reasoning !== undefined && flatten(codec.opening(options)).trimEnd().endsWith(codec.reasoning.open)

export interface SplitPiece {
  readonly kind: "reasoning" | "answer"
  readonly text: string
  /** Offset in the turn of the first character. */
  readonly start: number
}

export class Thinking {
  readonly #tags: ThinkingTags | undefined
  readonly #window = new Window()
  #state: "start" | "label" | "open" | "gap" | "answer"
  /** The prompt opened the block: a second opening tag at the very start is swallowed. */
  #prefilled: boolean
  #lead: Array<string> = []
  #leadStart = 0

  constructor(tags: ThinkingTags | undefined, reasoningOpen: boolean) {
    this.#tags = tags
    this.#state = tags === undefined ? "answer" : "start"
    this.#prefilled = tags !== undefined && reasoningOpen
  }

  /** True while a block is open: at the end of a turn that means it was never closed. */
  get open(): boolean {
    return this.#state === "open" || this.#state === "label" || (this.#state === "start" && this.#prefilled)
  }

  /** The answer has begun and nothing is held back: whatever comes is part of it. */
  get over(): boolean {
    return this.#state === "answer" && this.#window.at === this.#window.text.length
  }

  push(text: string): ReadonlyArray<SplitPiece> {
    this.#window.push(text)
    return this.#run()
  }

  /** Ends the turn: what was held back is decided as it stands. */
  end(): ReadonlyArray<SplitPiece> {
    this.#window.ending = "eog"
    return this.#run()
  }

  #run(): ReadonlyArray<SplitPiece> {
    const out: Array<SplitPiece> = []
    while (this.#step(out)) {}
    return out
  }

  /** One decision; false when more text is needed. */
  #step(out: Array<SplitPiece>): boolean {
    if (this.#state === "answer") return this.#give(out, "answer", this.#window.text.length)
    if (this.#state === "label") return this.#label()
    if (this.#state === "open") return this.#reason(out)
    return this.#begin(out)
  }

  #begin(out: Array<SplitPiece>): boolean {
    const window = this.#window
    const from = window.at
    if (this.#lead.length === 0) this.#leadStart = window.position
    window.skipSpace()
    // White space before the first block is part of the answer if no block comes; after a block it belongs to nobody.
    if (this.#state === "start" && window.at > from) this.#lead.push(window.text.slice(from, window.at))
    if (window.at === window.text.length && window.ending === undefined) return false
    const seen = window.expect(this.#tags!.open)
    if (seen === "maybe") return false
    if (seen === "yes" || this.#prefilled) {
      const lead = this.#lead.join("")
      if (seen === "no" && lead !== "") out.push({ kind: "reasoning", text: lead, start: this.#leadStart })
      this.#state = this.#tags!.label === undefined ? "open" : "label"
    } else {
      const lead = this.#lead.join("")
      if (lead !== "") out.push({ kind: "answer", text: lead, start: this.#leadStart })
      this.#state = "answer"
    }
    this.#prefilled = false
    this.#lead = []
    return true
  }

  #label(): boolean {
    const { close, label = "" } = this.#tags!
    const window = this.#window
    const alone = window.expect(`${label}\n`)
    if (alone === "maybe") return false
    if (alone === "no") {
      const rest = window.rest
      const both = label + close
      if (rest.startsWith(both)) window.at += label.length
      else if (window.ending === undefined && both.startsWith(rest)) return false
    }
    this.#state = "open"
    return true
  }

  #reason(out: Array<SplitPiece>): boolean {
    const window = this.#window
    const close = this.#tags!.close
    const end = window.text.indexOf(close, window.at)
    if (end < 0) {
      const held = window.ending === undefined ? heldBack(window.rest, [close]) : 0
      return this.#give(out, "reasoning", window.text.length - held)
    }
    this.#give(out, "reasoning", end)
    window.at = end + close.length
    this.#state = "gap"
    return true
  }

  #give(out: Array<SplitPiece>, kind: SplitPiece["kind"], end: number): false {
    const window = this.#window
    if (end > window.at) {
      out.push({ kind, text: window.text.slice(window.at, end), start: window.position })
      window.at = end
    }
    return false
  }
}

/** Reasoning as it is kept: without the white space the tags were set off with. */
export const trimReasoning = (text: string): string => {
  let start = 0
  let end = text.length
  while (start < end && isSpace(text.charCodeAt(start))) start += 1
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}
