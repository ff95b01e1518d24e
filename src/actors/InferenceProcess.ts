/**
 * The engine in a child process: a native crash ends the child and nothing else, and ending it is always safe. It has a
 * process group of its own, so that a Ctrl-C meant for this program is this program's to answer; it ends by itself when this
 * program is gone, whatever it was doing (see `engine/worker.ts`).
 */
import { type ChildProcess, fork } from "node:child_process"
import { setImmediate } from "node:timers"
import { fileURLToPath } from "node:url"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { type End, endOf, engineEntry, Gone, type Host } from "./InferenceHost.ts"
import { lastWords } from "./LastWords.ts"

/** How long leaving the scope waits for the child to end by itself. */
const closeWait = "5 seconds"
/** Characters of what the child said last that are kept: what ran out of memory prints its stack after the reason. */
const tailLength = 65_536

const hasGroups = process.platform !== "win32"

const notStarted = (cause: unknown): End => {
  const said = cause instanceof Error ? cause.message : String(cause)
  return endOf("crashed", `The engine's process cannot be started: ${said}.`, cause)
}

class Process implements Host {
  readonly isolation = "process"
  readonly gone = Deferred.makeUnsafe<void>()
  end: End | undefined
  readonly #child: ChildProcess
  #tail = ""

  constructor() {
    this.#child = fork(fileURLToPath(engineEntry()), [String(process.pid)], {
      serialization: "advanced",
      // Standard output belongs to the program, and what a dying library says is part of the failure.
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      execArgv: [],
      detached: hasGroups
    })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (said: string) => {
        this.#tail = (this.#tail + said).slice(-tailLength)
      })
    }
    this.#child.once("error", (cause) => {
      this.end ??= notStarted(cause)
      if (this.pid === undefined) Deferred.doneUnsafe(this.gone, Exit.void)
    })
    this.#child.once("exit", (code, signal) => {
      this.#kill()
      // What it said last is read in this round of the loop or the next.
      setImmediate(() => setImmediate(() => this.#exited(code, signal)))
    })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  readonly post = (message: unknown): void => {
    // Told through the callback when it is too late; the end itself says more.
    if (this.#child.connected) this.#child.send(message as object, () => {})
  }

  readonly hear = (listener: (message: unknown) => void): void => {
    this.#child.on("message", listener)
  }

  readonly abandoned = (): boolean => false

  readonly condemn = (end: End): void => {
    this.end ??= end
    this.#kill()
  }

  /** With what it started: the library tries its binary in a process of its own. */
  #kill(): void {
    const { pid } = this
    try {
      if (hasGroups && pid !== undefined) process.kill(-pid, "SIGKILL")
      else this.#child.kill("SIGKILL")
    } catch {
      // Nothing of it is left.
    }
  }

  #exited(code: number | null, signal: NodeJS.Signals | null): void {
    const how = signal === null ? `ended with code ${code}` : `was ended by ${signal}`
    const { cause, said } = lastWords(this.#tail)
    const why = signal === "SIGKILL" ? " (the system does that where memory runs out)" : ""
    const last = said === "" ? "" : ` It said last: ${said}`
    this.end ??= endOf(cause, `The engine's process ${how}${why}.${last}`)
    Deferred.doneUnsafe(this.gone, Exit.void)
  }
}

const ended = (child: Process): Effect.Effect<void> =>
  Effect.suspend(() => {
    child.post([1])
    return Effect.timeoutOrElse(Deferred.await(child.gone), {
      duration: closeWait,
      orElse: () => {
        child.condemn(endOf("closed", "The model was closed."))
        return Deferred.await(child.gone)
      }
    })
  })

export const startProcess: Effect.Effect<Host, Gone, Scope.Scope> = Effect.acquireRelease(
  Effect.try({
    try: () => new Process(),
    // Some reasons are thrown and others told: no memory for a process, an environment too large for one.
    catch: (cause) => new Gone({ end: notStarted(cause) })
  }),
  ended
)
