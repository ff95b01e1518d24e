/**
 * The effect ledger in an SQLite file that several processes may share. Whatever is asked for while a transaction runs goes
 * into the next one, so many calls share one fsync. `node:sqlite` is synchronous: the thread stands still for each
 * transaction (one fsync, at most 256 commands); waiting for a lock or for another owner does not block it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { EffectLedger, type LedgerTiming, make } from "./EffectLedger.ts"
import { makeSubmit, operationOf } from "./EffectLedgerBatch.ts"
import { LedgerError } from "./EffectLedgerError.ts"
import { faultOf, openFile } from "./EffectLedgerFile.ts"
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
  /** Make the file if there is none. Default true; where not, an absent ledger fails as `missing`. */
  readonly create?: boolean
}

const retryMillis = 5

/** How long closing waits for a locked file to give the lease up. */
const releaseMillis = 2_000

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

const acquire = Effect.fnUntraced(function* (options: SqliteOptions) {
  const { busyMillis = 10_000, create = true, leaseMillis = 30_000, maxBytes, path } = options
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
    patiently(busyMillis)(
      attempt("open", path, () => openFile(sqlite, { path, owner, leaseMillis, maxBytes, create }))
    ),
    (file) => {
      // A lease that cannot be given up runs out; whoever closes does not wait for that.
      const release = patiently(Math.min(busyMillis, releaseMillis))(attempt("open", path, file.release))
      const close = attempt("open", path, file.close)
      return Effect.andThen(Effect.ignore(release, { log: "Warn" }), Effect.ignore(close, { log: "Warn" }))
    }
  )
  const retried = patiently(busyMillis)
  const submit = yield* makeSubmit(
    (commands) => retried(attempt(operationOf(commands[0]!), path, (now) => file.transact(commands, now))),
    path
  )
  yield* Effect.sleep(leaseMillis / 4).pipe(
    Effect.andThen(attempt("open", path, (now) => file.renew(now))),
    // The next renewal tries again, and three in a row may fail.
    Effect.ignore({ log: "Debug" }),
    Effect.forever,
    Effect.forkScoped
  )
  return make(
    {
      me: owner.id,
      transactional: file.transactional,
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
