/**
 * One sequence of the KV cache and the token log that explains it. The log is the truth: its first `fed` tokens are in
 * the cache, at most one more is pending (known, not yet evaluated). Plain promises; one caller at a time, who must not
 * let two calls overlap. Knows tokens, not segments, turns or boundaries.
 */
import type { LlamaContextSequence, LlamaModel, Token } from "node-llama-cpp"
import { badRequest, EngineError } from "./EngineError.ts"
import type { EndReason, Priority, TurnRequest } from "./Generation.ts"
import { NativeCalls } from "./LlamaCalls.ts"
import type { CallConstraint } from "./LlamaConstraint.ts"
import { type Control, Stopped } from "./LlamaControl.ts"
import { type Lanes, usual } from "./LlamaLanes.ts"
import type { TokenClock } from "./LlamaThinking.ts"
import type { Progress } from "./Model.ts"

/** A place to come back to. */
export interface Mark {
  readonly length: number
  readonly fed: number
}

/** Tokens in the cache, and where the native calls that evaluated them began. */
export interface Evaluated {
  readonly tokens: ReadonlyArray<number>
  readonly starts: ReadonlyArray<number>
}

/** Set by whoever wants the running call to end at its next boundary. */
export interface Cancel {
  cancelled: boolean
}

/** Counts of one engine, only growing. */
export interface Counters {
  evaluatedTokens: number
  /** Loaded instead of evaluated. */
  reusedTokens: number
  erasedTokens: number
  turns: number
}

export interface SequenceOptions {
  readonly model: LlamaModel
  /** Opens a native sequence: the first one, and another where one died. */
  readonly open: () => LlamaContextSequence
  readonly control: Control
  readonly counters: Counters
  /** Of all sequences of the context. */
  readonly lanes: Lanes
  readonly chunkTokens: number
  readonly stallMillis: number
  readonly contextTokens: number
  /** Compare the whole cache with the log after each call, not only the lengths. */
  readonly verify: boolean
}

export interface Appending {
  /** Something is generated next. */
  readonly generates?: boolean
  readonly progress?: Progress | undefined
  readonly priority?: Priority | undefined
}

/** What a generation is held to. */
export interface Held {
  readonly constraint?: CallConstraint | undefined
  readonly thinking?: TokenClock | undefined
  /** Tokens that end the turn besides those that the file says do. */
  readonly ends?: ReadonlySet<number>
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
  readonly #calls: NativeCalls
  #sequence: LlamaContextSequence
  readonly #log: Array<number> = []
  /** Where native calls began, ascending: what is evaluated again is evaluated in the same pieces, so it comes out the same. */
  readonly #starts: Array<number> = []
  /** So many tokens were loaded of which the cache cannot be cut. */
  #solid = 0

  constructor(options: SequenceOptions) {
    this.#options = options
    this.#sequence = options.open()
    this.#calls = new NativeCalls(options.control, options.stallMillis)
  }

  get length(): number {
    return this.#log.length
  }

