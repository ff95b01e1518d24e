/**
 * One sequence of the KV cache and the token log that explains it. The log is the truth: its first `fed` tokens are in
 * the cache, at most one more is pending (known, not yet evaluated). Plain promises; one caller at a time, who must not
 * let two calls overlap. Knows tokens, not segments, turns or boundaries.
 */

import { setInterval } from "node:timers/promises"
import type { LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp"
import { EngineError } from "./EngineError.ts"
import type { EndReason, Sampling } from "./Generation.ts"
import type { CallConstraint } from "./LlamaConstraint.ts"
import { type Control, Stopped } from "./LlamaControl.ts"
import { suspect } from "./LlamaFaults.ts"
import type { TokenClock } from "./LlamaThinking.ts"
import type { Progress } from "./Model.ts"

/** A place to come back to. */
export interface Mark {
  readonly length: number
  readonly fed: number
}

/** Set by whoever wants the running call to end at its next boundary. */
export interface Cancel {
  cancelled: boolean
}

/** Counts of one engine, only growing. */
export interface Counters {
  evaluatedTokens: number
  erasedTokens: number
  turns: number
}

export interface SequenceOptions {
  readonly model: LlamaModel
  /** Opens a native sequence: the first one, and another where one died. */
  readonly open: () => LlamaContextSequence
  readonly control: Control
  readonly counters: Counters
  readonly chunkTokens: number
  readonly stallMillis: number
  readonly contextTokens: number
  /** Compare the whole cache with the log after each call, not only the lengths. */
  readonly verify: boolean
}

/** The token and what closes the reasoning behind it, where that is due. */
const closing = (
  token: number,
  thinking: TokenClock | undefined,
  constraint: CallConstraint | undefined
): ReadonlyArray<number> | undefined => {
  const close = thinking?.take(token)
  if (close === undefined) return undefined
  const all = [token, ...close]
  for (const one of all) constraint?.take(one)
  return all
}

export class LlamaSequence {
  readonly #options: SequenceOptions
  #sequence: LlamaContextSequence
  /** Sampling failed: the native sequence answers nothing any more, the log is sound. */
  #dead = false
  #log: Array<number> = []
  #broken: EngineError | undefined
  readonly #closing = new AbortController()
  /** When the running native call began, and how to fail it. */
  #since = 0
  #waiting: ((cause: EngineError) => void) | undefined

  constructor(options: SequenceOptions) {
    this.#options = options
    this.#sequence = options.open()
    void this.#watch()
  }

  get length(): number {
    return this.#log.length
  }

  /** Tokens evaluated, and the pending one if there is one. */
  snapshot(): { readonly kv: ReadonlyArray<number>; readonly pending: ReadonlyArray<number> } {
    const kv = this.#sequence.contextTokens
    return { kv, pending: this.#log.slice(kv.length) }
  }

  /** The log's last tokens, at most `count`. */
  last(count: number): ReadonlyArray<number> {
    return this.#log.slice(-count)
  }

  /** The present place; on models whose state cannot be cut anywhere a checkpoint makes coming back cheap. */
  async mark(): Promise<Mark> {
    this.#check()
    if (this.#sequence.needsCheckpoints) await this.#native(() => this.#sequence.takeCheckpoint())
    return { length: this.#log.length, fed: this.#sequence.nextTokenIndex }
  }

  /** Forgets everything after `mark`, in the cache and in the log. Not cancellable. */
  async rollback(mark: Mark): Promise<void> {
    if (this.#broken !== undefined || this.#options.control.stopped()) return
    if (this.#dead) await this.#revive(mark.fed)
    const end = this.#sequence.nextTokenIndex
    if (end > mark.fed) {
      await this.#native(() => this.#sequence.eraseContextTokenRanges([{ start: mark.fed, end }]))
      this.#options.counters.erasedTokens += end - mark.fed
    }
    this.#log.length = mark.length
    if (this.#sequence.nextTokenIndex !== mark.fed) {
      throw this.#break(`rollback reached token ${this.#sequence.nextTokenIndex} instead of ${mark.fed}`)
    }
    this.verify()
  }

  /** Refuses what would not fit, before anything is evaluated. */
  room(tokens: number, what: string): EngineError | undefined {
    const needed = this.#log.length + tokens
    if (needed <= this.#options.contextTokens) return undefined
    return new EngineError({
      reason: "context_overflow",
      message:
        `${what} would make ${needed} tokens, the context holds ${this.#options.contextTokens}. ` +
        "Shorten the conversation, or open the model with a larger context."
    })
  }

  /**
   * Appends tokens and evaluates them in chunks, all but the last. Before a generation the last chunk is left to it, which
   * saves a native call. Cancel and stop are looked at between chunks, and `progress` told.
   */
  async append(
    tokens: ReadonlyArray<number>,
    cancel: Cancel,
    { generates = false, progress }: { readonly generates?: boolean; readonly progress?: Progress | undefined } = {}
  ): Promise<void> {
    this.#check()
    for (const token of tokens) this.#log.push(token)
    const { chunkTokens, counters } = this.#options
    const start = this.#sequence.nextTokenIndex
    const end = this.#log.length - 1
    // chunks begin at the same places whether or not the last is left
    const last = generates ? end - chunkTokens + 1 : end
    for (let at = start; at < last; ) {
      this.#look(cancel)
      const chunk = this.#log.slice(at, Math.min(at + chunkTokens, end)) as Array<Token>
      await this.#native(() => this.#sequence.evaluateWithoutGeneratingNewTokens(chunk))
      counters.evaluatedTokens += chunk.length
      at += chunk.length
      progress?.(at - start, end - start + 1)
    }
    this.#look(cancel)
    this.verify()
  }

  /**
   * Generates after what is pending, in one native evaluation with one random stream. `onToken` says when to stop. The
   * end token is not added to the log; after any other end the last token is pending.
   */
  async generate(
    sampling: Sampling,
    maxTokens: number,
    cancel: Cancel,
    onToken: (token: number) => boolean,
    constraint?: CallConstraint,
    thinking?: TokenClock
  ): Promise<EndReason> {
    this.#check()
    const { counters, model } = this.#options
    let feed = (await this.#pending()) as Array<Token>
    const iterator = this.#sequence.evaluate(feed, {
      temperature: sampling.temperature,
      topK: sampling.topK,
      topP: sampling.topP,
      seed: sampling.seed >>> 0,
      yieldEogToken: true,
      ...(constraint === undefined ? {} : { grammarEvaluationState: constraint.state })
    })
    const acquit = constraint === undefined ? undefined : this.#suspect(constraint)
    let instead: Array<Token> | undefined
    try {
      for (let count = 0; count < maxTokens; count += feed.length) {
        this.#look(cancel)
        if (constraint?.waits === true) await constraint.ready()
        const next = await this.#native(() => iterator.next(instead))
        counters.evaluatedTokens += feed.length
        if (next.done === true) throw this.#break("generation ended without an end token")
        const token = next.value
        if (model.isEogToken(token)) return "eog"
        instead = (closing(token, thinking, constraint) ?? constraint?.take(token)) as Array<Token> | undefined
        feed = instead ?? [token]
        let stopped = false
        for (const one of feed) {
          this.#log.push(one)
          stopped = onToken(one) || stopped
        }
        if (stopped) return "stop"
      }
      return "length"
    } finally {
      acquit?.()
      if (this.#broken === undefined && !this.#dead) await iterator.return()
      this.verify()
    }
  }

  /** While a call is held, a failure of the sampler may be this sequence's. */
  #suspect(constraint: CallConstraint): () => void {
    return suspect({
      waiting: () => (constraint.armed && this.#waiting !== undefined ? this.#since : undefined),
      fail: (cause) => {
        const reject = this.#waiting
        if (reject === undefined) return
        // The native call never comes back, so it is counted off here.
        this.#options.control.leave()
        this.#waiting = undefined
        this.#dead = true
        const message = "The engine could not choose a token inside a call. Run with constrained decoding off."
        reject(new EngineError({ reason: "failed", message, cause }))
      }
    })
  }

  /** A new native sequence in place of a dead one, with the log evaluated again up to `fed`. */
  async #revive(fed: number): Promise<void> {
    const { chunkTokens, control, counters, open } = this.#options
    await control.closing(5_000, () => this.#sequence.dispose())
    this.#sequence = open()
    this.#dead = false
    for (let at = 0; at < fed; at += chunkTokens) {
      const chunk = this.#log.slice(at, Math.min(at + chunkTokens, fed)) as Array<Token>
      await this.#native(() => this.#sequence.evaluateWithoutGeneratingNewTokens(chunk))
      counters.evaluatedTokens += chunk.length
    }
  }

  /** Frees the slot. A sequence that stopped answering keeps its slot: freeing it would corrupt the next one there. */
  async dispose(): Promise<void> {
    this.#closing.abort()
    if (this.#broken !== undefined) return
    await this.#options.control.closing(5_000, () => this.#sequence.dispose())
  }

  /** What the log holds and the cache does not; re-evaluates the last token where everything is in the cache. */
  async #pending(): Promise<Array<number>> {
    const fed = this.#sequence.nextTokenIndex
    if (fed === this.#log.length && fed > 0) {
      await this.#native(() => this.#sequence.eraseContextTokenRanges([{ start: fed - 1, end: fed }]))
      return this.#log.slice(fed - 1)
    }
    return this.#log.slice(fed)
  }

  /** Lengths agree always, contents where asked for. */
  verify(): void {
    if (this.#broken !== undefined || this.#dead) return
    const fed = this.#sequence.nextTokenIndex
    if (fed > this.#log.length) throw this.#break(`the cache holds ${fed} tokens, the log ${this.#log.length}`)
    if (!this.#options.verify) return
    const kv = this.#sequence.contextTokens
    const wrong = kv.findIndex((token, index) => token !== this.#log[index])
    if (wrong >= 0) throw this.#break(`cache and log differ at token ${wrong}`)
  }

  #look(cancel: Cancel): void {
    if (cancel.cancelled || this.#options.control.stopped()) throw new Stopped()
  }

  #check(): void {
    if (this.#broken !== undefined) throw this.#broken
  }

  #break(what: string): EngineError {
    this.#broken = new EngineError({
      reason: "failed",
      message: `The engine lost track of a session: ${what}. Close the session and open another.`
    })
    return this.#broken
  }

  /** One native call that must come back within the stall limit. Runs once per token, so it is spelled out. */
  #native<A>(run: () => Promise<A>): Promise<A> {
    const { control } = this.#options
    return new Promise<A>((resolve, reject) => {
      control.enter()
      this.#since = performance.now()
      this.#waiting = reject
      const settled = () => {
        control.leave()
        this.#waiting = undefined
      }
      run().then(
        (value) => {
          settled()
          resolve(value)
        },
        (cause) => {
          settled()
          reject(cause)
        }
      )
    })
  }

  /** Fails native calls that have been out for too long. One timer per sequence: one per call is felt at each token. */
  async #watch(): Promise<void> {
    const { stallMillis } = this.#options
    const options = { signal: this.#closing.signal, ref: false }
    try {
      for await (const _ of setInterval(Math.max(10, stallMillis / 4), undefined, options)) {
        if (this.#waiting === undefined || performance.now() - this.#since < stallMillis) continue
        this.#broken = new EngineError({
          reason: "lost",
          message: `The engine made no progress for ${stallMillis / 1000} s. Close the session and open another.`
        })
        this.#waiting(this.#broken)
      }
    } catch {
      // the sequence was disposed
    }
  }
}
