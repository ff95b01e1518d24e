/**
 * Keeps count of a thread pool's threads: which have gone, which replacements are up, which will not go, which take too much
 * memory. The pool itself says none of it: an aborted run rejects before its thread is gone, and a replacement is listed
 * before it can take a call. A pool that starts no more threads is replaced as a whole.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** A worker thread, as far as it is looked at here. */
export interface Thread {
  readonly threadId: number
  once(event: "exit", listener: () => void): unknown
  emit(event: "error", error: Error): unknown
  /** Answers also while the thread computes; not while it is inside a native call. */
  getHeapStatistics?(): Promise<{ readonly external_memory: number }>
}

/** The part of a piscina pool that is used. */
export interface ThreadPool {
  readonly threads: ReadonlyArray<Thread>
  on(event: string, listener: (value: { readonly id: number }) => void): unknown
  run(task: unknown, options: { readonly signal: AbortSignal }): Promise<unknown>
  destroy(): Promise<void>
}

/** How long a terminated thread has for its end before it is counted as one that will not end. */
const exitMillis = 5_000

const startMillis = 30_000

export class ToolThreads<Pool extends ThreadPool> {
  /** Set before the pool is destroyed: from then on nothing is aborted one by one. */
  closing = false
  /** A replacement died before it was up; the pool starts no more. */
  broken = false
  /** Tools whose thread did not end when it was terminated: they sit in native code, where nothing reaches them. */
  readonly unstoppable = new Set<string>()
  readonly #open: () => Pool
  readonly #size: number
  #pool: Pool
  readonly #living = new Set<Thread>()
  readonly #stuck = new Set<Thread>()
  readonly #up = new Set<number>()
  readonly #asked = new Set<Thread>()
  readonly #carried = new Map<Thread, string>()
  readonly #waiting = new Set<() => void>()

  /** The threads a pool starts with count as soon as they have answered a first call. */
  constructor(open: () => Pool, size: number) {
    this.#open = open
    this.#size = size
    this.#pool = open()
    this.#attend(this.#pool)
  }

  get piscina(): Pool {
    return this.#pool
  }

  /** Terminated threads that have not ended. */
  get stuck(): number {
    return this.#stuck.size
  }

