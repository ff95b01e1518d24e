/**
 * Reads one turn as it streams: feeds the codec, shows what may be shown, and can begin again with what was read so far
 * when the turn is continued. What was shown once is not shown twice. Where the turn's phase is not streamed, or its text
 * may still become an action, what could be shown waits until somebody says that it is an answer.
 */
import type { Action, TurnParser, Visible } from "../engine/codecs/Codec.ts"
import type { EndReason } from "../engine/Generation.ts"
import type { AgentEvent } from "./AgentEvent.ts"

/** Who sees the turn while it is written. */
export interface Showing {
  /** Piece by piece, or nothing before `release`. */
  readonly stream: boolean
  /** May this beginning of the text still become something that is not shown? */
  readonly waits: (text: string) => boolean
}

const everything: Showing = { stream: true, waits: () => false }

export class TurnReader {
  readonly #newParser: () => TurnParser
  readonly #turn: number
  readonly #emit: (event: AgentEvent) => void
  readonly #showing: Showing
  #parser: TurnParser
  #raw = ""
  /** Characters shown so far, and how many of the next ones were shown before. */
  #shown = 0
  #skip = 0
  /** Text of the turn so far, shown or not. */
  #text = ""
  #waiting: Array<Visible> = []

  constructor(
    turn: number,
    newParser: () => TurnParser,
    emit: (event: AgentEvent) => void,
    showing: Showing = everything
  ) {
    this.#turn = turn
    this.#newParser = newParser
    this.#emit = emit
    this.#showing = showing
    this.#parser = newParser()
  }

  /** The turn's text as generated. */
  get raw(): string {
    return this.#raw
  }

  /** Has anything been shown that a retraction would have to take back? */
  get shown(): boolean {
    return this.#shown > 0
  }

  readonly push = (text: string, tokens: ReadonlyArray<number>): void => {
    this.#raw += text
    this.#show(this.#parser.push(text, tokens))
  }

  readonly end = (reason: EndReason): Action => {
    const { action, visible } = this.#parser.end(reason)
    this.#show(visible)
    return action
  }

  /** The turn goes on after `end`: parse it again from its start. */
  readonly reopen = (): void => {
    this.#parser = this.#newParser()
    this.#skip = this.#shown
    this.#text = ""
    this.#waiting = []
    this.#show(this.#parser.push(this.#raw))
  }

  /** Shows what waits: it is an answer. */
  readonly release = (): void => {
    for (const { _tag, text } of this.#waiting) {
      this.#shown += text.length
      this.#emit({ _tag, turn: this.#turn, text })
    }
    this.#waiting = []
  }

  #show(visible: ReadonlyArray<Visible>): void {
    for (const { _tag, text } of visible) {
      if (_tag === "Text") this.#text += text
      const fresh = text.slice(this.#skip)
      this.#skip = Math.max(0, this.#skip - text.length)
      if (fresh !== "") this.#wait(_tag, fresh)
    }
    if (this.#showing.stream && !this.#showing.waits(this.#text)) this.release()
  }

  #wait(_tag: Visible["_tag"], text: string): void {
    const last = this.#waiting.at(-1)
    if (last?._tag === _tag && !this.#showing.stream)
      this.#waiting[this.#waiting.length - 1] = { _tag, text: last.text + text }
    else this.#waiting.push({ _tag, text })
  }
}
