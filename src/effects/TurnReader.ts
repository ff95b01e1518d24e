/**
 * Reads one turn as it streams: feeds the codec, shows what may be shown, and can begin again with what was read so far
 * when the turn is continued. What was shown once is not shown twice.
 */
import type { Action, TurnParser, Visible } from "../engine/codecs/Codec.ts"
import type { EndReason } from "../engine/Generation.ts"
import type { AgentEvent } from "./AgentEvent.ts"

export class TurnReader {
  readonly #newParser: () => TurnParser
  readonly #turn: number
  readonly #emit: (event: AgentEvent) => void
  #parser: TurnParser
  #raw = ""
  /** Characters shown so far, and how many of the next ones were shown before. */
  #shown = 0
  #skip = 0

  constructor(turn: number, newParser: () => TurnParser, emit: (event: AgentEvent) => void) {
    this.#turn = turn
    this.#newParser = newParser
    this.#emit = emit
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
    this.#show(this.#parser.push(this.#raw))
  }

  #show(visible: ReadonlyArray<Visible>): void {
    for (const { _tag, text } of visible) {
      const fresh = text.slice(this.#skip)
      this.#skip = Math.max(0, this.#skip - text.length)
      if (fresh === "") continue
      this.#shown += fresh.length
      this.#emit({ _tag, turn: this.#turn, text: fresh })
    }
  }
}
