/**
 * The tool processes of a pool: for tools whose contract says `isolation: "process"`, and for those that cannot be stopped on
 * a thread. A process is started by the first call that needs it and used again; a call that is cut takes its process along.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { failed, maxArtifactBytes, plain } from "../tools/Execution.ts"
import { maxStagedBytes } from "../tools/Staging.ts"
import type { ToolOutcome } from "../tools/ToolCall.ts"
import type { WorkerReply } from "../tools/WorkerAnswer.ts"
import type { ProcessOptions, ToolPoolProcess } from "./ToolPoolProcess.ts"
import { ToolPoolQueue } from "./ToolPoolQueue.ts"
import { type Carriers, makeRun, type RunCall } from "./ToolPoolRunner.ts"

export interface ProcessesOptions extends Omit<ProcessOptions, "maxReplyBytes"> {
  /** Most processes at a time. */
  readonly size: number
  readonly perTool: number
  readonly graceMillis: number
  readonly maxResultBytes: number
  /** Most memory besides the heap. */
  readonly bufferMb: number
}

export interface Processes {
  readonly run: RunCall
  /** Ids of the processes that have not exited. */
  readonly pids: () => ReadonlyArray<number>
}

const startMillis = 30_000
const exitMillis = 5_000
const watchMillis = 250
/** What a process of ours holds that has done nothing yet, generously. */
const baseMb = 256

/** Starts nothing. All that was started is ended with the scope. */
export const makeProcesses = Effect.fnUntraced(function* (
  options: ProcessesOptions
): Effect.fn.Return<Processes, never, Scope.Scope> {
  const owner = yield* Scope.make()
  const pool = new Pool(options)
  yield* Effect.addFinalizer(() => Effect.andThen(Scope.close(owner, Exit.void), pool.ended))
  const queue = new ToolPoolQueue(options.perTool)
  for (let slot = 0; slot < options.size; slot++) queue.add()
  const { graceMillis, maxResultBytes } = options
  const run = makeRun({ carriers: pool.carriers, graceMillis, maxResultBytes, owner, queue })
  return { run, pids: () => pool.pids }
})

class Pool {
  readonly #options: ProcessesOptions
  readonly #all = new Set<ToolPoolProcess>()
  #idle: Array<ToolPoolProcess> = []

  constructor(options: ProcessesOptions) {
    this.#options = options
  }

  get pids(): ReadonlyArray<number> {
    return [...this.#all].flatMap(({ pid }) => pid ?? [])
  }

  /** Ends all and waits until they have exited. */
  readonly ended: Effect.Effect<void> = Effect.suspend(() => {
    const all = [...this.#all]
    for (const process of all) process.end("the tools were shut down")
    return Effect.forEach(all, gone, { concurrency: "unbounded", discard: true })
  })

  get carriers(): Carriers<ToolPoolProcess> {
    return {
      atHand: () => this.#idle.some(({ isOver }) => !isOver),
      acquire: Effect.suspend(() => {
        this.#idle = this.#idle.filter(({ isOver }) => !isOver)
        const process = this.#idle.pop()
        return process === undefined ? this.#start : Effect.succeed(process)
      }),
      release: (process) => {
        process.hold(false)
        this.#idle.push(process)
      },
      call: (process, task) => Effect.raceFirst(asked(process, task), this.#watched(process)),
      done: (process, spent) => {
        process.hold(false)
        if (spent) process.end("an earlier call left something behind")
        else this.#idle.push(process)
      },
      restored: gone
    }
  }

  /** A process that can take calls. One that is not waited for any more is ended. */
  readonly #start: Effect.Effect<ToolPoolProcess, ToolOutcome> = Effect.gen({ self: this }, function* () {
    // Loaded here so that programs without such tools never pay for it.
    const { ToolPoolProcess } = yield* Effect.tryPromise({
      try: () => import("./ToolPoolProcess.ts"),
      catch: (cause) => cannotStart(String(cause))
    })
    const { maxResultBytes } = this.#options
    // Text may double where it is quoted; the rest is room for names.
    const maxReplyBytes = 2 * maxResultBytes + maxArtifactBytes + 2 * maxStagedBytes + 65_536
    const start = Effect.callback<ToolPoolProcess, ToolOutcome>((resume) => {
      let process: ToolPoolProcess
      try {
        process = new ToolPoolProcess({ ...this.#options, maxReplyBytes }, () => resume(Effect.succeed(process)))
      } catch (error) {
        return resume(Effect.fail(cannotStart(error instanceof Error ? error.message : String(error))))
      }
      this.#all.add(process)
      process.whenGone(() => {
        this.#all.delete(process)
        resume(Effect.fail(cannotStart(process.reason)))
      })
      return Effect.sync(() => process.end("it took too long to start"))
    })
    return yield* Effect.timeoutOrElse(start, {
      duration: Duration.millis(startMillis),
      orElse: () => Effect.fail(cannotStart("it took too long"))
    })
  })

  /** Ends a process that takes too much memory. Never succeeds: that is for its call to do. */
  #watched(process: ToolPoolProcess): Effect.Effect<never> {
    const { bufferMb, heapMb } = this.#options
    const maxBytes = (heapMb + bufferMb + baseMb) * 1024 * 1024
    return Effect.forever(
      Effect.andThen(
        Effect.sleep(watchMillis),
        Effect.sync(() => {
          const bytes = process.residentBytes
          if (bytes !== undefined && bytes > maxBytes) {
            process.end(`it held ${bytes} bytes of memory, at most ${maxBytes} are allowed`)
          }
        })
      )
    )
  }
}

/** The reply to one call. Interruption ends the process. */
const asked = (process: ToolPoolProcess, task: Parameters<ToolPoolProcess["ask"]>[0]) =>
  Effect.callback<WorkerReply, Error>((resume) => {
    process.hold(true)
    process.ask(
      task,
      (reply) => resume(Effect.succeed(reply)),
      (error) => resume(Effect.fail(error))
    )
    return Effect.sync(() => {
      process.forget()
      process.end("it was cut")
    })
  })

/** It has exited, or will not: what sits in the kernel cannot be ended by anybody. */
const gone = (process: ToolPoolProcess): Effect.Effect<void> =>
  Effect.timeoutOrElse(
    Effect.callback<void>((resume) => {
      const forget = process.whenGone(() => resume(Effect.void))
      return Effect.sync(forget)
    }),
    { duration: Duration.millis(exitMillis), orElse: () => Effect.void }
  )

const cannotStart = (reason: string): ToolOutcome =>
  failed("crashed", "none", `a tool process cannot be started: ${plain(reason)}`, 0)
