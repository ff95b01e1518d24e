/**
 * Executes statements of tools inside the transaction of a PostgreSQL ledger, in a savepoint of their own: what is refused
 * takes nothing else with it. Which statements there are is decided by their first words; whether they touched the ledger's
 * tables after all, by way of a trigger or a function, is told by the locks they left.
 */
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { StagedStatement } from "../tools/ToolCall.ts"
import * as Server from "./EffectLedgerPostgresServer.ts"
import { checkRows, checkText, type Refused, reasonFor, refused } from "./EffectLedgerStaged.ts"

/** What a statement may begin with: work on rows, and on what rows lie in. */
const verbs =
  /^\s*(?:insert|update|delete|merge|with|select|values|truncate|(?:create|alter|drop)\s+(?:unique\s+)?(?:table|index|view|sequence))\b/i

/** The ledger's own names, the server's own, and spellings that would hide them. */
const reserved = /\b(?:writ_|pg_|set_config\b|dblink|lo_)\w*|\bu&/i

/** Functions that execute a text as a query, or read a table whose name is a value: no name in it can be seen here. */
const hiding =
  /\b(?:(?:query|table|cursor|schema|database)_to_xml\w*|ts_stat|ts_rewrite|crosstab\w*|connectby|xpath_table)\b/i

const changesTables = /^\s*(?:create|alter|drop)\b/i

/** Two programs that make the same table at once: the second finds the first one's. Lasts until the transaction ends. */
const schemaLock = 0x5752_4954_0002n

/** The ledger locks the rows it reads, and writes none before this: any other lock, a reader's too, was taken by a staged statement. */
const touched = `select 1 where to_regclass('writ_effects') is null or to_regclass('writ_ledger') is null or exists (
  select from pg_locks where pid = pg_backend_pid() and locktype = 'relation'
    and database = (select oid from pg_database where datname = current_database())
    and relation in (to_regclass('writ_effects'), to_regclass('writ_ledger'))
    and mode <> 'RowShareLock')`

const check = (statement: StagedStatement): void => {
  const { sql } = statement
  checkText(statement)
  if (!verbs.test(sql))
    throw refused("it may begin with insert, update, delete, merge, select, with, or create table, and no comment")
  const name = (reserved.exec(sql) ?? hiding.exec(sql))?.[0]
  if (name !== undefined) throw refused(`it may not use ${name}: the name is reserved`)
}

const attempt = (run: () => void): Effect.Effect<void, Refused> =>
  Effect.try({ try: run, catch: (error) => error as Refused })

const execute = Effect.fnUntraced(function* (connection: PgConnection, statement: StagedStatement) {
  yield* attempt(() => check(statement))
  if (changesTables.test(statement.sql)) yield* connection.query("select pg_advisory_xact_lock($1)", [schemaLock])
  const { rowCount } = yield* connection.query(statement.sql, statement.parameters, false)
  yield* attempt(() => checkRows(statement, rowCount))
})

/** Is the server or the connection to blame, so that the whole transaction has to be done again? */
const isOurs = (error: SqlError): boolean =>
  Server.isLost(error) || ["DeadlockError", "SerializationError"].includes(error.reason._tag)

const saidBy = ({ message, reason }: SqlError): string =>
  reason.cause instanceof Error && reason.cause.message !== "" ? reason.cause.message : message

/** Everything in order, inside the savepoint. Fails with the reason, or with what the whole transaction fails of. */
const executeAll = Effect.fnUntraced(function* (
  connection: PgConnection,
  staged: ReadonlyArray<StagedStatement>,
  limitMillis: number
) {
  const until = (yield* Clock.currentTimeMillis) + limitMillis
  const blamed = <A>(at: number, effect: Effect.Effect<A, SqlError | Refused>) =>
    Effect.mapError(effect, (error) => {
      if (isSqlError(error)) return isOurs(error) ? error : refused(reasonFor(at, staged, saidBy(error)))
      return refused(reasonFor(at, staged, error.message))
    })
  for (const [at, statement] of staged.entries()) {
    yield* blamed(at, execute(connection, statement))
    const late = (yield* Clock.currentTimeMillis) > until
    if (late) return yield* blamed(at, Effect.fail(refused(`all took longer than ${limitMillis} ms`)))
  }
  const last = staged.length - 1
  yield* blamed(last, connection.query("set constraints all immediate"))
  // The next call's statements may again be in any order.
  yield* connection.query("set constraints all deferred")
  const { rows } = yield* connection.query(touched)
  if (rows.length > 0) return yield* blamed(last, Effect.fail(refused("tables of the ledger were touched")))
  return undefined
})

/**
 * Executes all of them, or leaves nothing and says why. Has to come before the ledger writes anything itself. Statements
 * that wait for others, or take long, are given up after `limitMillis`.
 */
export const run = (
  connection: PgConnection,
  staged: ReadonlyArray<StagedStatement>,
  limitMillis: number
): Effect.Effect<string | undefined, SqlError> =>
  Effect.gen(function* () {
    yield* connection.query("select set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true)", [
      String(limitMillis)
    ])
    yield* connection.query("savepoint staged")
    const tried = yield* Effect.result(executeAll(connection, staged, limitMillis))
    if (tried._tag === "Success") {
      yield* connection.query("release staged")
      return undefined
    }
    if (isSqlError(tried.failure)) return yield* Effect.fail(tried.failure)
    yield* connection.query("rollback to staged")
    yield* connection.query("release staged")
    return tried.failure.message
  })
