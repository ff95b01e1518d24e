/**
 * One call on one carrier, from its turn in the queue to the return of its slot. What carries it (a thread, a process) is
 * somebody else's; here is the order of things: turn, carrier, last look, deadline, grace, end, slot back.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { crashReason, failed, received, unseenEffect } from "../tools/Execution.ts"
import type { RegisteredTool, ValidatedArguments } from "../tools/Registry.ts"
import type { ToolOutcome } from "../tools/ToolCall.ts"
import type { ToolSettings } from "../tools/ToolContext.ts"
import type { WorkerReply, WorkerTask } from "../tools/WorkerAnswer.ts"
import { type Detached, noTimeLeft, startDetachable } from "./Detachment.ts"
import type { Claim, ToolPoolQueue } from "./ToolPoolQueue.ts"

/** One call that may run: checked, allowed, and with the time it may take (Infinity for no limit). */
export interface AdmittedCall {
  readonly callId: string
  /** The run it belongs to: runs take turns where calls have to wait. Calls without one count as one run. */
  readonly runId?: string
  readonly tool: RegisteredTool
  readonly arguments: ValidatedArguments
  readonly deadlineMillis: number
  readonly settings: ToolSettings
  /**
   * Asked when the call gets its turn after it had to wait for one: the world may have moved. An outcome here is the call's,
   * and the tool does not run.
   */
  readonly ready?: Effect.Effect<ToolOutcome | undefined>
  /** Told about work that goes on after its caller was freed: a look at the world says little until it is over. */
  readonly detached?: Detached
}

/** What can carry calls, one at a time. */
export interface Carriers<Carrier> {
  /** Is one up, so that nobody waits for it? */
  readonly atHand: () => boolean
  /** One that is up, or why there is none. Interruptible. */
  readonly acquire: Effect.Effect<Carrier, ToolOutcome>
  /** It was not used. */
  readonly release: (carrier: Carrier) => void
  /** Fails if the carrier dies. Interruption ends the carrier and returns at once. */
  readonly call: (carrier: Carrier, task: WorkerTask) => Effect.Effect<WorkerReply, unknown>
  /** It did its call; `spent`, it must not get another. */
  readonly done: (carrier: Carrier, spent: boolean) => void
  /** Succeeds when what a lost or spent carrier stood for can be used again. */
  readonly restored: (carrier: Carrier) => Effect.Effect<void>
}

export interface RunnerOptions<Carrier> {
  readonly carriers: Carriers<Carrier>
  readonly queue: ToolPoolQueue
  readonly owner: Scope.Scope
  readonly graceMillis: number
  readonly maxResultBytes: number
}

export type RunCall = (call: AdmittedCall, late?: (outcome: ToolOutcome) => void) => Effect.Effect<ToolOutcome>

export const makeRun = <Carrier>(options: RunnerOptions<Carrier>): RunCall => {
  const { carriers, graceMillis, maxResultBytes, owner, queue } = options
  const work = (call: AdmittedCall, carrier: Carrier, claim: Claim): Effect.Effect<ToolOutcome> => {
    const returned = Effect.sync(() => queue.give(claim))
    const later = Effect.suspend(() =>
      Effect.forkIn(Effect.andThen(carriers.restored(carrier), returned), owner, { startImmediately: true })
    )
    return carriers.call(carrier, taskOf(call, maxResultBytes)).pipe(
      // A carrier that is lost or spent costs its slot until there is another.
      Effect.onExit((exit) => {
        if (Exit.isFailure(exit)) return later
        const spent = exit.value.spent !== undefined
        carriers.done(carrier, spent)
        return spent ? later : returned
      }),
      Effect.map(({ outcome }) => received(outcome, call.tool.contract, maxResultBytes)),
      Effect.catch((cause) => Effect.succeed(crashed(cause, call.tool)))
    )
  }
  return (call, late) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const { deadlineMillis, tool } = call
        const claim: Claim = { run: call.runId ?? "", tool: tool.name }
        const returned = Effect.sync(() => queue.give(claim))
        const queued = yield* queue.take(claim, restore)
        const waited = queued || !carriers.atHand()
        const carrier = yield* Effect.result(Effect.onError(restore(carriers.acquire), () => returned))
        if (carrier._tag === "Failure") return carrier.failure
        const unused = Effect.sync(() => {
          carriers.release(carrier.success)
          queue.give(claim)
        })
        // The world may have moved while it waited.
        const objection =
          waited && call.ready !== undefined ? yield* Effect.onError(restore(call.ready), () => unused) : undefined
        const refusal = objection ?? (deadlineMillis <= 0 ? noTimeLeft : undefined)
        if (refusal !== undefined) return yield* Effect.as(unused, refusal)
        const { detached } = call
        const detachable = { contract: tool.contract, deadlineMillis, graceMillis, owner, late, detached }
        return yield* startDetachable(work(call, carrier.success, claim), detachable, restore)
      })
    )
}

const taskOf = ({ arguments: args, settings, tool }: AdmittedCall, maxResultBytes: number): WorkerTask => ({
  tool: tool.name,
  hash: tool.hash,
  arguments: args.raw,
  settings,
  maxResultBytes
})

/** The call was rejected: its carrier died, or the call could not be sent at all. */
const crashed = (cause: unknown, tool: RegisteredTool): ToolOutcome =>
  cause instanceof Error && cause.name === "DataCloneError"
    ? failed("not_executed", "none", "the call cannot be sent to a thread", 0)
    : failed("crashed", unseenEffect(tool.contract), crashReason(cause), 0)
