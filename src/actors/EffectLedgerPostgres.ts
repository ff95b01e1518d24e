/**
 * The effect ledger on a PostgreSQL server, for programs on several machines. What is asked for together shares a
 * transaction. An owner lives as long as the connection that holds its lock: the server decides, and no clocks are compared.
 * An answer that was lost on its way is looked up by the transaction's number; where that cannot be done nobody knows, and
 * that is an error, never success. Needs a server of version 13 or later, reached without a pool that shares sessions.
 */
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { EffectLedger, type LedgerTiming, make } from "./EffectLedger.ts"
import { shownPlace } from "./EffectLedgerAddress.ts"
import { makeSubmit, operationOf, type Transact } from "./EffectLedgerBatch.ts"
import type { Command, LedgerEntry, SettledOutcome } from "./EffectLedgerEntry.ts"
import type { LedgerError } from "./EffectLedgerError.ts"
import { newOwner } from "./EffectLedgerOwner.ts"
import * as Server from "./EffectLedgerPostgresServer.ts"
import * as Tables from "./EffectLedgerPostgresTables.ts"

export interface PostgresOptions extends LedgerTiming {
  /** `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Messages show it without the password. */
  readonly url: string
  /** How long a lock, a lost connection or a silent server is waited for before an operation fails. Default 10 s. */
  readonly patienceMillis?: number
  /** How often an owner without anything to say looks after its connection. Default 5 s. */
  readonly heartbeatMillis?: number
  /** Make the tables if there are none. Default true; where not, an absent ledger fails as `missing`. */
  readonly create?: boolean
}

const retryMillis = 50

/** The caller of a `begin` that failed did not act: so says the service. Whoever resumes may try anew. */
const neverBegan: SettledOutcome = {
  ok: false,
  answer:
    '{"ok":false,"kind":"not_executed","errors":[{"path":"","reason":"the effect ledger could not be reached; nothing was executed"}]}',
  kind: "not_executed",
  effect: "none",
  state: "failed"
}

/** Attempts that may be on the record although their caller was told that `begin` failed; by key, with their time. */
type Forsaken = Map<string, number>

/** Closes such an attempt: it is nobody's. */
const amendWith =
  (forsaken: Forsaken, me: string, now: number) =>
  (entry: LedgerEntry): LedgerEntry => {
    const last = entry.attempts[entry.attempts.length - 1]!
    if (last.owner !== me || last.settled !== undefined || forsaken.get(entry.key) !== last.at) return entry
    return {
      ...entry,
      attempts: [...entry.attempts.slice(0, -1), { ...last, settled: { at: now, outcome: neverBegan } }]
    }
  }

type Tried = SqlError | LedgerError

interface Session {
  readonly me: string
  readonly place: string
  readonly patienceMillis: number
  readonly writer: Server.Link
  readonly forsaken: Forsaken
}

/** One try. `Lost`: the answer to the commit never came. */
type Try =
  | ({ readonly _tag: "Committed" } & Pick<Tables.Prepared, "replies">)
  | ({ readonly _tag: "Lost"; readonly error: SqlError } & Tables.Prepared)
  | { readonly _tag: "Again"; readonly error: SqlError | undefined }

const tryOnce = (session: Session, commands: ReadonlyArray<Command>, now: number): Effect.Effect<Try, Tried> => {
  const { forsaken, me, patienceMillis, place } = session
  const also = [...forsaken.keys()]
  const batch = {
    me,
    now,
    place,
    operation: operationOf(commands[0]!),
    commands,
    also,
    stagedMillis: Math.ceil(patienceMillis / 2)
  }
  let prepared: Tables.Prepared | undefined
  const run = (connection: PgConnection) =>
    Effect.gen(function* (): Effect.fn.Return<Try, Tried> {
      prepared = undefined
      const ready = yield* Tables.apply(connection, { ...batch, amend: amendWith(forsaken, me, now) })
      if (ready === undefined) return { _tag: "Again", error: undefined }
      // From here on the server may have it although nobody hears of it.
      prepared = ready
      const { command } = yield* connection.query("commit")
      prepared = undefined
      if (command === "ROLLBACK") return { _tag: "Again", error: undefined }
      for (const key of also) forsaken.delete(key)
      return { _tag: "Committed", replies: ready.replies }
    })
  return session.writer.use(run).pipe(
    Effect.catchIf(isSqlError, (error): Effect.Effect<Try, SqlError> => {
      if (prepared !== undefined && Server.isLost(error)) return Effect.succeed({ _tag: "Lost", error, ...prepared })
      const passing = Server.isPassing(error) || (Server.isLost(error) && !Server.isRefused(error))
      return passing ? Effect.succeed({ _tag: "Again", error }) : Effect.fail(error)
    })
  )
}

/** Remembers what may have been begun without anybody knowing, and fails. */
const giveUp = (session: Session, commands: ReadonlyArray<Command>, now: number, error: SqlError) => {
  for (const command of commands) if (command._tag === "Begin") session.forsaken.set(command.intent.key, now)
  const operation = operationOf(commands[0]!)
  return Effect.fail(Server.faultOf({ operation, place: session.place, known: false })(error))
}

