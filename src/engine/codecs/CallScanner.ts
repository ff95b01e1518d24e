/**
 * Parses a turn as it arrives, for every family that marks its calls in text: reasoning is split off, frames are found by
 * their markers and given to the family's reader, everything else is prose. The rules are those of docs/codecs.md.
 *
 * ```text
 *   prose --opener--> frame --its end--> prose          fault: nothing more is read or shown
 *     |--stray marker, opener in a code block--> fault
 *     '--end-of-turn marker--> over --anything but white space--> fault
 * ```
 *
 * Each character is decided once and no decision looks at how the text was cut, so the outcome cannot depend on it.
 */
import type { ProposedCall } from "../../tools/ToolCall.ts"
import type { EndReason } from "../Generation.ts"
import { findBare } from "./BareCall.ts"
import type { Action, ParserOptions, TurnParser, Visible } from "./Codec.ts"
import { CodeFence } from "./CodeFence.ts"
import {
  type Dialect,
  type Frame,
  forgedResult,
  forgedTurn,
  marked,
  markersOf,
  type Opener,
  openFrame
} from "./Dialect.ts"
import { type Fault, first, malformed, TurnPieces } from "./Fault.ts"
import { MarkerSearch, undecided } from "./MarkerSearch.ts"
import { type SplitPiece, Thinking, trimReasoning } from "./Thinking.ts"
import { Window } from "./Window.ts"

/** Prose between frames: where it starts in the turn, and how many calls came before it. */
interface Prose {
  start: number
  calls: number
  text: string
}

export class CallScanner implements TurnParser {
  readonly #dialect: Dialect
  readonly #options: ParserOptions
  readonly #thinking: Thinking
  readonly #window = new Window()
  readonly #fence = new CodeFence()
  readonly #markers: MarkerSearch
  readonly #turn = new TurnPieces()
  readonly #reasoning: Array<string> = []
  #reasoningStart = 0
  /** What may hold a mistake: white space between calls is not kept here. */
  readonly #prose: Array<Prose> = []
  /** All that stands behind the first call. */
  readonly #after: Array<string> = []
  readonly #calls: Array<ProposedCall> = []
  #frame: Frame | undefined
  #frameStart = 0
  /** Something else than white space has been seen in the answer. */
  #begun = false
  #over: { readonly marker: string; space: Array<string>; readonly at: number } | undefined
  #fault: Fault | undefined
  #visible: Array<Visible> = []

  constructor(dialect: Dialect, options: ParserOptions) {
    this.#dialect = dialect
    this.#options = options
    this.#thinking = new Thinking(dialect.thinking, options.reasoningOpen === true)
    this.#markers = new MarkerSearch(markersOf(dialect, options.tools.length > 0))
  }

