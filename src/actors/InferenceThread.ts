/**
 * The inference thread: started, and ended with its scope. It is never terminated while native code runs, since that aborts
 * the process, and the process's own exit waits for it (bounded) for the same reason.
 */
import { Worker } from "node:worker_threads"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { isBusy, makeBuffer, raiseStop, waitIdle } from "../engine/LlamaControl.ts"
import { type End, endOf, engineEntry, Gone, type Host } from "./InferenceHost.ts"

/** Milliseconds the process's exit waits for native code at most. */
const exitWaitMillis = 10_000
/** How long leaving the scope waits for the thread's end before it stops waiting. */
const closeWait = "30 seconds"

const codeOf = (cause: unknown): unknown => (cause as { readonly code?: unknown } | null)?.code

class Thread implements Host {
  readonly isolation = "thread"
  readonly pid = undefined
  readonly gone = Deferred.makeUnsafe<void>()
  readonly worker: Worker
  readonly control = makeBuffer()
  end: End | undefined
  #abandoned = false

  constructor() {
    this.worker = new Worker(engineEntry(), { workerData: { control: this.control } })
    const hook = () => {
      raiseStop(this.control)
      waitIdle(this.control, exitWaitMillis)
    }
    process.on("exit", hook)
    this.worker.on("error", (cause) => {
      const full = codeOf(cause) === "ERR_WORKER_OUT_OF_MEMORY"
      this.end ??= endOf(full ? "out_of_memory" : "crashed", `The inference thread failed: ${cause}.`, cause)
    })
    this.worker.on("exit", (code) => {
      process.off("exit", hook)
      this.end ??= endOf("crashed", `The inference thread has ended (code ${code}).`)
      Deferred.doneUnsafe(this.gone, Exit.void)
    })
  }

  readonly post = (message: unknown): void => this.worker.postMessage(message)

  readonly hear = (listener: (message: unknown) => void): void => {
    this.worker.on("message", listener)
  }

  readonly abandoned = (): boolean => this.#abandoned

  readonly condemn = (end: End): void => {
    if (this.end !== undefined) return
    this.end = end
    // From here on no native call begins; one that runs is left alone, and no longer keeps the process alive.
    raiseStop(this.control)
    if (!isBusy(this.control)) {
      void this.worker.terminate()
      return
    }
    this.#abandoned = true
    this.worker.unref()
    // Should that code come back after all, the thread ends.
    this.post([1])
    Deferred.doneUnsafe(this.gone, Exit.void)
  }
}

const ended = (thread: Thread): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (thread.abandoned()) return Effect.void
    raiseStop(thread.control)
    thread.post([1])
    return Deferred.await(thread.gone).pipe(
      Effect.timeoutOrElse({
        duration: closeWait,
        orElse: () =>
          // Hung in native code it must be left alone; it no longer keeps the process alive.
          isBusy(thread.control)
            ? Effect.sync(() => thread.worker.unref())
            : Effect.asVoid(Effect.promise(() => thread.worker.terminate()))
      })
    )
  })

export const startThread: Effect.Effect<Host, Gone, Scope.Scope> = Effect.acquireRelease(
  Effect.try({
    try: () => new Thread(),
    catch: (cause) => new Gone({ end: endOf("crashed", `The inference thread cannot be started: ${cause}.`, cause) })
  }),
  ended
)
