/**
 * The ledger's tables in PostgreSQL and the statements on them. Commands are applied by `decide`, entries are locked while
 * that goes on, and everything of one batch is one transaction. Retries and lost connections are `EffectLedgerPostgres`' business.
 */
import { hash } from "node:crypto"
import type { PgConnection, Result as Rows } from "@effect/sql-pg/PgConnection"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { SqlError } from "effect/sql/SqlError"
import { inOrder } from "./EffectLedger.ts"
import {
  type Command,
  commandKey,
  type Decision,
  decide,
  LedgerEntry,
  type Present,
  type Stance
} from "./EffectLedgerEntry.ts"
import { LedgerError } from "./EffectLedgerError.ts"
import * as Staged from "./EffectLedgerPostgresStaged.ts"
import { insteadOf } from "./EffectLedgerStaged.ts"

/** Bodies are text, not jsonb: an answer comes back byte for byte, and may hold what jsonb refuses. */
const tables = [
  "create table if not exists writ_effects (key text primary key, run_id text not null, body text not null)",
  "create index if not exists writ_effects_by_run on writ_effects (run_id)",
  "create table if not exists writ_ledger (format integer not null)",
  "insert into writ_ledger select 1 where not exists (select from writ_ledger)"
]

const format = 1

/** Two programs that open an empty database at once: the second finds the first one's tables. */
const creationLock = 0x5752_4954_0001n

/** The advisory lock that says that an owner lives: 64 bits of its name. */
const lockOf = (owner: string): bigint => BigInt.asIntN(64, BigInt(`0x${hash("sha256", owner).slice(0, 16)}`))

const begin = (connection: PgConnection) => connection.query("begin")

/** Ends a transaction that failed, so that the connection can go on. What it failed with is what is reported. */
const undone =
  (connection: PgConnection) =>
  <A, E>(effect: Effect.Effect<A, E | SqlError>): Effect.Effect<A, E | SqlError> =>
    Effect.tapError(effect, () => Effect.ignore(connection.query("rollback")))

const wrong = (reason: "missing" | "version" | "corrupt", place: string, message: string) =>
  new LedgerError({ operation: "open", reason, message: `the effect ledger ${place} ${message}` })

/** Makes the tables if there are none and `create` says so; refuses those of another program or a newer version. */
export const prepare = Effect.fnUntraced(function* (connection: PgConnection, place: string, create: boolean) {
  const { rows } = yield* connection.query("select to_regclass('writ_ledger') is null as absent")
  if (rows[0]?.["absent"] === true) {
    if (!create) return yield* wrong("missing", place, "does not exist: no run has used it yet")
    yield* Effect.gen(function* () {
      yield* begin(connection)
      yield* connection.query("select pg_advisory_xact_lock($1)", [creationLock])
      yield* Effect.forEach(tables, (sql) => connection.query(sql), { discard: true })
      yield* connection.query("commit")
    }).pipe(undone(connection))
  }
  const found = (yield* connection.query("select format from writ_ledger")).rows[0]?.["format"]
  if (found !== format) {
    return yield* wrong(
      "version",
      place,
      `has format ${found}, this program knows format ${format}. Use a newer program, or another database`
    )
  }
})

const decodeEntry = Schema.decodeUnknownResult(Schema.fromJsonString(LedgerEntry))

const toEntry = (
  row: Rows["rows"][number],
  operation: LedgerError["operation"],
  place: string
): Effect.Effect<LedgerEntry, LedgerError> => {
  const entry = decodeEntry(row["body"])
  if (Result.isSuccess(entry)) return Effect.succeed(entry.success)
  const message = `the effect ledger ${place} is damaged: the entry ${row["key"]} cannot be read. Nothing was done`
  return new LedgerError({ operation, reason: "corrupt", message })
}

