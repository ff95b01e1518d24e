/**
 * Turns generated token ids back into text as they come: whole characters only, cut after a stop text, and gathered so
 * that a reader hears at once of the first and then at most every 100 ms, or of the rest at the end. Does not decide when a
 * turn ends otherwise.
 */

/** Tokens held back at most while their text still ends inside a character. */
const maxHeld = 8
/**
 * Milliseconds between two pieces: what a reader still takes for at once (Nielsen 1993, chapter 5). Telling the other thread
 * costs as much as half a small model's token.
 */
const gatherMillis = 100

export type Detokenize = (tokens: ReadonlyArray<number>, before: ReadonlyArray<number>) => string
export type EmitPiece = (text: string, tokens: ReadonlyArray<number>) => void

interface TurnTextOptions {
  readonly live?: boolean | undefined
  readonly now?: () => number
}

export class TurnText {
  readonly #detokenize: Detokenize
  readonly #emit: EmitPiece
  readonly #stops: ReadonlyArray<string>
  readonly #longestStop: number
  readonly #now: () => number
  readonly #gatherMillis: number
  #before: ReadonlyArray<number>
  #held: Array<number> = []
  #text = ""
  #tokens: Array<number> = []
  #tail = ""
  #last = Number.NEGATIVE_INFINITY
  #stopped = false

  /** @param options `now` is milliseconds of a clock that only goes forward; `live`: somebody reads along */
  constructor(
    detokenize: Detokenize,
    stops: ReadonlyArray<string>,
    before: ReadonlyArray<number>,
    emit: EmitPiece,
    { live = true, now = () => performance.now() }: TurnTextOptions = {}
  ) {
    this.#now = now
    this.#gatherMillis = live ? gatherMillis : Number.POSITIVE_INFINITY
    this.#detokenize = detokenize
    this.#emit = emit
    this.#stops = stops.filter((stop) => stop !== "")
    this.#longestStop = this.#stops.reduce((max, stop) => Math.max(max, stop.length), 0)
    this.#before = before
  }

  /** Takes the next token; true once a stop text is complete. Text after it is dropped, its token is not. */
  push(token: number): boolean {
    this.#held.push(token)
    const text = this.#detokenize(this.#held, this.#before)
    if (text.endsWith("\uFFFD") && this.#held.length < maxHeld) return false
    this.#settle(text)
    const now = this.#now()
    if (now - this.#last >= this.#gatherMillis) this.#flush(now)
    return this.#stopped
  }

  /** Hands out what is left, broken characters included; true if that completed a stop text. */
  end(): boolean {
    if (this.#held.length > 0) this.#settle(this.#detokenize(this.#held, this.#before))
    this.#flush(this.#now())
    return this.#stopped
  }

  #settle(text: string): void {
    const visible = this.#untilStop(text)
    for (const token of this.#held) this.#tokens.push(token)
    this.#before = this.#held
    this.#held = []
    this.#text += visible
  }

  /** The part of new text that belongs to the turn. */
  #untilStop(text: string): string {
    if (this.#longestStop === 0) return text
    const seen = this.#tail + text
    let end = -1
    for (const stop of this.#stops) {
      const at = seen.indexOf(stop)
      if (at >= 0 && (end < 0 || at + stop.length < end)) end = at + stop.length
    }
    if (end < 0) {
      this.#tail = seen.slice(Math.max(0, seen.length - this.#longestStop + 1))
      return text
    }
    this.#stopped = true
    return seen.slice(this.#tail.length, end)
  }

  #flush(now: number): void {
    if (this.#tokens.length === 0) return
    this.#emit(this.#text, this.#tokens)
    this.#text = ""
    this.#tokens = []
    this.#last = now
  }
}