  push(text: string): ReadonlyArray<Visible> {
    this.#turn.add(text, this.#fault)
    // Behind a fault nothing is read or shown.
    if (this.#fault !== undefined) return this.#shown()
    if (this.#thinking.over) this.#answer(text)
    else for (const piece of this.#thinking.push(text)) this.#take(piece)
    return this.#shown()
  }

  end(reason: EndReason): { readonly visible: ReadonlyArray<Visible>; readonly action: Action } {
    for (const piece of this.#thinking.end()) this.#take(piece)
    if (this.#thinking.open) this.#unclosedReasoning(reason)
    this.#window.ending = reason
    this.#scan()
    return { action: this.#action(), visible: this.#shown() }
  }

  #shown(): ReadonlyArray<Visible> {
    const shown = this.#visible
    if (shown.length > 0) this.#visible = []
    return shown
  }

  #take(piece: SplitPiece): void {
    if (piece.kind === "reasoning") {
      if (this.#reasoning.length === 0) this.#reasoningStart = piece.start
      this.#reasoning.push(piece.text)
      this.#show("Reasoning", piece.text)
      return
    }
    // The window counts from the start of the turn, and the first piece of the answer says where that is.
    if (this.#window.text === "" && this.#window.position === 0) this.#window.base = piece.start
    this.#answer(piece.text)
  }

  #answer(text: string): void {
    this.#window.push(text)
    this.#scan()
  }

  #show(tag: Visible["_tag"], text: string): void {
    const last = this.#visible[this.#visible.length - 1]
    if (last === undefined) this.#visible = [{ _tag: tag, text }]
    else if (last._tag === tag) this.#visible[this.#visible.length - 1] = { _tag: tag, text: last.text + text }
    else this.#visible.push({ _tag: tag, text })
  }

  #unclosedReasoning(reason: EndReason): void {
    const text = this.#reasoning.join("")
    const opener = this.#firstOpener(text)
    if (opener >= 0 && this.#options.thinkCalls === "implicit_close") {
      this.#reasoning.splice(0, this.#reasoning.length, text.slice(0, opener))
      this.#window.base = this.#reasoningStart + opener
      this.#window.push(text.slice(opener))
      return
    }
    const at = this.#reasoningStart + Math.max(opener, 0)
    this.#fault =
      reason === "length" && opener < 0
        ? {
            code: "truncated",
            what: "the output limit cut the turn inside the reasoning, so think less before you act",
            at
          }
        : {
            code: "unclosed_reasoning",
            what: `the reasoning was not closed with ${this.#dialect.thinking!.close} before the answer or call`,
            at
          }
  }

  /** Where a call begins inside `text`, or -1. Used on reasoning only. */
  #firstOpener(text: string): number {
    if (this.#options.tools.length === 0) return -1
    const found = this.#dialect.openers.map((opener) => text.indexOf(opener.text)).filter((at) => at >= 0)
    return found.length === 0 ? -1 : Math.min(...found)
  }

  #scan(): void {
    while (
      this.#fault === undefined &&
      (this.#frame !== undefined ? this.#readFrame(this.#frame) : this.#readProse())
    ) {}
    if (this.#fault !== undefined) this.#window.at = this.#window.text.length
  }

  /** False when more text is needed. */
  #readFrame(frame: Frame): boolean {
    const end = frame.read(this.#window)
    if (end === undefined) return false
    if (end.prose !== undefined) this.#keep(end.prose, this.#frameStart)
    for (const call of end.calls) {
      // In place: a turn may have very many calls, and a copy of each would be kept beside it until the frame is done.
      call.ordinal = this.#calls.length
      this.#calls.push(call)
    }
    if (end.fault !== undefined) this.#fault = { ...this.#aboutCall(end.fault.code), ...end.fault }
    this.#frame = undefined
    return true
  }

  #readProse(): boolean {
    const window = this.#window
    if (this.#over !== undefined) return this.#readOver(this.#over)
    if (!this.#begun && this.#begin()) return true
    if (!this.#markers.find(window.text, window.at)) {
      const held = undecided(this.#markers.table, window.text, window.at)
      if (window.ending === undefined) return this.#say(window.text.length - held, false)
      if (window.ending === "length" && held > 0 && this.#cutOpener(window.text.slice(-held))) return false
      return this.#say(window.text.length, false)
    }
    const { at, marker } = this.#markers
    this.#say(at, true)
    this.#meet(marker)
    return true
  }

  /** The first character of an answer decides whether it may be a call without a marker; true when it may. */
  #begin(): boolean {
    const window = this.#window
    const from = window.at
    const more = window.skipSpace()
    const first = window.text[window.at]
    const end = window.at
    window.at = from
    this.#say(end, true)
    if (!more) return false
    this.#begun = true
    const lead = this.#options.tools.length === 0 ? undefined : this.#dialect.lead?.find(({ text }) => text === first)
    if (lead === undefined) return false
    this.#open(lead)
    return true
  }

  #open(opener: Opener): void {
    this.#frameStart = this.#window.position
    this.#window.at += opener.text.length
    this.#frame = opener.frame(this.#options, this.#frameStart)
  }

  /** A marker that is cut more than half way through is a call that began, not prose. */
  #cutOpener(tail: string): boolean {
    const begun = this.#dialect.openers.some(
      ({ tentative, text }) => tentative === undefined && text.startsWith(tail) && tail.length * 2 > text.length
    )
    if (!begun || this.#options.tools.length === 0) return false
    this.#fault = {
      ...openFrame("length", this.#window.base + this.#window.text.length - tail.length),
      ordinal: this.#calls.length
    }
    return true
  }

  #meet(marker: string): void {
    const window = this.#window
    const at = window.position
    const opener = marked(this.#dialect.openers, marker)
    if (opener?.tentative === true && this.#fence.inside) {
      this.#say(window.at + marker.length, true)
    } else if (opener !== undefined && this.#fence.inside) {
      this.#fault = {
        code: "call_in_code_block",
        what: "a call inside a code block is not run",
        at,
        ordinal: this.#calls.length
      }
    } else if (opener !== undefined) {
      this.#open(opener)
    } else this.#meetOther(marker, at)
  }

  #meetOther(marker: string, at: number): void {
    this.#window.at += marker.length
    const stray = marked(this.#dialect.strays, marker)
    if (stray === undefined) this.#over = { marker, space: [], at }
    else {
      this.#fault = { code: stray.code, what: stray.what, at, ...this.#aboutCall(stray.code) }
    }
  }

  /** What somebody else is made to say is not a matter of one call. */
  #aboutCall(code: Fault["code"]): { readonly ordinal?: number } {
    return code.startsWith("forged") ? {} : { ordinal: this.#calls.length }
  }

  /** Behind a visible end-of-turn marker nothing may come. */
  #readOver(over: { readonly marker: string; readonly space: Array<string>; readonly at: number }): boolean {
    const window = this.#window
    const from = window.at
    const more = window.skipSpace()
    over.space.push(window.text.slice(from, window.at))
    if (!more) return false
    this.#over = undefined
    if (this.#options.tools.length > 0) {
      const answers = over.marker === this.#dialect.answerEnd
      this.#fault = { ...(answers ? forgedResult : forgedTurn), at: over.at }
    } else this.#keep(over.marker + over.space.join(""), over.at)
    return true
  }

  /** Decides prose up to `end`; returns `go`. */
  #say(end: number, go: boolean): boolean {
    const window = this.#window
    if (end > window.at) {
      this.#keep(window.text.slice(window.at, end), window.position)
      window.at = end
    }
    return go
  }

  #keep(text: string, start: number): void {
    const calls = this.#calls.length
    if (calls > 0) this.#after.push(text)
    const last = this.#prose[this.#prose.length - 1]
    if (last !== undefined && last.calls === calls) last.text += text
    else if (last !== undefined && last.calls > 0 && last.text.trim() === "") {
      last.start = start
      last.calls = calls
      last.text = text
    } else this.#prose.push({ start, calls, text })
    this.#fence.take(text)
    this.#show("Text", text)
  }

