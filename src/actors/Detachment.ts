/**
 * Work under a deadline that frees its caller on time: at the deadline (or when the caller is interrupted) the work is
 * detached, gets a grace period, and is then interrupted. The owner scope keeps whatever has not ended.
 * What interruption does to the work is the work's own business.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Contract } from "../tools/Contract.ts"
import { failed, unseenEffect } from "../tools/Execution.ts"
import type { ToolOutcome } from "../tools/ToolCall.ts"

export interface Detachable {
  readonly contract: Contract
  /** Infinity for none; 0 or less: there is no time left and the work is not started. */
  readonly deadlineMillis: number
  readonly graceMillis: number
  readonly owner: Scope.Scope
  /** Told what detached work ended with, if it ended by itself. */
  readonly late: ((outcome: ToolOutcome) => void) | undefined
  readonly detached?: Detached | undefined
}

/** Told when work outlives its caller, and when that work is over, however it ended. */
export interface Detached {
  readonly began: () => void
  readonly ended: () => void
}

/** The outcome of a call that got no time at all. */
export const noTimeLeft: ToolOutcome = failed("timed_out", "none", "no time is left: the tool was not started", 0)

/** Gives back the interruptibility of the region around an uninterruptible one. */
export type Restore = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** Starts `work` at once. Work that ends without waiting costs no timer. */
export const runDetachable = (work: Effect.Effect<ToolOutcome>, options: Detachable): Effect.Effect<ToolOutcome> =>
  options.deadlineMillis <= 0
    ? Effect.succeed(noTimeLeft)
    : // The mask closes the gap between starting and waiting, where an interruption would lose the fiber.
      Effect.uninterruptibleMask((restore) => startDetachable(work, options, restore))

/** `runDetachable` for a caller that is inside a mask of its own and holds something the work will give back. */
export const startDetachable = (
  work: Effect.Effect<ToolOutcome>,
  options: Detachable,
  restore: Restore
): Effect.Effect<ToolOutcome> =>
  Effect.flatMap(Effect.forkIn(work, options.owner, { startImmediately: true }), (fiber) => {
    const exit = fiber.pollUnsafe()
    return exit === undefined ? waitFor(fiber, options, restore) : settled(exit, options.contract)
  })

const waitFor = (
  fiber: Fiber.Fiber<ToolOutcome>,
  options: Detachable,
  restore: Restore
): Effect.Effect<ToolOutcome> => {
  const { contract, deadlineMillis } = options
  const wait = Number.isFinite(deadlineMillis)
    ? Effect.timeoutOption(Fiber.await(fiber), deadlineMillis)
    : Effect.map(Fiber.await(fiber), Option.some)
  return restore(wait).pipe(
    Effect.onInterrupt(() => detach(fiber, options)),
    Effect.flatMap((ended) => {
      if (Option.isSome(ended)) return settled(ended.value, contract)
      const reason = `no answer within ${deadlineMillis} ms`
      return Effect.as(detach(fiber, options), failed("timed_out", unseenEffect(contract), reason, deadlineMillis))
    })
  )
}

/** A defect stays one; work that was interrupted from outside (its owner closed) is a cancelled call. */
const settled = (exit: Exit.Exit<ToolOutcome>, contract: Contract): Effect.Effect<ToolOutcome> => {
  if (exit._tag === "Success") return Effect.succeed(exit.value)
  return Cause.hasInterruptsOnly(exit.cause)
    ? Effect.succeed(failed("cancelled", unseenEffect(contract), "the tools were shut down", 0))
    : Effect.failCause(exit.cause)
}

const detach = (fiber: Fiber.Fiber<ToolOutcome>, options: Detachable): Effect.Effect<void> => {
  const { contract, detached, graceMillis, late, owner } = options
  detached?.began()
  const end = contract.terminable
    ? Effect.flatMap(Effect.timeoutOption(Fiber.await(fiber), graceMillis), (ended) =>
        Option.isSome(ended) ? Effect.succeed(ended.value) : Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber))
      )
    : Fiber.await(fiber)
  const tell = Effect.map(end, (exit) => {
    if (exit._tag === "Success") late?.(exit.value)
    detached?.ended()
  })
  return Effect.asVoid(Effect.forkIn(tell, owner, { startImmediately: true }))
}
