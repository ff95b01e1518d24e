/**
 * One turn of a session while it runs: evaluates the opening, generates, and tells what happens to a queue. It takes the
 * sequence back where the turn fails; what becomes of a finished turn is the session's business.
 */
import { setImmediate } from "node:timers"
import { setTimeout as elapsed } from "node:timers/promises"
import * as Cause from "effect/Cause"
import * as Queue from "effect/Queue"
import type { EngineError } from "./EngineError.ts"
import type { GenerationEvent, TurnRequest } from "./Generation.ts"
import type { Constraints } from "./LlamaConstraint.ts"
import { toEngineError } from "./LlamaFailure.ts"
import type { Cancel, Counters, LlamaSequence, Mark } from "./LlamaSequence.ts"
import { type Detokenize, TurnText } from "./LlamaText.ts"
import { TokenClock } from "./LlamaThinking.ts"
import type { Tokenizer } from "./LlamaTokenizer.ts"

export interface TurnParts {
  readonly sequence: LlamaSequence
  readonly counters: Counters
  readonly detokenize: Detokenize
  readonly constraints: Constraints
}

/** A mark that this vocabulary would spell is none of its tokens, so the model cannot end with it. */
const endTokens = (marks: TurnRequest["ends"] = [], { encode }: Tokenizer): ReadonlySet<number> =>
  new Set(marks.map((mark) => encode(mark, true, false)).flatMap((ids) => (ids.length === 1 ? ids : [])))

/** Nobody reads faster than a screen shows. */
const readMillis = 16

type End = GenerationEvent & { readonly _tag: "End" }

/** One turn while it runs: tells its events to a queue. */
export class Speculation {
  readonly cancel: Cancel = { cancelled: false }
  /** The boundary before the turn, once it has begun. */
  before: Mark | undefined
  readonly #parts: TurnParts
  readonly #request: TurnRequest
  readonly #events: Queue.Queue<GenerationEvent, EngineError | Cause.Done>
  #outbox: Array<GenerationEvent> = []
  #delivered = Number.NEGATIVE_INFINITY

  /** @param before where the turn began that this one goes on with */
  constructor(
    parts: TurnParts,
    request: TurnRequest,
    events: Queue.Queue<GenerationEvent, EngineError | Cause.Done>,
    before?: Mark
  ) {
    this.before = before
    this.#parts = parts
    this.#request = request
    this.#events = events
  }

  /** Ends the queue and returns the turn's end, or fails the queue and returns nothing. Never rejects. */
  async run(opening: ReadonlyArray<number>): Promise<End | undefined> {
    try {
      this.before ??= await this.#parts.sequence.mark()
      const end = await this.#generate(opening)
      this.#deliver()
      Queue.endUnsafe(this.#events)
      return end
    } catch (cause) {
      let failure = cause
      if (this.before !== undefined)
        await this.#parts.sequence.rollback(this.before).catch((worse) => {
          failure = worse
        })
      Queue.failCauseUnsafe(this.#events, Cause.fail(toEngineError(failure)))
      return undefined
    }
  }

  /**
   * Events wait for two turns of the loop: by then the next evaluation runs on its own thread, and telling a reader about
   * the last one costs no time of the model's. Where they come faster than anybody reads, they wait for each other.
   */
  #tell(event: GenerationEvent): void {
    const last = this.#outbox.at(-1)
    if (last?._tag === "Piece" && event._tag === "Piece") {
      const joined = { text: last.text + event.text, tokens: [...last.tokens, ...event.tokens] }
      this.#outbox[this.#outbox.length - 1] = { _tag: "Piece", ...joined }
      return
    }
    this.#outbox.push(event)
    if (this.#outbox.length > 1) return
    const wait = this.#delivered + readMillis - performance.now()
    if (wait > 1) void elapsed(wait).then(() => this.#deliver())
    else setImmediate(() => setImmediate(() => this.#deliver()))
  }

  #deliver(): void {
    if (this.#outbox.length === 0) return
    this.#delivered = performance.now()
    Queue.offerAllUnsafe(this.#events, this.#outbox)
    this.#outbox = []
  }

  async #generate(opening: ReadonlyArray<number>): Promise<End> {
    const { constraints, counters, detokenize, sequence } = this.#parts
    const request = this.#request
    counters.turns++
    const started = performance.now()
    let decoding = started
    let outputTokens = 0
    // everything known and not yet in the cache is evaluated before the first new token
    const { fed, length } = sequence.here
    const total = length - fed + opening.length
    const prefilled = (done: number) => this.#tell({ _tag: "Prefill", done, total })
    await sequence.append(opening, this.cancel, { generates: true, progress: prefilled, priority: request.priority })
    const constraint = request.grammar === undefined ? undefined : constraints.make(request.grammar, sequence.last(16))
    const thinking =
      request.thinking === undefined
        ? undefined
        : new TokenClock(request.thinking, constraints.parts, sequence.last(16))
    const told = (piece: string, tokens: ReadonlyArray<number>) => this.#tell({ _tag: "Piece", text: piece, tokens })
    const text = new TurnText(detokenize, request.stops, sequence.last(4), told, { live: request.live })
    let reason = await sequence.generate(
      request,
      this.cancel,
      (token) => {
        if (outputTokens++ === 0) {
          decoding = performance.now()
          prefilled(total)
        }
        return text.push(token)
      },
      { constraint, thinking, ends: endTokens(request.ends, constraints.parts.tokenizer) }
    )
    if (text.end()) reason = "stop"
    const ended = performance.now()
    if (outputTokens === 0) decoding = ended
    const usage = {
      prefillTokens: total,
      outputTokens,
      prefillMillis: decoding - started,
      decodeMillis: ended - decoding
    }
    return { _tag: "End", reason, usage, ...(thinking?.closed === undefined ? {} : { thinkClosed: thinking.closed }) }
  }
}