/** Did the transaction come through? Waits until the server knows. `undefined`: it cannot say any more. */
const fateOf = Effect.fnUntraced(function* (session: Session, transaction: string, until: number) {
  for (;;) {
    const asked = yield* Effect.result(session.writer.use((connection) => Tables.fateOf(connection, transaction)))
    if (asked._tag === "Success" && asked.success !== "in progress") return asked.success ?? undefined
    if (asked._tag === "Failure" && !Server.isLost(asked.failure) && !Server.isPassing(asked.failure)) return undefined
    if ((yield* Clock.currentTimeMillis) >= until) return undefined
    yield* Effect.sleep(retryMillis)
  }
})

/** Tries until it is on the record, or is known not to be, or nobody can say. */
const makeTransact =
  (session: Session): Transact =>
  (commands) =>
    Effect.gen(function* () {
      const operation = operationOf(commands[0]!)
      const now = yield* Clock.currentTimeMillis
      const until = now + session.patienceMillis
      for (;;) {
        const tried = yield* tryOnce(session, commands, now)
        if (tried._tag === "Committed") return tried.replies
        if (tried._tag === "Lost") {
          // Without a number nothing was changed, and it can simply be done again.
          const fate = tried.transaction === undefined ? "aborted" : yield* fateOf(session, tried.transaction, until)
          if (fate === "committed") return tried.replies
          if (fate === undefined) return yield* giveUp(session, commands, now, tried.error)
        }
        if ((yield* Clock.currentTimeMillis) >= until && tried.error !== undefined) {
          return yield* Server.faultOf({ operation, place: session.place, known: true })(tried.error)
        }
        if (tried.error !== undefined) yield* Effect.sleep(retryMillis)
      }
    }).pipe(
      Effect.catchIf(isSqlError, (error) =>
        Effect.fail(Server.faultOf({ operation: operationOf(commands[0]!), place: session.place, known: true })(error))
      )
    )

/** Reads, again if the connection was lost or the server is busy. */
const makeRead =
  ({ patienceMillis, place }: Pick<Session, "place" | "patienceMillis">, reader: Server.Link) =>
  <A>(
    operation: LedgerError["operation"],
    run: (connection: PgConnection) => Effect.Effect<A, Tried>
  ): Effect.Effect<A, LedgerError> =>
    Effect.gen(function* () {
      const until = (yield* Clock.currentTimeMillis) + patienceMillis
      for (;;) {
        const result = yield* Effect.result(reader.use(run))
        if (result._tag === "Success") return result.success
        const error = result.failure
        if (!isSqlError(error)) return yield* error
        const passing = Server.isPassing(error) || (Server.isLost(error) && !Server.isRefused(error))
        if (!passing || (yield* Clock.currentTimeMillis) >= until) {
          return yield* Server.faultOf({ operation, place, known: true })(error)
        }
        yield* Effect.sleep(retryMillis)
      }
    })

const acquire = Effect.fnUntraced(function* (
  options: PostgresOptions
): Effect.fn.Return<EffectLedger["Service"], LedgerError, Scope.Scope> {
  const { create = true, heartbeatMillis = 5_000, patienceMillis = 10_000, pollMillis = 50, url } = options
  const driver = yield* Server.driver
  const place = shownPlace(url)
  const me = newOwner().id
  const open = driver.make(Server.settingsOf(url, patienceMillis))
  const reader = yield* Server.makeLink(open, 2 * patienceMillis)
  const writer = yield* Server.makeLink(
    Effect.tap(open, (connection) => Tables.takeLock(connection, me)),
    2 * patienceMillis
  )
  const session: Session = { me, place, patienceMillis, writer, forsaken: new Map() }
  // Once, without patience: a wrong address is told at once.
  yield* reader
    .use((connection) => Tables.prepare(connection, place, create))
    .pipe(
      Effect.catchIf(isSqlError, (error) =>
        Effect.fail(Server.faultOf({ operation: "open", place, known: true })(error))
      )
    )
  const read = makeRead(session, reader)
  const submit = yield* makeSubmit(makeTransact(session), place)
  yield* Effect.sleep(heartbeatMillis).pipe(
    Effect.andThen(writer.use((connection) => connection.query("select 1"))),
    // The next one tries again, and so does whoever needs it.
    Effect.ignore({ log: "Debug" }),
    Effect.forever,
    Effect.forkScoped
  )
  return make(
    {
      me,
      transactional: true,
      submit,
      alive: (owner) =>
        owner === me
          ? Effect.succeed(true)
          : read("get", (connection) => Effect.map(Tables.living(connection, [owner]), (alive) => alive.has(owner))),
      entry: (key) => read("get", (connection) => Tables.entry(connection, key, place)),
      entries: (runId) => read("list", (connection) => Tables.entries(connection, runId, place))
    },
    { ...options, pollMillis }
  )
})

/** The ledger at `options.url`. Fails where the server cannot be reached, refuses, or holds something else. */
export const layerPostgres = (options: PostgresOptions): Layer.Layer<EffectLedger, LedgerError> =>
  Layer.effect(EffectLedger, acquire(options))
