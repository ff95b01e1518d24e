/**
 * Follows a turn's text to where a call begins and where it ends. Pure: a grammar is held by somebody else, this only says
 * when. Each character is looked at once.
 */
import type { CallGrammar, CallOpener } from "../Grammar.ts"

/** `armed`: a call began, `past` characters before the end of the text that was taken. `released`: it ended. */
export type Watched =
  | { readonly _tag: "free" | "held" | "released" }
  | { readonly _tag: "armed"; readonly opener: CallOpener; readonly past: number }

export class CallWatch {
  readonly #grammar: CallGrammar
  readonly #longest: number
  /** The last text, enough to find an opener that ends in the next. */
  #tail = ""
  /** Everything before the tail was white space. */
  #blank = true
  #reasoning: boolean
  #inside: CallOpener | undefined
  #depth = 0
  #string = false
  #escaped = false
  #seen = ""
  /** What was written of a head so far; `undefined`: it is complete, or there is none. */
  #head: string | undefined

  /** `before`: text that is there already; an opener at its end counts. A turn that is held from its start is inside at once. */
  constructor(grammar: CallGrammar, before = "") {
    this.#grammar = grammar
    this.#longest = Math.max(
      ...grammar.openers.map((opener) => opener.text.length + 1),
      grammar.reasoning?.open.length ?? 0,
      grammar.reasoning?.close.length ?? 0
    )
    this.#reasoning = grammar.reasoning?.opened === true
    if (grammar.start !== undefined) {
      this.#enter({ text: "", root: grammar.start.root })
      if ((grammar.start.heads ?? []).length > 0) this.#head = ""
      return
    }
    if (before === "" || this.#reasoning) return
    const opener = grammar.openers.find(
      ({ atLine, atStart, text }) => atLine !== true && atStart !== true && before.endsWith(text)
    )
    if (opener !== undefined) this.#enter(opener)
  }

  /** The opener of the call that is being written. */
  get inside(): CallOpener | undefined {
    return this.#inside
  }

  /** Takes the next text. When a call begins inside it, the rest is not taken: it is to be written again. */
  take(text: string): Watched {
    if (this.#inside === undefined) return this.#search(text)
    if (this.#grammar.start?.toEnd === true) return { _tag: "held" }
    for (let at = 0; at < text.length; at++) {
      if (this.#ends(text[at]!)) {
        this.#inside = undefined
        return { _tag: "released" }
      }
    }
    return { _tag: "held" }
  }

  #search(text: string): Watched {
    const from = this.#tail.length
    const all = this.#tail + text
    for (let end = from + 1; end <= all.length; end++) {
      if (this.#reasoning || this.#opensReasoning(all, end)) {
        const { close } = this.#grammar.reasoning!
        this.#reasoning = !all.startsWith(close, end - close.length)
        // What follows a block of reasoning begins the turn anew.
        if (!this.#reasoning) this.#blank = true
        continue
      }
      const opener = this.#grammar.openers.find((one) => this.#begins(one, all, end))
      if (opener === undefined) continue
      this.#enter(opener)
      return { _tag: "armed", opener, past: all.length - end }
    }
    const kept = all.slice(-this.#longest)
    if (all.slice(0, all.length - kept.length).trim() !== "") this.#blank = false
    this.#tail = kept
    return { _tag: "free" }
  }

  #opensReasoning(all: string, end: number): boolean {
    const open = this.#grammar.reasoning?.open
    if (open === undefined || !all.startsWith(open, end - open.length)) return false
    return this.#blank && all.slice(0, end - open.length).trim() === ""
  }

  #begins({ atLine, atStart, text }: CallOpener, all: string, end: number): boolean {
    const start = end - text.length
    if (start < 0 || !all.startsWith(text, start)) return false
    const before = all.slice(0, start)
    const first = this.#blank && before.trim() === ""
    if (atStart === true) return first
    return atLine !== true || first || before.endsWith("\n")
  }

  #enter(opener: CallOpener): void {
    this.#inside = opener
    this.#tail = ""
    this.#blank = false
    this.#depth = opener.depth ?? 0
    this.#string = false
    this.#escaped = false
    this.#seen = ""
  }

  /** True behind the last character of the call. */
  #ends(character: string): boolean {
    const { bracket, closer, quote, start } = this.#grammar
    if (this.#head !== undefined) {
      this.#head += character
      const whole = start!.heads!.find(({ text }) => text === this.#head)
      if (whole === undefined) return false
      this.#head = undefined
      this.#depth = whole.depth ?? 0
      return false
    }
    if (quote !== undefined) return this.#endsQuoted(character, closer, quote)
    if (bracket !== undefined && this.#follow(character, bracket)) return closer === ""
    if (this.#depth > 0) {
      this.#seen = ""
      return false
    }
    if (closer === "") return false
    this.#seen = (this.#seen + character).slice(-closer.length)
    return this.#seen === closer
  }

  /** The same where strings stand between two marks of their own: inside them nothing but the mark counts. */
  #endsQuoted(character: string, closer: string, quote: string): boolean {
    this.#seen = (this.#seen + character).slice(-Math.max(closer.length, quote.length))
    if (this.#seen.endsWith(quote)) {
      this.#string = !this.#string
      this.#seen = ""
    }
    return !this.#string && this.#seen.endsWith(closer)
  }

  /** Follows strings and brackets; true when the last bracket has just been closed. */
  #follow(character: string, first: string): boolean {
    if (this.#string) {
      if (this.#escaped) this.#escaped = false
      else if (character === "\\") this.#escaped = true
      else if (character === '"') this.#string = false
      return false
    }
    if (this.#depth === 0) this.#depth = character === first ? 1 : 0
    else if (character === '"') this.#string = true
    else if (character === "{" || character === "[") this.#depth += 1
    else if (character === "}" || character === "]") {
      this.#depth -= 1
      return this.#depth === 0
    }
    return false
  }
}