/** The owners among these that live. A lock that can be shared is held by nobody. */
export const living = (
  connection: PgConnection,
  owners: ReadonlyArray<string>
): Effect.Effect<ReadonlySet<string>, SqlError> =>
  owners.length === 0
    ? Effect.succeed(new Set())
    : Effect.map(
        connection.query(
          "select owner from unnest($1::text[], $2::bigint[]) as asked (owner, lock) where not pg_try_advisory_xact_lock_shared(lock)",
          [owners, owners.map(lockOf)]
        ),
        ({ rows }) => new Set(rows.map((row) => String(row["owner"])))
      )

/** Everything under these keys, locked until the transaction ends. In one order everywhere, so that nobody waits in a ring. */
const lockEntries = Effect.fnUntraced(function* (
  connection: PgConnection,
  keys: ReadonlyArray<string>,
  operation: LedgerError["operation"],
  place: string
) {
  const { rows } = yield* connection.query(
    'select key, body from writ_effects where key = any($1::text[]) order by key collate "C" for update',
    [keys]
  )
  const entries = yield* Effect.forEach(rows, (row) => toEntry(row, operation, place))
  return new Map(entries.map((entry) => [entry.key, entry]))
})

const sorted = (entries: Iterable<LedgerEntry>): ReadonlyArray<LedgerEntry> =>
  [...entries].sort((a, b) => (a.key < b.key ? -1 : 1))

const columns = (entries: ReadonlyArray<LedgerEntry>) => [
  entries.map(({ key }) => key),
  entries.map(({ runId }) => runId),
  entries.map((entry) => JSON.stringify(entry))
]

/** The number of the transaction, for the case that nobody hears how it ended. */
const numbered = "returning pg_current_xact_id()::text as transaction"

/** Stores what changed. Undefined: another process made one of the new entries first, and all has to be looked at again. */
const store = Effect.fnUntraced(function* (
  connection: PgConnection,
  before: ReadonlyMap<string, LedgerEntry>,
  changed: ReadonlyMap<string, LedgerEntry>
) {
  const all = sorted(changed.values())
  const fresh = all.filter(({ key }) => !before.has(key))
  const known = all.filter(({ key }) => before.has(key))
  const written: Array<Rows["rows"][number]> = []
  if (known.length > 0) {
    const { rows } = yield* connection.query(
      `update writ_effects set run_id = new.run_id, body = new.body from unnest($1::text[], $2::text[], $3::text[]) as new (key, run_id, body)
         where writ_effects.key = new.key ${numbered}`,
      columns(known)
    )
    written.push(...rows)
  }
  if (fresh.length > 0) {
    const { rows } = yield* connection.query(
      `insert into writ_effects (key, run_id, body) select * from unnest($1::text[], $2::text[], $3::text[])
         on conflict (key) do nothing ${numbered}`,
      columns(fresh)
    )
    written.push(...rows)
  }
  return written.length === all.length ? { transaction: written[0]?.["transaction"] as string | undefined } : undefined
})

/** A batch that is ready to be committed: the answers, and the transaction's number if there is anything to commit. */
export interface Prepared {
  readonly replies: ReadonlyArray<Result.Result<Stance, LedgerError>>
  readonly transaction: string | undefined
}

export interface Batch {
  readonly me: string
  readonly now: number
  readonly place: string
  readonly operation: LedgerError["operation"]
  readonly commands: ReadonlyArray<Command>
  /** How long the statements of one tool may take. */
  readonly stagedMillis: number
  /** Entries that are changed before the commands see them. */
  readonly amend: (entry: LedgerEntry) => LedgerEntry
  /** Keys of entries to amend that no command is about. */
  readonly also: ReadonlyArray<string>
}

const openOwner = ({ attempts }: LedgerEntry): string | undefined => {
  const { owner, settled } = attempts[attempts.length - 1]!
  return settled === undefined ? owner : undefined
}

/** Calls that take long together would take the others' time: they are tried one by one. */
const slow = ({ operation, place }: Batch) =>
  new LedgerError({ operation, reason: "unavailable", message: `the effect ledger ${place} took too long` })

