/**
 * What sessions begin with, evaluated once: the state of a session after its first prompt is saved to a file, and a later
 * session whose prompt begins with the same tokens loads it instead. The library copies no cache between sequences, so it
 * goes through a file, on a file system in memory where there is one. A loaded state is the saved one bit for bit. Only where
 * it pays, by what was measured; files are verified before native code sees them and removed with the engine.
 */
import type { Evaluated, LlamaSequence } from "./LlamaSequence.ts"
import { isSound, type StateFile, StateFiles } from "./LlamaState.ts"

/** `measured`: where loading takes less time than evaluating did. `always` is for tests. */
export type Reuse = "measured" | "always" | "never"

/** What is saved: so many states, of so many bytes together. */
const most = { count: 8, bytes: 2 ** 28 }

/** Below this nothing is saved: opening a file costs as much as evaluating. */
const least = { tokens: 128, millis: 40 }

/** Saving may take this share of what evaluating took, loading that share; beyond, it is not worth the trouble. */
const worth = { saving: 0.5, loading: 0.5 }

/** The tokens are everything but the last one of a prompt. */
interface Kept extends Evaluated {
  readonly file: StateFile
  /** Milliseconds that evaluating it took. */
  readonly millis: number
}

export interface PrefixOptions {
  readonly reuse: Reuse
  readonly chunkTokens: number
}

/** The prefixes of one engine. */
export class Prefixes {
  readonly #options: PrefixOptions
  readonly #files = new StateFiles()
  /** Least recently used first. */
  #kept: Array<Kept> = []
  /** Prompts up to this many tokens were found not worth it. */
  #cheap = 0
  #off: boolean
  #saving = false

  constructor(options: PrefixOptions) {
    this.#options = options
    this.#off = options.reuse === "never"
  }

  /**
   * Loads what is known of a prompt into an empty sequence, and returns how many tokens that was. A state that cannot be
   * divided is loaded whole or not at all.
   */
  async into(sequence: LlamaSequence, prompt: ReadonlyArray<number>): Promise<number> {
    const found = this.#find(prompt, sequence.divisible)
    if (found === undefined) return 0
    const { kept, length } = found
    this.#touch(kept)
    const before = performance.now()
    const loaded = await isSound(kept.file)
    if (!loaded) {
      this.#drop(kept)
      return 0
    }
    try {
      await sequence.load(kept.file.path, kept, length)
    } catch {
      this.#drop(kept)
      return 0
    }
    const took = performance.now() - before
    if (this.#options.reuse === "measured" && took > kept.millis * worth.loading) this.#giveUp(kept)
    return length
  }

  /**
   * Saves the state of a sequence that has just evaluated its first prompt in so many milliseconds. Failures are nobody's
   * trouble: it is not saved then.
   */
  async offer(sequence: LlamaSequence, millis: number): Promise<void> {
    const { starts, tokens } = sequence.evaluated()
    if (this.#off || this.#saving || !this.#pays(tokens.length, millis) || this.#has(tokens)) return
    this.#saving = true
    try {
      const before = performance.now()
      const file = await this.#files.save((path) => sequence.save(path), most.bytes)
      if (file === undefined) {
        this.#off = true
        return
      }
      const kept = { tokens, starts, file, millis }
      const took = performance.now() - before
      if (this.#options.reuse === "measured" && took > millis * worth.saving) this.#giveUp(kept)
      else this.#kept.push(kept)
      this.#shrink()
    } finally {
      this.#saving = false
    }
  }

  close(): void {
    this.#off = true
    this.#kept = []
    this.#files.close()
  }

  #pays(tokens: number, millis: number): boolean {
    if (this.#options.reuse === "always") return tokens > 0
    return tokens >= least.tokens && tokens > this.#cheap && millis >= least.millis
  }

  #has(tokens: ReadonlyArray<number>): boolean {
    return this.#kept.some(
      (kept) => kept.tokens.length === tokens.length && common(kept.tokens, tokens) === tokens.length
    )
  }

  /**
   * The state that spares most. Evaluation must go on at a place where it would have begun a piece anyway, so that the rest
   * comes out as if nothing had been loaded: at the end of the state, where that is the end of the prompt's own evaluation,
   * or at a whole number of pieces.
   */
  #find(
    prompt: ReadonlyArray<number>,
    divisible: boolean
  ): { readonly kept: Kept; readonly length: number } | undefined {
    const end = prompt.length - 1
    const { chunkTokens, reuse } = this.#options
    let best: { readonly kept: Kept; readonly length: number } | undefined
    for (const kept of this.#kept) {
      const same = Math.min(common(kept.tokens, prompt), end)
      const whole = same === kept.tokens.length && (same === end || same % chunkTokens === 0)
      const length = whole ? same : divisible ? same - (same % chunkTokens) : 0
      const enough = reuse === "always" ? length > 0 : length >= Math.max(least.tokens, kept.tokens.length / 2)
      if (enough && length > (best?.length ?? 0)) best = { kept, length }
    }
    return best
  }

  #touch(kept: Kept): void {
    this.#kept = [...this.#kept.filter((one) => one !== kept), kept]
  }

  #drop(kept: Kept): void {
    this.#kept = this.#kept.filter((one) => one !== kept)
    this.#files.remove(kept.file)
  }

  #giveUp(kept: Kept): void {
    this.#cheap = Math.max(this.#cheap, kept.tokens.length)
    this.#drop(kept)
  }

  #shrink(): void {
    const bytes = () => this.#kept.reduce((sum, { file }) => sum + file.bytes, 0)
    while (this.#kept.length > most.count || bytes() > most.bytes) this.#drop(this.#kept[0]!)
  }
}

/** How many tokens two lists begin with in common. */
const common = (one: ReadonlyArray<number>, other: ReadonlyArray<number>): number => {
  const most = Math.min(one.length, other.length)
  let at = 0
  while (at < most && one[at] === other[at]) at++
  return at
}
