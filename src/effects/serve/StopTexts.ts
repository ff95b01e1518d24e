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

/** Shows a growing text up to its first stop, and never half a character. Looks again only at what is not shown yet. */
export class StopTexts {
  readonly #stops: ReadonlyArray<string>
  #rest = ""
  #shown = ""
  #stopped = false

  constructor(stops: ReadonlyArray<string>) {
    this.#stops = stops
  }

  /** What was shown so far. */
  get shown(): string {
    return this.#shown
  }

  /** What may be shown now. */
  readonly push = (text: string): string => {
    if (this.#stopped) return ""
    this.#rest += text
    const sure = this.#rest.length - held(this.#rest, this.#stops)
    const end = endOf(this.#rest, this.#stops)
    // Where one stop stands already, another that is longer may have begun before it.
    this.#stopped = end !== undefined && end <= sure
    return this.#show(Math.min(end ?? sure, sure))
  }

  /** The rest, now that no more text comes. */
  readonly end = (): string => (this.#stopped ? "" : this.#show(endOf(this.#rest, this.#stops) ?? this.#rest.length))

  #show(to: number): string {
    const last = this.#rest.charCodeAt(to - 1)
    const whole = last >= 0xd800 && last <= 0xdbff && to === this.#rest.length ? to - 1 : to
    const shown = this.#rest.slice(0, whole)
    this.#rest = this.#rest.slice(whole)
    this.#shown += shown
    return shown
  }
}
