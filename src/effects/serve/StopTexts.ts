/** Texts at which an answer ends: where one stands in a text, and what of a text that still grows may be shown already. */

/** Where the answer ends: at the first of the stops that stands in it. `undefined`: none does. */
export const endOf = (text: string, stops: ReadonlyArray<string>): number | undefined => {
  const found = stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0)
  return found.length === 0 ? undefined : Math.min(...found)
}

/** The answer without what comes from a stop on. */
export const cut = (text: string, stops: ReadonlyArray<string>): string =>
  text.slice(0, endOf(text, stops) ?? text.length)

/** Characters at the end that may be the beginning of a stop. */
const held = (text: string, stops: ReadonlyArray<string>): number => {
  let most = 0
  for (const stop of stops) {
    for (let length = Math.min(stop.length - 1, text.length); length > most; length--) {
      if (text.endsWith(stop.slice(0, length))) most = length
    }
  }
  return most
}

/** Shows a growing text up to its first stop, and never half a character. */
export class StopTexts {
  readonly #stops: ReadonlyArray<string>
  #text = ""
  #shown = 0

  constructor(stops: ReadonlyArray<string>) {
    this.#stops = stops
  }

  /** What was shown so far. */
  get shown(): string {
    return this.#text.slice(0, this.#shown)
  }

  /** What may be shown now. */
  readonly push = (text: string): string => {
    this.#text += text
    const length = this.#text.length
    // Where one stop stands already, another that is longer may have begun before it.
    return this.#show(Math.min(endOf(this.#text, this.#stops) ?? length, length - held(this.#text, this.#stops)))
  }

  /** The rest, now that no more text comes. */
  readonly end = (): string => this.#show(endOf(this.#text, this.#stops) ?? this.#text.length)

  #show(to: number): string {
    const last = this.#text.charCodeAt(to - 1)
    const whole = last >= 0xd800 && last <= 0xdbff && to === this.#text.length ? to - 1 : to
    const from = this.#shown
    this.#shown = Math.max(from, whole)
    return this.#text.slice(from, this.#shown)
  }
}