/** One command's decision: its staged statements are executed, or refused and the decision is another. */
const decided = Effect.fnUntraced(function* (
  connection: PgConnection,
  batch: Batch,
  command: Command,
  entry: LedgerEntry | undefined,
  present: Present
): Effect.fn.Return<Decision, SqlError | LedgerError> {
  const decision = decide(command, entry, present)
  if (command._tag !== "Settle" || command.staged === undefined || decision.put === undefined) return decision
  const passed = (yield* Clock.currentTimeMillis) - batch.now
  if (batch.commands.length > 1 && passed > 2 * batch.stagedMillis) return yield* slow(batch)
  const why = yield* Staged.run(connection, command.staged, batch.stagedMillis)
  return why === undefined ? decision : insteadOf(command, why, entry, present)
})

/** Applies a batch inside a transaction and leaves that open; undefined: rolled back, to be done again. */
export const apply = Effect.fnUntraced(
  function* (connection: PgConnection, batch: Batch) {
    const { me, now, operation, place } = batch
    yield* begin(connection)
    const keys = [...new Set([...batch.commands.map(commandKey), ...batch.also])]
    const before = yield* lockEntries(connection, keys, operation, place)
    const owners = new Set([...before.values()].flatMap((entry) => openOwner(entry) ?? []))
    owners.delete(me)
    const alive = yield* living(connection, [...owners])
    const present = { me, now, alive: (owner: string) => owner === me || alive.has(owner) }
    const current = new Map(before)
    const changed = new Map<string, LedgerEntry>()
    const put = (entry: LedgerEntry): void => {
      current.set(entry.key, entry)
      changed.set(entry.key, entry)
    }
    for (const entry of before.values()) {
      const amended = batch.amend(entry)
      if (amended !== entry) put(amended)
    }
    const replies: Array<Decision["reply"]> = []
    for (const command of batch.commands) {
      const decision = yield* decided(connection, batch, command, current.get(commandKey(command)), present)
      if (decision.put !== undefined) put(decision.put)
      replies.push(decision.reply)
    }
    const stored = yield* store(connection, before, changed)
    if (stored !== undefined) return { replies, ...stored } satisfies Prepared
    yield* connection.query("rollback")
    return undefined
  },
  (effect, connection) => undone(connection)(effect)
)

/** Did the server keep a transaction whose answer never came? `in progress` while it may still do so. */
export const fateOf = (connection: PgConnection, transaction: string) =>
  Effect.map(
    connection.query("select pg_xact_status($1::xid8) as fate", [transaction]),
    ({ rows }) => rows[0]?.["fate"] as "committed" | "aborted" | "in progress" | null
  )

export const entry = Effect.fnUntraced(function* (connection: PgConnection, key: string, place: string) {
  const { rows } = yield* connection.query("select key, body from writ_effects where key = $1", [key])
  return rows[0] === undefined ? undefined : yield* toEntry(rows[0], "get", place)
})

export const entries = Effect.fnUntraced(function* (
  connection: PgConnection,
  runId: string | undefined,
  place: string
) {
  const { rows } = yield* runId === undefined
    ? connection.query("select key, body from writ_effects")
    : connection.query("select key, body from writ_effects where run_id = $1", [runId])
  return inOrder(yield* Effect.forEach(rows, (row) => toEntry(row, "list", place)))
})

/**
 * Takes the lock that says that this owner lives. A connection of before may still hold it, with the last transaction on it
 * not ended yet: it is ended, and waited for, so that what it came to is decided.
 */
export const takeLock = Effect.fnUntraced(function* (connection: PgConnection, owner: string) {
  const lock = lockOf(owner)
  const { rows } = yield* connection.query("select pg_try_advisory_lock($1) as got", [lock])
  if (rows[0]?.["got"] === true) return
  yield* connection.query(
    `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted and objsubid = 1
       and database = (select oid from pg_database where datname = current_database())
       and ((classid::bigint << 32) | objid::bigint) = $1 and pid <> pg_backend_pid()`,
    [lock]
  )
  yield* connection.query("select pg_advisory_lock($1)", [lock])
})