  /** All terminated threads have exited, or will not, and all threads of the pool are up; or the pool is broken. */
  readonly whole: Effect.Effect<void> = Effect.suspend(() => {
    const { threads } = this.#pool
    const leaving = [...this.#living].filter((thread) => !threads.includes(thread))
    const whole = this.#once(() => this.#isWhole())
    return Effect.timeoutOrElse(whole, {
      duration: Duration.millis(exitMillis),
      orElse: () => {
        this.#giveUp(leaving)
        return whole
      }
    })
  })

  /** One task. Fails with whatever the pool rejects with. Interruption terminates its thread and returns at once. */
  call<A>(task: unknown, tool = ""): Effect.Effect<A, unknown> {
    return Effect.callback<A, unknown>((resume) => {
      const controller = new AbortController()
      const pool = this.#pool
      pool.run(task, { signal: controller.signal }).then(
        (value) => resume(Effect.succeed(value as A)),
        (cause) => {
          this.#changed()
          resume(Effect.fail(cause))
        }
      )
      return Effect.sync(() => {
        if (!this.closing) {
          const before = [...pool.threads]
          controller.abort()
          for (const thread of before) if (!pool.threads.includes(thread)) this.#carried.set(thread, tool)
        }
        this.#changed()
      })
    })
  }

  /** Ends a thread, of which its call is told `reason`. */
  end(threadId: number | undefined, reason: string): void {
    const thread = this.#pool.threads.find((thread) => thread.threadId === threadId)
    if (thread !== undefined) this.#condemn(thread, reason)
  }

  /** Ends every thread that holds more than so many bytes in buffers, which the limits of its heap do not count. */
  endOverfull(maxBytes: number): void {
    for (const thread of this.#pool.threads) {
      if (this.#asked.has(thread) || thread.getHeapStatistics === undefined) continue
      this.#asked.add(thread)
      thread.getHeapStatistics().then(
        ({ external_memory }) => {
          this.#asked.delete(thread)
          if (external_memory > maxBytes && this.#pool.threads.includes(thread)) {
            this.#condemn(thread, `it held ${external_memory} bytes in buffers, at most ${maxBytes} are allowed`)
          }
        },
        // It has exited.
        () => this.#asked.delete(thread)
      )
    }
  }

  /** Another pool in place of a broken one; false if that one does not come up either. */
  readonly renew: Effect.Effect<boolean> = Effect.suspend(() => {
    const old = this.#pool
    const next = this.#open()
    next.on("error", () => {})
    const asked = Effect.promise((signal) =>
      Promise.all(Array.from({ length: this.#size }, () => next.run(undefined, { signal }))).then(
        () => next.threads.length === this.#size,
        () => false
      )
    )
    const cameUp = Effect.timeoutOrElse(asked, {
      duration: Duration.millis(startMillis),
      orElse: () => Effect.succeed(false)
    })
    return Effect.onExit(cameUp, (exit) =>
      Effect.sync(() => {
        const good = Exit.isSuccess(exit) && exit.value && !this.closing
        void (good ? old : next).destroy()
        if (!good) return
        this.#pool = next
        for (const { threadId } of next.threads) this.#up.add(threadId)
        this.#attend(next)
        this.broken = false
      })
    )
  })

  /** Ends the pool and waits for all its threads; false if some of them will not go. */
  readonly destroyed: Effect.Effect<boolean> = Effect.suspend(() => {
    // `destroy` does not wait for threads that were terminated before it.
    const gone = Effect.andThen(
      Effect.promise(() => this.#pool.destroy()),
      this.#once(() => this.#living.size === 0)
    )
    return Effect.timeoutOrElse(
      Effect.map(gone, () => this.#stuck.size === 0),
      {
        duration: Duration.millis(exitMillis),
        orElse: () => Effect.succeed(false)
      }
    )
  })

  #attend(pool: Pool): void {
    pool.on("workerCreate", ({ id }) => {
      this.#up.add(id)
      this.#changed()
    })
    // A thread that dies between calls is replaced; nobody is waiting for it.
    pool.on("error", () => this.#changed())
    this.#changed()
  }

  /** To the pool this is a thread that failed: it is taken out at once, terminated and replaced, and its call rejects. */
  #condemn(thread: Thread, reason: string): void {
    thread.emit("error", Object.assign(new Error(reason), { name: "Ended" }))
    this.#changed()
  }

  #giveUp(threads: ReadonlyArray<Thread>): void {
    for (const thread of threads) {
      if (!this.#living.delete(thread)) continue
      this.#stuck.add(thread)
      const tool = this.#carried.get(thread)
      if (tool !== undefined) this.unstoppable.add(tool)
    }
    this.#changed()
  }

  #isWhole(): boolean {
    const { threads } = this.#pool
    const isUp = (thread: Thread): boolean => this.#living.has(thread) && this.#up.has(thread.threadId)
    return this.broken || (this.#living.size === threads.length && threads.every(isUp))
  }

  /** Threads may have come or gone. */
  #changed(): void {
    const pool = this.#pool
    for (const thread of pool.threads) {
      if (this.#living.has(thread)) continue
      this.#living.add(thread)
      // After its exit it has no id any more.
      const { threadId } = thread
      thread.once("exit", () => {
        this.#up.delete(threadId)
        for (const record of [this.#living, this.#stuck, this.#carried]) record.delete(thread)
        // The pool has put a replacement in its place by now, or it will not.
        if (!this.closing && pool === this.#pool && pool.threads.length < this.#size) this.broken = true
        this.#changed()
      })
    }
    for (const check of [...this.#waiting]) check()
  }

  /** Waits until a condition on the threads holds. */
  #once(condition: () => boolean): Effect.Effect<void> {
    return Effect.callback<void>((resume) => {
      const check = (): void => {
        if (condition() && this.#waiting.delete(check)) resume(Effect.void)
      }
      this.#waiting.add(check)
      check()
      return Effect.sync(() => this.#waiting.delete(check))
    })
  }
}
