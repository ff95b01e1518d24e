/**
 * Runs admitted calls under their deadlines and owns what they run on. A tool's failure is an outcome, never an error.
 * `layerPiscina` runs them on threads that can be terminated, and where a contract asks for it in processes that can be
 * killed; `layerInline` in this thread, `layerNoop` not at all. What the walls hold, and what they do not, is in docs/pool.md.
 *
 *   caller  ── slot ──> thread ──> outcome            a slot is one thread; waiting for it starts no deadline
 *      └─ deadline: timed_out, caller goes on
 *                         └─ grace ──> late outcome, or thread terminated ──> gone, replaced ──> slot back
 */

import { getCompileCacheDir } from "node:module"
import { extname } from "node:path"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { defaultMaxResultBytes, execute, failed } from "../tools/Execution.ts"
import type { ToolOutcome } from "../tools/ToolCall.ts"
import type { ThreadReply } from "../tools/worker.ts"
import { runDetachable } from "./Detachment.ts"
import { makeProcesses } from "./ToolPoolProcesses.ts"
import { ToolPoolQueue } from "./ToolPoolQueue.ts"
import { type AdmittedCall, type Carriers, makeRun, type RunCall } from "./ToolPoolRunner.ts"
import { ToolThreads } from "./ToolThreads.ts"

export type { AdmittedCall } from "./ToolPoolRunner.ts"

export class ToolPool extends Context.Service<
  ToolPool,
  {
    /**
     * Never fails. Interrupting it detaches the work as a deadline does: the caller moves on, the work is ended after
     * the pool's grace period. `late` is told what a detached call ended with, if it ended by itself.
     */
    readonly run: (call: AdmittedCall, late?: (outcome: ToolOutcome) => void) => Effect.Effect<ToolOutcome>
  }
>()("effect-writ/actors/ToolPool") {}

/** Time a detached call gets before it is ended, unless the layer says otherwise. */
export const defaultGraceMillis = 2_000

/** Every call is answered `not_executed`: for dry runs. */
export const layerNoop: Layer.Layer<ToolPool> = Layer.succeed(ToolPool, {
  run: () => Effect.succeed(failed("not_executed", "none", "tools are switched off in this run", 0))
})

export interface InlineOptions {
  readonly graceMillis?: number
  readonly maxResultBytes?: number
  /** Runs tools here even if their contract asks for a process of their own: for tests of such tools. */
  readonly anyIsolation?: boolean
}

const needsProcess = failed(
  "not_executed",
  "none",
  "this tool needs a process of its own, and tools run inline here",
  0
)

/**
 * In this thread. A tool that waits can be interrupted after its grace period; one that computes without pause cannot
 * be stopped and holds up everything else, deadlines included: such tools belong on `layerPiscina`.
 */
export const layerInline = (options: InlineOptions = {}): Layer.Layer<ToolPool> =>
  Layer.effect(
    ToolPool,
    Effect.gen(function* () {
      const owner = yield* Effect.scope
      const { anyIsolation, graceMillis = defaultGraceMillis, maxResultBytes } = options
      return {
        run: ({ arguments: args, deadlineMillis, detached, settings, tool }, late) =>
          tool.contract.isolation === "process" && anyIsolation !== true
            ? Effect.succeed(needsProcess)
            : runDetachable(execute(tool, args, { settings, maxResultBytes }), {
                contract: tool.contract,
                deadlineMillis,
                graceMillis,
                owner,
                late,
                detached
              })
      }
    })
  )

