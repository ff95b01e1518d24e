/**
 * Calls that come together share a transaction: whatever is asked for while one runs goes into the next. One fiber commits,
 * everybody else waits for it. What a transaction is, is the backend's business.
 */
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { LedgerStore } from "./EffectLedger.ts"
import type { Command, Stance } from "./EffectLedgerEntry.ts"
import { LedgerError } from "./EffectLedgerError.ts"

const batchLimit = 256

interface Job {
  readonly command: Command
  readonly reply: Deferred.Deferred<Result.Result<Stance, LedgerError>, LedgerError>
}

/** Applies all commands in one transaction, durable when it returns. Fails: as far as anybody knows, none of them happened. */
export type Transact = (
  commands: ReadonlyArray<Command>
) => Effect.Effect<ReadonlyArray<Result.Result<Stance, LedgerError>>, LedgerError>

export const operationOf = (command: Command): LedgerError["operation"] => {
  switch (command._tag) {
    case "Begin":
      return command.retake ? "retake" : "begin"
    case "Settle":
      return "settle"
    case "Late":
      return "late"
    case "Resolve":
      return "resolve"
  }
}

/** The error of a batch, as the error of one of its commands. */
const errorFor = (command: Command, { cause, message, reason }: LedgerError) =>
  new LedgerError({ operation: operationOf(command), reason, message, ...(cause === undefined ? {} : { cause }) })

/** Trouble of the whole store: it is the same for every command, so trying them one by one would only take longer. */
const common = (error: LedgerError | undefined): boolean => error?.reason === "busy" || error?.reason === "unreachable"

/** Commits jobs together and answers each, whatever happens. */
const makeCommit = (transact: Transact) => {
  const commit = (jobs: ReadonlyArray<Job>): Effect.Effect<void> =>
    transact(jobs.map(({ command }) => command)).pipe(
      Effect.matchCauseEffect({
        onSuccess: (replies) =>
          Effect.sync(() => {
            for (const [at, { reply }] of jobs.entries()) Deferred.doneUnsafe(reply, Effect.succeed(replies[at]!))
          }),
        onFailure: (cause) => {
          const error = Option.getOrUndefined(Cause.findErrorOption(cause))
          // One answer too long for the room that is left, or one damaged entry, must not take the others with it.
          if (jobs.length > 1 && !common(error)) return Effect.forEach(jobs, (job) => commit([job]), { discard: true })
          return Effect.sync(() => {
            for (const { command, reply } of jobs) {
              const own = error === undefined ? Effect.failCause(cause) : Effect.fail(errorFor(command, error))
              Deferred.doneUnsafe(reply, own as Effect.Effect<never, LedgerError>)
            }
          })
        }
      })
    )
  return commit
}

/** The `submit` of a store whose name in messages is `place`. Once its scope closes, what was asked for is still done. */
export const makeSubmit = Effect.fnUntraced(function* (
  transact: Transact,
  place: string
): Effect.fn.Return<LedgerStore["submit"], never, Scope.Scope> {
  const queue = yield* Queue.unbounded<Job, Cause.Done>()
  const commit = makeCommit(transact)
  const writer = yield* Effect.gen(function* () {
    for (;;) {
      yield* Queue.peek(queue)
      // Fibers that were woken together ask again together: let them all get in line first.
      yield* Effect.yieldNow
      const jobs = yield* Queue.takeAll(queue)
      for (let at = 0; at < jobs.length; at += batchLimit) yield* commit(jobs.slice(at, at + batchLimit))
    }
  }).pipe(
    Effect.catchIf(Cause.isDone, () => Effect.void),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(queue), Fiber.await(writer)))

  return (command) =>
    Effect.suspend(() => {
      const reply: Job["reply"] = Deferred.makeUnsafe()
      if (Queue.offerUnsafe(queue, { command, reply })) return Deferred.await(reply)
      return new LedgerError({
        operation: operationOf(command),
        reason: "closed",
        message: `the effect ledger ${place} is closed; nothing was recorded`
      })
    })
})
