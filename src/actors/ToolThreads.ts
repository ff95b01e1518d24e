/**
 * Keeps count of a thread pool's threads: which have gone, which replacements are up. The pool itself says neither: an
 * aborted run rejects before its thread is gone, and a replacement is listed before it can take a call.
 */
import * as Effect from "effect/Effect"

/** A worker thread, as far as it is looked at here. */
export interface Thread {
  readonly threadId: number
  once(event: "exit", listener: () => void): unknown
}

/** The part of a piscina pool that is used. */
export interface ThreadPool {
  readonly threads: ReadonlyArray<Thread>
  on(event: string, listener: (value: { readonly id: number }) => void): unknown
  run(task: unknown, options: { readonly signal: AbortSignal }): Promise<unknown>
}

export class ToolThreads<Pool extends ThreadPool> {
  readonly piscina: Pool
  /** Set before the pool is destroyed: from then on nothing is aborted one by one. */
  closing = false
  /** A replacement died before it was up; the pool starts no more. */
  broken = false
  readonly #size: number
  readonly #living = new Set<Thread>()
  readonly #up = new Set<number>()
  readonly #waiting = new Set<() => void>()

  /** `piscina` must be new: the threads it starts with count as soon as they have answered a first call. */
  constructor(piscina: Pool, size: number) {
    this.piscina = piscina
    this.#size = size
    piscina.on("workerCreate", ({ id }) => {
      this.#up.add(id)
      this.#changed()
    })
    // A thread that dies between calls is replaced; nobody is waiting for it.
    piscina.on("error", () => this.#changed())
    this.#changed()
  }

  /** All terminated threads have exited and all threads of the pool are up, or the pool is broken. */
  readonly whole: Effect.Effect<void> = Effect.callback<void>((resume) => {
    const forget = this.#when(
      () => this.#isWhole(),
      () => resume(Effect.void)
    )
    return Effect.sync(forget)
  })

  /** One task. Fails with whatever the pool rejects with. Interruption terminates its thread and returns at once. */
  call<A>(task: unknown): Effect.Effect<A, unknown> {
    return Effect.callback<A, unknown>((resume) => {
      const controller = new AbortController()
      this.piscina.run(task, { signal: controller.signal }).then(
        (value) => resume(Effect.succeed(value as A)),
        (cause) => {
          this.#changed()
          resume(Effect.fail(cause))
        }
      )
      return Effect.sync(() => {
        if (!this.closing) controller.abort()
        this.#changed()
      })
    })
  }

  allExited(): Promise<void> {
    return new Promise((resolve) => void this.#when(() => this.#living.size === 0, resolve))
  }

  #isWhole(): boolean {
    const { threads } = this.piscina
    const isUp = (thread: Thread): boolean => this.#living.has(thread) && this.#up.has(thread.threadId)
    return this.broken || (this.#living.size === threads.length && threads.every(isUp))
  }

  /** Threads may have come or gone. */
  #changed(): void {
    for (const thread of this.piscina.threads) {
      if (this.#living.has(thread)) continue
      this.#living.add(thread)
      thread.once("exit", () => {
        this.#living.delete(thread)
        // The pool has put a replacement in its place by now, or it will not.
        if (!this.closing && this.piscina.threads.length < this.#size) this.broken = true
        this.#changed()
      })
    }
    for (const check of [...this.#waiting]) check()
  }

  /** Calls `then` once, as soon as `condition` holds; the returned function forgets about it. */
  #when(condition: () => boolean, then: () => void): () => void {
    const check = (): void => {
      if (condition() && this.#waiting.delete(check)) then()
    }
    this.#waiting.add(check)
    check()
    return () => this.#waiting.delete(check)
  }
}