export interface PiscinaOptions {
  /** A module that exports `registry: Effect<Registry, RegistrationError>`; each thread and process loads it by itself. */
  readonly module: URL
  /** At least 2 (also the default): the next call must not wait for a straggler. */
  readonly threads?: number
  /** Most threads one tool may hold at a time: all but one unless given, so that a stuck tool leaves room for the others. */
  readonly threadsPerTool?: number
  /** Processes for the tools that need one, as many as threads unless given. Each is started by the first call that needs it. */
  readonly processes?: number
  /** Where tools run that do not say. `process`: everything, and no thread is started. Default `thread`. */
  readonly isolation?: "thread" | "process"
  readonly graceMillis?: number
  readonly maxResultBytes?: number
  /** Heap of one thread or process: 256 unless given, 32 at least (with much less, Node ends the whole process). */
  readonly maxOldGenerationSizeMb?: number
  /** Most a thread may hold in buffers, which are not part of its heap: 512 unless given. Looked at 4 times a second. */
  readonly maxBufferMb?: number
  /** The whole environment of the tools: a variable that is not in it is not seen by them. Empty unless given. */
  readonly env?: Readonly<Record<string, string>>
}

const mb = 1024 * 1024
const watchMillis = 250
const renewMillis = 500

/** On threads and processes, which are ended if a call outlives deadline and grace. Nothing is left when the scope closes. */
export const layerPiscina = (options: PiscinaOptions): Layer.Layer<ToolPool> =>
  Layer.effect(ToolPool, makePool(options))

const makePool = Effect.fnUntraced(function* (options: PiscinaOptions) {
  if (options.isolation === "process") return { run: (yield* processesOf(options)).run }
  const threads = yield* makeThreads(options)
  return { run: threads.run }
})

const perToolOf = (size: number, wanted: number | undefined): number => Math.min(size, Math.max(1, wanted ?? size - 1))

const sizeOf = (options: PiscinaOptions): number => Math.max(2, options.threads ?? 2)

/** No process is started before a call needs it. */
const processesOf = (options: PiscinaOptions) => {
  const size = Math.max(1, options.processes ?? sizeOf(options))
  return makeProcesses({
    entry: new URL(`../tools/workerProcess${extname(import.meta.url)}`, import.meta.url),
    arguments: [options.module.href, ...compileCache()],
    size,
    perTool: perToolOf(size, options.threadsPerTool),
    env: options.env ?? {},
    graceMillis: options.graceMillis ?? defaultGraceMillis,
    maxResultBytes: options.maxResultBytes ?? defaultMaxResultBytes,
    heapMb: heapOf(options),
    bufferMb: bufferOf(options)
  })
}

/** The pool behind `layerPiscina`, with what tests and `doctor` want to see of it. */
export const makeThreads = Effect.fnUntraced(function* (options: PiscinaOptions) {
  const { graceMillis = defaultGraceMillis, maxResultBytes = defaultMaxResultBytes } = options
  const size = sizeOf(options)
  const processes = yield* processesOf(options)
  const owner = yield* Scope.make()
  const threads = yield* Effect.acquireRelease(
    Effect.promise(() => open(options, size)),
    (threads) => close(threads, owner)
  )
  // The queue is ours, not the pool's: waiting in it is interruptible and starts no deadline. Threads hand in their
  // slot when they are up, so that nobody's deadline pays for a thread's start.
  const queue = new ToolPoolQueue(perToolOf(size, options.threadsPerTool))
  for (let thread = 0; thread < size; thread++) {
    const up = Effect.andThen(Effect.exit(threads.call(undefined)), threads.whole)
    yield* Effect.forkIn(
      Effect.andThen(
        up,
        Effect.sync(() => queue.add())
      ),
      owner,
      { startImmediately: true }
    )
  }
  const carriers = carriersOf(threads, owner, bufferOf(options) * mb)
  const onThread = makeRun({ carriers, graceMillis, maxResultBytes, owner, queue })
  const run: RunCall = (call, late) =>
    call.tool.contract.isolation === "process" || threads.unstoppable.has(call.tool.name)
      ? processes.run(call, late)
      : onThread(call, late)
  return {
    run,
    queue,
    pids: processes.pids,
    get piscina() {
      return threads.piscina
    },
    get stuck() {
      return threads.stuck
    }
  }
})

