/**
 * Who gets the next free slot of a pool. Runs take turns, so that a run with a hundred waiting calls holds up nobody else; a
 * tool holds at most `perTool` slots, so that one that is stuck leaves the others room. Waiting is not an error, however
 * long the queue. Knows nothing of threads, tools or deadlines.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Restore } from "./Detachment.ts"

/** What wants a slot. The same object gives it back. */
export interface Claim {
  readonly run: string
  readonly tool: string
}

interface Waiter {
  readonly claim: Claim
  readonly place: number
  granted: boolean
  wake: (() => void) | undefined
}

/** The waiting calls of one run, by tool, each in the order of arrival. */
type Waiting = Map<string, Set<Waiter>>

export class ToolPoolQueue {
  readonly #perTool: number
  readonly #held = new Map<string, number>()
  /** The order of the map is whose turn it is. */
  readonly #runs = new Map<string, Waiting>()
  #free = 0
  #places = 0

  /** Has no slot until some are added. */
  constructor(perTool: number) {
    this.#perTool = perTool
  }

  /** Slots that nobody holds. */
  get free(): number {
    return this.#free
  }

  /** Calls that wait. */
  get waiting(): number {
    let count = 0
    for (const waiting of this.#runs.values()) for (const waiters of waiting.values()) count += waiters.size
    return count
  }

  /** One slot more. */
  add(): void {
    this.#free++
    this.#serve()
  }

  /** Takes a slot, and says whether it had to wait for it. The wait is what `restore` makes interruptible. */
  take(claim: Claim, restore: Restore): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      // Whoever waits could not be served, so nobody is overtaken by a call that can be.
      if (this.#free > 0 && this.#mayHold(claim.tool)) {
        this.#grant(claim)
        return Effect.succeed(false)
      }
      const waiter = this.#enter(claim)
      const turn = Effect.callback<void>((resume) => {
        if (waiter.granted) resume(Effect.void)
        else waiter.wake = () => resume(Effect.void)
      })
      return Effect.as(
        Effect.onExit(restore(turn), (exit) => (Exit.isSuccess(exit) ? Effect.void : this.#leave(waiter))),
        true
      )
    })
  }

  /** The slot of this claim is free again. */
  give({ tool }: Claim): void {
    const held = this.#heldBy(tool) - 1
    if (held > 0) this.#held.set(tool, held)
    else this.#held.delete(tool)
    this.add()
  }

  #heldBy(tool: string): number {
    return this.#held.get(tool) ?? 0
  }

  #mayHold(tool: string): boolean {
    return this.#heldBy(tool) < this.#perTool
  }

  #grant({ tool }: Claim): void {
    this.#free--
    this.#held.set(tool, this.#heldBy(tool) + 1)
  }

  #enter(claim: Claim): Waiter {
    const waiter: Waiter = { claim, place: this.#places++, granted: false, wake: undefined }
    const waiting: Waiting = this.#runs.get(claim.run) ?? new Map()
    this.#runs.set(claim.run, waiting)
    const waiters = waiting.get(claim.tool) ?? new Set()
    waiting.set(claim.tool, waiters.add(waiter))
    return waiter
  }

  /** It was interrupted, perhaps in the moment in which it was its turn. */
  #leave(waiter: Waiter): Effect.Effect<void> {
    return Effect.sync(() => {
      if (waiter.granted) this.give(waiter.claim)
      else this.#strike(waiter)
    })
  }

  #strike(waiter: Waiter): void {
    const { run, tool } = waiter.claim
    const waiting = this.#runs.get(run)
    const waiters = waiting?.get(tool)
    waiters?.delete(waiter)
    if (waiters?.size === 0) waiting?.delete(tool)
    if (waiting?.size === 0) this.#runs.delete(run)
  }

  #serve(): void {
    while (this.#free > 0) {
      const next = this.#next()
      if (next === undefined) return
      const { run } = next.claim
      this.#strike(next)
      // Its run has had its turn and goes to the end of the line.
      const rest = this.#runs.get(run)
      if (rest !== undefined && this.#runs.delete(run)) this.#runs.set(run, rest)
      this.#grant(next.claim)
      next.granted = true
      next.wake?.()
    }
  }

  #next(): Waiter | undefined {
    for (const waiting of this.#runs.values()) {
      const first = this.#firstOf(waiting)
      if (first !== undefined) return first
    }
    return undefined
  }

  /** The oldest call of a run whose tool may have another slot. */
  #firstOf(waiting: Waiting): Waiter | undefined {
    let oldest: Waiter | undefined
    for (const [tool, waiters] of waiting) {
      if (!this.#mayHold(tool)) continue
      const [first] = waiters
      if (first !== undefined && (oldest === undefined || first.place < oldest.place)) oldest = first
    }
    return oldest
  }
}