  /** The present place, as it is. */
  get here(): Mark {
    return { length: this.#log.length, fed: this.#sequence.nextTokenIndex }
  }

  /** Tokens evaluated, and the pending one if there is one. */
  snapshot(): { readonly kv: ReadonlyArray<number>; readonly pending: ReadonlyArray<number> } {
    const kv = this.#sequence.contextTokens
    return { kv, pending: this.#log.slice(kv.length) }
  }

  /** Is a part of a saved state of use? Of a sliding window only the last tokens are saved, of a recurrence the last state. */
  get divisible(): boolean {
    return !this.#sequence.needsCheckpoints && !this.#sliding
  }

  get #sliding(): boolean {
    return this.#options.model.fileInsights.swaSize !== undefined
  }

  /** What is in the cache. */
  evaluated(): Evaluated {
    const fed = this.#sequence.nextTokenIndex
    return { tokens: this.#log.slice(0, fed), starts: this.#starts.filter((start) => start < fed) }
  }

  /** Writes the cache of this sequence to a file. */
  async save(path: string): Promise<void> {
    this.#check()
    await this.#calls.run(() => this.#sequence.saveStateToFile(path))
  }

  /**
   * Reads a cache into this empty sequence and keeps its first `length` tokens; `pending` follows them in the log. The file
   * must be known to be sound. Failed, the sequence is empty.
   */
  async load(
    path: string,
    { starts, tokens }: Evaluated,
    length: number,
    pending: ReadonlyArray<number> = []
  ): Promise<void> {
    this.#check()
    try {
      await this.#calls.run(() => this.#sequence.loadStateFromFile(path, { acceptRisk: true }))
      const end = this.#sequence.nextTokenIndex
      const held = this.#sequence.contextTokens
      if (end !== tokens.length || held.some((token, at) => token !== tokens[at])) {
        throw new Error("a saved state holds other tokens than it should")
      }
      if (end > length) await this.#calls.run(() => this.#sequence.eraseContextTokenRanges([{ start: length, end }]))
    } catch (cause) {
      if (this.#calls.broken === undefined) await this.#calls.run(() => this.#sequence.clearHistory())
      throw cause
    }
    for (const token of [...tokens.slice(0, length), ...pending]) this.#log.push(token)
    for (const start of starts) if (start < length) this.#starts.push(start)
    if (this.#sliding) this.#solid = length
    this.#options.counters.reusedTokens += length
    this.verify()
  }

  /** The log's last tokens, at most `count`. */
  last(count: number): ReadonlyArray<number> {
    return this.#log.slice(Math.max(0, this.#log.length - count))
  }

  /** The present place; on models whose state cannot be cut anywhere a checkpoint makes coming back cheap. */
  async mark(): Promise<Mark> {
    this.#check()
    if (this.#sequence.needsCheckpoints) await this.#calls.run(() => this.#sequence.takeCheckpoint())
    return this.here
  }

  /**
   * Forgets everything after `mark`, in the cache and in the log. Where the cache cannot be cut there, what lies between the
   * nearest place and the mark is evaluated again. Not cancellable.
   */
  async rollback(mark: Mark): Promise<void> {
    if (this.#calls.broken !== undefined || this.#options.control.stopped()) return
    if (this.#calls.dead) await this.#reopen()
    await this.#cut(mark.fed)
    await this.#refill(mark.fed)
    this.#log.length = mark.length
    while ((this.#starts.at(-1) ?? -1) >= mark.fed) this.#starts.pop()
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
    { generates = false, priority = usual, progress }: Appending = {}
  ): Promise<void> {
    this.#check()
    for (const token of tokens) this.#log.push(token)
    const { chunkTokens, control, lanes } = this.#options
    const start = this.#sequence.nextTokenIndex
    const end = this.#log.length - 1
    // chunks begin at the same places whether or not the last is left
    const last = generates ? end - chunkTokens + 1 : end
    await lanes.within(priority, async () => {
      for (let at = start; at < last; ) {
        await lanes.turn(priority, () => cancel.cancelled || control.stopped())
        this.#look(cancel)
        this.#starts.push(at)
        at = await this.#feed(at, Math.min(at + chunkTokens, end), priority)
        lanes.stepped(priority)
        progress?.(at - start, end - start + 1)
      }
    })
    this.#look(cancel)
    this.verify()
  }

  /**
   * Generates after what is pending, in one native evaluation with one random stream. `onToken` says when to stop. The
   * end token is not added to the log; after any other end the last token is pending.
   */
  generate(
    request: TurnRequest,
    cancel: Cancel,
    onToken: (token: number) => boolean,
    held: Held = {}
  ): Promise<EndReason> {
    this.#check()
    const run = () => this.#generate(request, cancel, onToken, held)
    return this.#options.lanes.within(request.priority ?? usual, run)
  }

  async #generate(
    { maxTokens, priority = usual, sampling }: TurnRequest,
    cancel: Cancel,
    onToken: (token: number) => boolean,
    { constraint, ends, thinking }: Held
  ): Promise<EndReason> {
    const { counters, lanes, model } = this.#options
    let feed = (await this.#pending()) as Array<Token>
    // `evaluate` is the same with one more generator around it, which is felt at each token.
    const options = {
      temperature: sampling.temperature,
      topK: sampling.topK,
      topP: sampling.topP,
      seed: sampling.seed >>> 0,
      evaluationPriority: priority,
      yieldEogToken: true,
      ...(constraint === undefined ? {} : { grammarEvaluationState: constraint.state })
    }
    const iterator = this.#sequence.evaluateWithMetadata(feed, {}, options)
    const acquit = constraint === undefined ? undefined : this.#calls.suspect(constraint)
    let instead: Array<Token> | undefined
    try {
      for (let count = 0; count < maxTokens; count += feed.length) {
        this.#look(cancel)
        if (constraint?.waits === true) await constraint.ready()
        this.#starts.push(this.#log.length - feed.length)
        const next = await this.#calls.run(() => iterator.next(instead))
        counters.evaluatedTokens += feed.length
        lanes.stepped(priority)
        if (next.done === true) throw this.#break("generation ended without an end token")
        const { token } = next.value
        if (model.isEogToken(token) || ends?.has(token) === true) return "eog"
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
      if (this.#calls.broken === undefined && !this.#calls.dead) await iterator.return()
      this.verify()
    }
  }

  /** A new native sequence in place of a dead one, with nothing in it. */
  async #reopen(): Promise<void> {
    const { control, open } = this.#options
    await control.closing(5_000, () => this.#sequence.dispose())
    this.#sequence = open()
    this.#calls.dead = false
  }

  /** Evaluates one piece of the log, without generating; returns its end. */
  async #feed(from: number, to: number, priority: Priority = usual): Promise<number> {
    const piece = this.#log.slice(from, to) as Array<Token>
    const options = { evaluationPriority: priority }
    await this.#calls.run(() => this.#sequence.evaluateWithoutGeneratingNewTokens(piece, options))
    this.#options.counters.evaluatedTokens += piece.length
    return to
  }

  /** Cuts the cache at `fed`, or at the last checkpoint before it where it can only be cut at one. */
  async #cut(fed: number): Promise<void> {
    const sequence = this.#sequence
    const end = sequence.nextTokenIndex
    if (end <= fed) return
    let start = fed
    if (fed < this.#solid) start = 0
    else if (fed > 0 && sequence.needsCheckpoints) {
      // Left to itself the library evaluates what is missing in pieces of its own, which rounds differently.
      const missing = sequence.getRestoreToPrefixIndexEvaluationSize(fed - 1)
      start = missing >= fed - 1 ? 0 : fed - missing
    }
    await this.#calls.run(() => sequence.eraseContextTokenRanges([{ start, end }]))
    if (start === 0) this.#solid = 0
    this.#options.counters.erasedTokens += end - start
  }

  /** Evaluates the log again up to `fed`, in the pieces it was evaluated in. */
  async #refill(fed: number): Promise<void> {
    for (let at = this.#sequence.nextTokenIndex; at < fed; ) {
      const next = this.#starts.find((start) => start > at) ?? fed
      at = await this.#feed(at, Math.min(next, fed))
    }
  }

  /** Frees the slot. A sequence that stopped answering keeps its slot: freeing it would corrupt the next one there. */
  async dispose(): Promise<void> {
    this.#calls.close()
    if (this.#calls.broken !== undefined) return
    await this.#options.control.closing(5_000, () => this.#sequence.dispose())
  }

  /** What the log holds and the cache does not; re-evaluates the last token where everything is in the cache. */
  async #pending(): Promise<Array<number>> {
    const fed = this.#sequence.nextTokenIndex
    if (fed === this.#log.length && fed > 0) {
      await this.#cut(fed - 1)
      await this.#refill(fed - 1)
      return this.#log.slice(fed - 1)
    }
    return this.#log.slice(fed)
  }

  /** Lengths agree always, contents where asked for. */
  verify(): void {
    if (this.#calls.broken !== undefined || this.#calls.dead) return
    const fed = this.#sequence.nextTokenIndex
    if (fed > this.#log.length) throw this.#break(`the cache holds ${fed} tokens, the log ${this.#log.length}`)
    if (!this.#options.verify) return
    const kv = this.#sequence.contextTokens
    const wrong = kv.findIndex((token, index) => token !== this.#log[index])
    if (wrong >= 0) throw this.#break(`cache and log differ at token ${wrong}`)
  }

  #look(cancel: Cancel): void {
    if (this.#options.control.stopped()) throw new Stopped()
    // Whoever was interrupted hears nothing of it: told is whoever had its session closed under it.
    if (cancel.cancelled) throw badRequest("The session is closed.")
  }

  #check(): void {
    if (this.#calls.broken !== undefined) throw this.#calls.broken
  }

  #break(what: string): EngineError {
    this.#calls.broken = new EngineError({
      reason: "failed",
      message: `The engine lost track of a session: ${what}. Close the session and open another.`
    })
    return this.#calls.broken
  }
}