const heapOf = ({ maxOldGenerationSizeMb = 256 }: PiscinaOptions): number => Math.max(32, maxOldGenerationSizeMb)

const bufferOf = ({ maxBufferMb = 512 }: PiscinaOptions): number => Math.max(16, maxBufferMb)

/** A place on some thread; which one is known when it is spent. */
interface Place {
  threadId: number | undefined
}

const brokenPool = failed("crashed", "none", "the tool threads cannot start", 0)

type Threads = Awaited<ReturnType<typeof open>>

const carriersOf = (threads: Threads, owner: Scope.Scope, maxBufferBytes: number): Carriers<Place> => {
  let ongoing = 0
  let watched = false
  const watch = Effect.gen(function* () {
    while (ongoing > 0) {
      yield* Effect.sleep(watchMillis)
      threads.endOverfull(maxBufferBytes)
    }
    watched = false
  })
  const watching = Effect.suspend(() => {
    ongoing++
    if (watched) return Effect.void
    watched = true
    return Effect.asVoid(Effect.forkIn(watch, owner, { startImmediately: true }))
  })
  const unwatched = Effect.sync(() => void ongoing--)
  const renewal = renewalOf(threads, owner)
  return {
    atHand: () => true,
    acquire: Effect.suspend(() =>
      threads.broken
        ? Effect.andThen(renewal, Effect.fail(brokenPool))
        : Effect.sync((): Place => ({ threadId: undefined }))
    ),
    release: () => {},
    call: (place, task) =>
      Effect.andThen(
        watching,
        Effect.ensuring(
          Effect.tap(threads.call<ThreadReply>(task, task.tool), ({ threadId }) =>
            Effect.sync(() => {
              place.threadId = threadId
            })
          ),
          unwatched
        )
      ),
    done: ({ threadId }, spent) => {
      if (spent) threads.end(threadId, "an earlier call left something behind")
    },
    restored: () => threads.whole
  }
}

/** Looks for another pool in the background, with longer and longer pauses while there is none. */
const renewalOf = (threads: Threads, owner: Scope.Scope): Effect.Effect<void> => {
  let pause = renewMillis
  let renewing = false
  const renewed = Effect.gen(function* () {
    yield* Effect.sleep(Duration.millis(pause))
    const good = yield* threads.renew
    pause = good ? renewMillis : Math.min(2 * pause, 60_000)
    renewing = false
  })
  return Effect.suspend(() => {
    if (renewing) return Effect.void
    renewing = true
    return Effect.asVoid(Effect.forkIn(renewed, owner))
  })
}

const open = async (options: PiscinaOptions, size: number) => {
  // Loaded here so that programs with inline tools never pay for it.
  const { Piscina } = await import("piscina")
  const start = () =>
    new Piscina({
      filename: workerUrl().href,
      minThreads: size,
      maxThreads: size,
      // An abort costs the whole thread, so a thread carries one call at a time.
      concurrentTasksPerWorker: 1,
      recordTiming: false,
      argv: [options.module.href, ...compileCache()],
      env: { ...options.env },
      resourceLimits: { maxOldGenerationSizeMb: heapOf(options) }
    })
  return new ToolThreads(start, size)
}

const close = (threads: Threads, owner: Scope.Closeable): Effect.Effect<void> =>
  Effect.andThen(
    Effect.suspend(() => {
      threads.closing = true
      return Scope.close(owner, Exit.void)
    }),
    Effect.flatMap(threads.destroyed, (all) =>
      all ? Effect.void : Effect.logWarning("a tool thread sits in native code and cannot be ended")
    )
  )

/** Where this program keeps compiled code, if it does. */
const compileCache = (): ReadonlyArray<string> => {
  const place = getCompileCacheDir()
  return place === undefined ? [] : [place]
}

/** The thread's entry: TypeScript when this file is run from its source, JavaScript when it was built. */
const workerUrl = (): URL => new URL(`../tools/worker${extname(import.meta.url)}`, import.meta.url)
