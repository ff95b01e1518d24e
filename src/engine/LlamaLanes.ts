/**
 * Who goes first where several sessions share one context. Whoever evaluates a prompt lets those of a higher priority take
 * some steps before each of its own, and then goes all the same: nobody starves. Among equals nobody waits, and a step of
 * generation never does: the library evaluates what is there in one batch, and one token more costs it little.
 */
import type { Priority } from "./Generation.ts"

/** Where nobody says what a session is worth. */
export const usual: Priority = 3

/** Steps of others that a piece of a prompt lets pass at most: their tokens or their own pieces. */
const patience = 8

export class Lanes {
  /** Operations under way, by priority. */
  readonly #working = [0, 0, 0, 0, 0, 0]
  #waiting: Array<{ readonly priority: Priority; readonly wake: () => void }> = []

  /** Runs an operation in its lane. */
  async within<A>(priority: Priority, run: () => Promise<A>): Promise<A> {
    this.#working[priority]!++
    try {
      return await run()
    } finally {
      this.#working[priority]!--
      this.#wake(priority)
    }
  }

  /** Waits for the turn of a piece of a prompt. Whoever does not want it any more, by `over`, waits one step at most. */
  async turn(priority: Priority, over: () => boolean = () => false): Promise<void> {
    for (let passed = 0; passed < patience && !over() && this.#outranked(priority); passed++) {
      await new Promise<void>((wake) => this.#waiting.push({ priority, wake }))
    }
  }

  /** Said by an operation after each of its steps. */
  stepped(priority: Priority): void {
    if (this.#waiting.length > 0) this.#wake(priority)
  }

  #outranked(priority: Priority): boolean {
    return this.#working.some((count, other) => other > priority && count > 0)
  }

  #wake(priority: Priority): void {
    const all = this.#waiting
    this.#waiting = all.filter((one) => one.priority >= priority)
    for (const one of all) if (one.priority < priority) one.wake()
  }
}
