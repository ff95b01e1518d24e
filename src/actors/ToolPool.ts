/**
 * Runs admitted calls under their deadlines and owns what they run on. A tool's failure is an outcome, never an error.
 * `layerPiscina` runs them on threads that can be terminated, `layerInline` in this one, `layerNoop` not at all.
 *
 *   caller  ── permit ──> thread ──> outcome          a permit is one thread; waiting for it starts no deadline
 *      └─ deadline: timed_out, caller goes on
 *                         └─ grace ──> late outcome, or thread terminated ──> gone, replaced ──> permit back
 */

import { extname } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { crashReason, defaultMaxResultBytes, execute, failed, unseenEffect } from "../tools/Execution.ts"
import type { RegisteredTool, ValidatedArguments } from "../tools/Registry.ts"
import type { ToolOutcome } from "../tools/ToolCall.ts"
import type { ToolSettings } from "../tools/ToolContext.ts"
import type { WorkerTask } from "../tools/worker.ts"
import { noTimeLeft, runDetachable, startDetachable } from "./Detachment.ts"
import { ToolThreads } from "./ToolThreads.ts"

/** One call that may run: checked, allowed, and with the time it may take (Infinity for no limit). */
export interface AdmittedCall {
  readonly callId: string
  readonly tool: RegisteredTool
  readonly arguments: ValidatedArguments
  readonly deadlineMillis: number
  readonly settings: ToolSettings
}

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
}

/**
 * In this thread. A tool that waits can be interrupted after its grace period; one that computes without pause cannot
 * be stopped and holds up everything else, deadlines included: such tools belong on `layerPiscina`.
 */
export const layerInline = (options: InlineOptions = {}): Layer.Layer<ToolPool> =>
  Layer.effect(
    ToolPool,
    Effect.gen(function* () {
      const owner = yield* Effect.scope
      const { graceMillis = defaultGraceMillis, maxResultBytes } = options
      return {
        run: ({ arguments: args, deadlineMillis, settings, tool }, late) =>
          runDetachable(execute(tool, args, { settings, maxResultBytes }), {
            contract: tool.contract,
            deadlineMillis,
            graceMillis,
            owner,
            late
          })
      }
    })
  )

export interface PiscinaOptions {
  /** A module that exports `registry: Effect<Registry, RegistrationError>`; each thread loads it by itself. */
  readonly module: URL
  /** At least 2 (also the default): the next call must not wait for a straggler. */
  readonly threads?: number
  readonly graceMillis?: number
  readonly maxResultBytes?: number
  /** Heap of one thread: 256 unless given, 32 at least (with much less, Node ends the whole process). */
  readonly maxOldGenerationSizeMb?: number
  /** The whole environment of the threads; empty unless given. */
  readonly env?: Readonly<Record<string, string>>
}

/** On threads of their own, which are terminated if a call outlives deadline and grace. Nothing is left when the scope closes. */
export const layerPiscina = (options: PiscinaOptions): Layer.Layer<ToolPool> =>
  Layer.effect(
    ToolPool,
    Effect.map(makeThreads(options), (threads) => ({ run: threads.run }))
  )

/** The pool behind `layerPiscina`, with what tests and `doctor` want to see of it. */
export const makeThreads = Effect.fnUntraced(function* (options: PiscinaOptions) {
  const { graceMillis = defaultGraceMillis, maxResultBytes = defaultMaxResultBytes } = options
  const size = Math.max(2, options.threads ?? 2)
  const owner = yield* Scope.make()
  const threads = yield* Effect.acquireRelease(
    Effect.promise(() => open(options, size)),
    (threads) => close(threads, owner)
  )
  // The queue is ours, not the pool's: waiting in it is interruptible and starts no deadline. Threads hand in their
  // permit when they are up, so that nobody's deadline pays for a thread's start.
  const permits = yield* Semaphore.make(size)
  yield* permits.take(size)
  const returned = permits.release(1)
  const returnedWhenWhole = Effect.andThen(threads.whole, returned)
  for (let thread = 0; thread < size; thread++) {
    const up = Effect.andThen(Effect.exit(threads.call(undefined)), returnedWhenWhole)
    yield* Effect.forkIn(up, owner, { startImmediately: true })
  }
  const work = ({ arguments: args, settings, tool }: AdmittedCall): Effect.Effect<ToolOutcome> =>
    threads.call<ToolOutcome>(taskOf(tool, args, settings, maxResultBytes)).pipe(
      // A call that did not succeed has cost its thread: the permit comes back when that one is gone and replaced.
      Effect.onExit((exit) =>
        Exit.isSuccess(exit) ? returned : Effect.forkIn(returnedWhenWhole, owner, { startImmediately: true })
      ),
      Effect.catch((cause) => Effect.succeed(crashed(cause, tool)))
    )
  const run = (call: AdmittedCall, late?: (outcome: ToolOutcome) => void): Effect.Effect<ToolOutcome> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(permits.take(1)), () => {
        const { deadlineMillis, tool } = call
        const detachable = { contract: tool.contract, deadlineMillis, graceMillis, owner, late }
        const refusal = threads.broken ? brokenPool : deadlineMillis <= 0 ? noTimeLeft : undefined
        return refusal === undefined ? startDetachable(work(call), detachable, restore) : Effect.as(returned, refusal)
      })
    )
  return { run, piscina: threads.piscina }
})

const brokenPool = failed("crashed", "none", "the tool threads cannot start", 0)

const open = async (options: PiscinaOptions, size: number) => {
  // Loaded here so that programs with inline tools never pay for it.
  const { Piscina } = await import("piscina")
  const piscina = new Piscina({
    filename: workerUrl().href,
    minThreads: size,
    maxThreads: size,
    // An abort costs the whole thread, so a thread carries one call at a time.
    concurrentTasksPerWorker: 1,
    recordTiming: false,
    argv: [options.module.href],
    env: { ...options.env },
    resourceLimits: { maxOldGenerationSizeMb: Math.max(32, options.maxOldGenerationSizeMb ?? 256) }
  })
  return new ToolThreads(piscina, size)
}

const close = (threads: Awaited<ReturnType<typeof open>>, owner: Scope.Closeable): Effect.Effect<void> =>
  Effect.andThen(
    Effect.suspend(() => {
      threads.closing = true
      return Scope.close(owner, Exit.void)
    }),
    Effect.promise(async () => {
      await threads.piscina.destroy()
      // `destroy` does not wait for threads that were terminated before it.
      await threads.allExited()
    })
  )

/** The thread's entry: TypeScript when this file is run from its source, JavaScript when it was built. */
const workerUrl = (): URL => new URL(`../tools/worker${extname(import.meta.url)}`, import.meta.url)

const taskOf = (
  tool: RegisteredTool,
  args: ValidatedArguments,
  settings: ToolSettings,
  maxResultBytes: number
): WorkerTask => ({
  tool: tool.name,
  hash: tool.hash,
  arguments: args.raw,
  settings,
  maxResultBytes
})

/** The pool rejected a call: its thread died, or the call could not be sent at all. */
const crashed = (cause: unknown, tool: RegisteredTool): ToolOutcome =>
  cause instanceof Error && cause.name === "DataCloneError"
    ? failed("not_executed", "none", "the call cannot be sent to a thread", 0)
    : failed("crashed", unseenEffect(tool.contract), crashReason(cause), 0)
