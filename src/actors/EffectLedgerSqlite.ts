/**
 * The effect ledger in an SQLite file that several processes may share. Whatever is asked for while a transaction runs goes
 * into the next one, so many calls share one fsync. `node:sqlite` is synchronous: the thread stands still for each
 * transaction (one fsync, at most `batchLimit` commands); waiting for a lock or for another owner does not block it.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import type * as Result from "effect/Result"
import { EffectLedger, type LedgerTiming, make } from "./EffectLedger.ts"
import type { Command, Stance } from "./EffectLedgerEntry.ts"
import { LedgerError } from "./EffectLedgerError.ts"
import { faultOf, type LedgerFile, openFile } from "./EffectLedgerFile.ts"
import { newOwner } from "./EffectLedgerOwner.ts"

export interface SqliteOptions extends LedgerTiming {
  /** The file. It, `-wal` and `-shm` lie side by side, on a disk of this machine. Holds answers: mode 0600. */
  readonly path: string
  /**
   * How long an owner on another machine, or in another container, counts as alive after it was last heard of. On the same
   * machine the process table decides. Default 30 s.
   */
  readonly leaseMillis?: number
  /** How long a locked file is retried before an operation fails as `busy`. Default 10 s. */
  readonly busyMillis?: number
  /** The most the file may hold in bytes; beyond that operations fail as `full`. Default: what the disk holds. */
  readonly maxBytes?: number
}

const batchLimit = 256
const retryMillis = 5

interface Job {
  readonly command: Command
  readonly reply: Deferred.Deferred<Result.Result<Stance, LedgerError>, LedgerError>
}

const operationOf = (command: Command): LedgerError["operation"] => {
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

const attempt = <A>(operation: LedgerError["operation"], path: string, run: (now: number) => A) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.try({ try: () => run(now), catch: faultOf(operation, path) }))

/** Tries again while the file is locked, and lets other fibers work in between. */
const patiently =
  (busyMillis: number) =>
  <A>(effect: Effect.Effect<A, LedgerError>): Effect.Effect<A, LedgerError> =>
    Effect.gen(function* () {
      const until = (yield* Clock.currentTimeMillis) + busyMillis
      for (;;) {
        const result = yield* Effect.result(effect)
        if (result._tag === "Success") return result.success
        const now = yield* Clock.currentTimeMillis
        if (result.failure.reason !== "busy" || now >= until) return yield* result.failure
        yield* Effect.sleep(retryMillis)
      }
    })

/** The error of a batch, as the error of one of its commands. */
const errorFor = (command: Command, { cause, message, reason }: LedgerError) =>
  new LedgerError({ operation: operationOf(command), reason, message, ...(cause === undefined ? {} : { cause }) })

/** Commits jobs together and answers each, whatever happens. */
const makeCommit = (file: LedgerFile, path: string, busyMillis: number) => {
  const retried = patiently(busyMillis)
  const commit = (jobs: ReadonlyArray<Job>): Effect.Effect<void> => {
    const commands = jobs.map(({ command }) => command)
    return retried(attempt(operationOf(commands[0]!), path, (now) => file.transact(commands, now))).pipe(
      Effect.matchCauseEffect({
        onSuccess: (replies) =>
          Effect.sync(() => {
            for (const [at, { reply }] of jobs.entries()) Deferred.doneUnsafe(reply, Effect.succeed(replies[at]!))
          }),
        onFailure: (cause) => {
          const error = Option.getOrUndefined(Cause.findErrorOption(cause))
          // One answer too long for the room that is left, or one damaged entry, must not take the others with it.
          if (jobs.length > 1 && error?.reason !== "busy") {
            return Effect.forEach(jobs, (job) => commit([job]), { discard: true })
          }
          return Effect.sync(() => {
            for (const { command, reply } of jobs) {
              const own = error === undefined ? Effect.failCause(cause) : Effect.fail(errorFor(command, error))
              Deferred.doneUnsafe(reply, own as Effect.Effect<never, LedgerError>)
            }
          })
        }
      })
    )
  }
  return commit
}

/** One fiber commits, everybody else waits for it. */
const makeSubmit = Effect.fnUntraced(function* (file: LedgerFile, path: string, busyMillis: number) {
  const queue = yield* Queue.unbounded<Job, Cause.Done>()
  const commit = makeCommit(file, path, busyMillis)
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

  return (command: Command) =>
    Effect.suspend(() => {
      const reply: Job["reply"] = Deferred.makeUnsafe()
      if (Queue.offerUnsafe(queue, { command, reply })) return Deferred.await(reply)
      return new LedgerError({
        operation: operationOf(command),
        reason: "closed",
        message: `the effect ledger ${path} is closed; nothing was recorded`
      })
    })
})

const acquire = Effect.fnUntraced(function* (options: SqliteOptions) {
  const { busyMillis = 10_000, leaseMillis = 30_000, maxBytes, path } = options
  const sqlite = yield* Effect.tryPromise({
    try: () => import("node:sqlite"),
    catch: (cause) =>
      new LedgerError({
        operation: "open",
        reason: "unavailable",
        message: "this Node has no SQLite: use 22.19 or later, or keep the effect ledger in memory",
        cause
      })
  })
  const owner = newOwner()
  const file = yield* Effect.acquireRelease(
    patiently(busyMillis)(attempt("open", path, () => openFile(sqlite, { path, owner, leaseMillis, maxBytes }))),
    // A lease that cannot be given up runs out.
    (file) =>
      Effect.ignore(
        attempt("open", path, () => file.close()),
        { log: "Warn" }
      )
  )
  const submit = yield* makeSubmit(file, path, busyMillis)
  yield* Effect.sleep(leaseMillis / 4).pipe(
    Effect.andThen(attempt("open", path, (now) => file.renew(now))),
    // The next renewal tries again, and three in a row may fail.
    Effect.ignore({ log: "Debug" }),
    Effect.forever,
    Effect.forkScoped
  )
  const retried = patiently(busyMillis)
  return make(
    {
      me: owner.id,
      submit,
      alive: (id) => retried(attempt("get", path, (now) => file.alive(id, now))),
      entry: (key) => retried(attempt("get", path, () => file.entry(key))),
      entries: (runId) => retried(attempt("list", path, () => file.entries(runId)))
    },
    options
  )
})

/** The ledger at `options.path`. Fails where the file cannot be opened, is damaged, or is of a newer format. */
export const layerSqlite = (options: SqliteOptions): Layer.Layer<EffectLedger, LedgerError> =>
  Layer.effect(EffectLedger, acquire(options))