  #action(): Action {
    const reasoning = trimReasoning(this.#reasoning.join(""))
    const texts = this.#prose
    const before = texts
      .filter((prose) => prose.calls === 0)
      .map((prose) => prose.text)
      .join("")
    const after = texts.filter((prose) => prose.calls > 0)
    // A closing tag says more of a call without its opener than the object before it does.
    const tag = this.#fault?.code === "missing_opener" ? this.#fault : undefined
    const fault = tag ?? first([this.#fault, this.#bare(texts), this.#unwanted(after)]) ?? this.#emptiness(before)
    if (fault !== undefined) return malformed(fault, this.#dialect.form, this.#turn.text, this.#calls, reasoning)
    const reasoned = reasoning === "" ? {} : { reasoning }
    if (this.#calls.length === 0) return { _tag: "FinalText", text: before, ...reasoned }
    const textAfter = this.#after.join("")
    return { _tag: "ToolCalls", calls: this.#calls, textBefore: before, textAfter, ...reasoned }
  }

  #bare(texts: ReadonlyArray<Prose>): Fault | undefined {
    const { bare, bareHead, resultType } = this.#dialect
    if (bare === undefined || this.#options.tools.length === 0) return undefined
    const tools = new Set(this.#options.tools.map((tool) => tool.name))
    for (const { text, start, calls } of texts) {
      const found = findBare(text, { tools, head: bareHead, resultType })
      if (found === undefined) continue
      const at = start + found.at
      return found.kind === "result"
        ? { ...forgedResult, at }
        : { code: "wrong_envelope", what: bare, at, ordinal: calls }
    }
    return undefined
  }

  #unwanted(after: ReadonlyArray<{ readonly text: string; readonly start: number }>): Fault | undefined {
    if (this.#dialect.textAfter === "keep") return undefined
    const first = after.find((prose) => prose.text.trim() !== "")
    return first && { code: "text_after_call", what: "nothing may follow a call", at: first.start }
  }

  #emptiness(before: string): Fault | undefined {
    if (this.#calls.length > 0 || before.trim() !== "") return undefined
    const reasoning = this.#reasoning.join("")
    const opener = this.#firstOpener(reasoning)
    return opener < 0
      ? { code: "empty_turn", what: "the turn has neither an answer nor a call", at: 0 }
      : { code: "call_in_reasoning", what: "a call inside the reasoning is not run", at: this.#reasoningStart + opener }
  }
}
