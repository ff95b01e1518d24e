/**
 * The native calls of one sequence: counted as busy, failed when they do not come back in time, and failed when the sampler's
 * own failure reached nobody. What a failed call means for the log is the sequence's business.
 */
import { setInterval } from "node:timers/promises"
import { EngineError } from "./EngineError.ts"
import type { CallConstraint } from "./LlamaConstraint.ts"
import type { Control } from "./LlamaControl.ts"
import { suspect } from "./LlamaFaults.ts"

/** Looks in a row that found the same call out before it counts as hung; a quarter of the limit apart. */
const looks = 4

export class NativeCalls {
  /** Why nothing more can be asked of the sequence. */
  broken: EngineError | undefined
  /** Sampling failed: the native sequence answers nothing any more, the log is sound. */
  dead = false
  readonly #control: Control
  readonly #stallMillis: number
  readonly #closing = new AbortController()
  /** When the running call began, and how to fail it. */
  #since = 0
  #waiting: ((cause: EngineError) => void) | undefined

  constructor(control: Control, stallMillis: number) {
    this.#control = control
    this.#stallMillis = stallMillis
    void this.#watch()
  }

  close(): void {
    this.#closing.abort()
  }

  /** One call that must come back within the stall limit. Runs once per token, so it is spelled out. */
  run<A>(call: () => Promise<A>): Promise<A> {
    return new Promise<A>((resolve, reject) => {
      this.#control.enter()
      this.#since = performance.now()
      this.#waiting = reject
      const settled = () => {
        this.#control.leave()
        this.#waiting = undefined
      }
      call().then(
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

  /** While a call is held, a failure of the sampler may be this sequence's. Until the returned function is called. */
  suspect(constraint: CallConstraint): () => void {
    return suspect({
      waiting: () => (constraint.armed && this.#waiting !== undefined ? this.#since : undefined),
      fail: (cause) => {
        const reject = this.#waiting
        if (reject === undefined) return
        // The native call never comes back, so it is counted off here.
        this.#control.leave()
        this.#waiting = undefined
        this.dead = true
        const message = "The engine could not choose a token inside a call. Run with constrained decoding off."
        reject(new EngineError({ reason: "failed", message, cause }))
      }
    })
  }

  /** Fails calls that have been out for too long. One timer per sequence: one per call is felt at each token. */
  async #watch(): Promise<void> {
    const options = { signal: this.#closing.signal, ref: false }
    let seen = 0
    let out = 0
    try {
      for await (const _ of setInterval(Math.max(10, this.#stallMillis / looks), undefined, options)) {
        // Counted in looks and not by the clock: a program that was stopped and goes on has not waited for an answer.
        out = this.#since === seen ? out + 1 : 0
        seen = this.#since
        if (this.#waiting === undefined || out < looks) continue
        this.broken = new EngineError({
          reason: "stalled",
          message: `The engine made no progress for ${this.#stallMillis / 1000} s. Close the session and open another.`
        })
        this.#waiting(this.broken)
      }
    } catch {
      // the sequence was disposed
    }
  }
}
