/** Random choices that are the same for the same seed, on every machine. */

export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 up to, and without, 1. */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let x = this.#state
    x = Math.imul(x ^ (x >>> 15), x | 1)
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61)
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from `low` to `high`, both included. */
  readonly between = (low: number, high: number): number => low + Math.floor(this.next() * (high - low + 1))

  readonly chance = (probability: number): boolean => this.next() < probability

  readonly pick = <A>(from: ReadonlyArray<A>): A => from[this.between(0, from.length - 1)]!

  /** One of the keys, as often as its weight says. */
  readonly weighted = <K extends string>(weights: Readonly<Record<K, number>>): K => {
    const entries = Object.entries(weights) as Array<[K, number]>
    let rest = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
    for (const [key, weight] of entries) {
      rest -= weight
      if (rest < 0) return key
    }
    return entries.at(-1)![0]
  }

  readonly times = <A>(count: number, make: (index: number) => A): ReadonlyArray<A> =>
    Array.from({ length: count }, (_, index) => make(index))

  /** `make()` as often as the probability says. */
  readonly maybe = <A>(probability: number, make: () => A): A | undefined =>
    this.chance(probability) ? make() : undefined
}
