/**
 * How the ledger talks to a PostgreSQL server: one connection at a time, opened again when it is lost; whether an error says
 * that the connection is gone or that a statement was refused; and what that means in words. Knows nothing of entries.
 */
import { userInfo } from "node:os"
import type { Config, PgConnection } from "@effect/sql-pg/PgConnection"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { ConnectionError, isSqlError, SqlError } from "effect/sql/SqlError"
import { LedgerError } from "./EffectLedgerError.ts"

/** What this file needs of the package: loaded only where a ledger is on a server. */
export type Driver = typeof import("@effect/sql-pg/PgConnection")

const missing = "ERR_MODULE_NOT_FOUND"

/** The package, or in words that it is not there. */
export const driver: Effect.Effect<Driver, LedgerError> = Effect.tryPromise({
  try: () => import("@effect/sql-pg/PgConnection"),
  catch: (cause) => {
    const gone = (cause as { readonly code?: string }).code === missing
    const message = gone
      ? "an effect ledger on PostgreSQL needs the package @effect/sql-pg, which is not installed: npm install @effect/sql-pg@4.0.5"
      : `the package @effect/sql-pg cannot be loaded: ${cause instanceof Error ? cause.message : String(cause)}`
    return new LedgerError({ operation: "open", reason: "unavailable", message, cause })
  }
})

/** SQLSTATE and severity, where the server itself said what is wrong. */
const saidBy = (error: SqlError): { readonly code?: string; readonly severity?: string } =>
  (error.reason.cause ?? {}) as { readonly code?: string; readonly severity?: string }

const sqlState = /^[0-9A-Z]{5}$/

const stateOf = (error: SqlError): string | undefined => {
  const { code } = saidBy(error)
  return code !== undefined && sqlState.test(code) ? code : undefined
}

/** Is the connection gone, so that nothing is known of what was asked for last? A statement that was refused is known. */
export const isLost = (error: SqlError): boolean => {
  const { severity } = saidBy(error)
  return stateOf(error) === undefined || severity === "FATAL" || severity === "PANIC"
}

/** May the same transaction come through in a moment? */
export const isPassing = (error: SqlError): boolean =>
  ["DeadlockError", "SerializationError", "LockTimeoutError", "StatementTimeoutError"].includes(error.reason._tag) ||
  ["53300", "57P03"].includes(stateOf(error) ?? "")

/** Refused before there was a connection, for a reason that waiting does not change. */
export const isRefused = (error: SqlError): boolean => {
  const state = stateOf(error) ?? ""
  return state.startsWith("28") || state === "3D000" || error.reason._tag === "AuthenticationError"
}

/** `known`: nothing was recorded, for certain. */
export interface Fault {
  readonly operation: LedgerError["operation"]
  readonly place: string
  readonly known: boolean
}

/** What an error means for whoever asked. */
export const faultOf =
  ({ known, operation, place }: Fault) =>
  (error: SqlError): LedgerError => {
    const cause = error.reason.cause
    const said = cause instanceof Error && cause.message !== "" ? cause.message : error.message
    const fault = (reason: LedgerError["reason"], message: string) =>
      new LedgerError({ operation, reason, message: `the effect ledger ${place} ${message}`, cause: error })
    const nothing = operation === "get" || operation === "list" || operation === "open" ? "" : "; nothing was recorded"
    if (!known) {
      return fault(
        "unreachable",
        `was lost while something was recorded (${said}): nobody knows whether it was. Bring the server back and look with writ ledger`
      )
    }
    if (isRefused(error)) return fault("unavailable", `refuses the connection: ${said}`)
    if (isPassing(error)) {
      return fault("busy", `stayed locked or busy (${said})${nothing}. Find out who holds it, or try again`)
    }
    if (stateOf(error) === "53100")
      return fault("full", `has no room to grow (${said})${nothing}. Free some disk space`)
    if (stateOf(error) === "25006") {
      return fault("unavailable", `is read-only (${said})${nothing}. Name the primary server`)
    }
    if (isLost(error)) {
      return fault(
        "unreachable",
        `cannot be reached (${said})${nothing}. Check that the server runs and its address is right`
      )
    }
    return fault("unavailable", `refused a statement: ${said}${nothing}`)
  }

/** Did it end by a failure that leaves the connection as good as before? */
const isTidy = (cause: Cause.Cause<unknown>): boolean => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  return (
    error !== undefined && !Cause.hasDies(cause) && !Cause.hasInterrupts(cause) && !(isSqlError(error) && isLost(error))
  )
}

/** A connection that is there when it is needed. */
export interface Link {
  /**
   * One user at a time. A connection that is lost, or was left in the middle of something, is not used again; after a
   * failure that is no such loss it is, so `run` has to end what it began.
   */
  readonly use: <A, E>(
    run: (connection: PgConnection) => Effect.Effect<A, E | SqlError>
  ) => Effect.Effect<A, E | SqlError>
}

/**
 * `open` makes a connection that is ready to be used. It is made when first needed and closed with the scope. A server that
 * says nothing for `limitMillis` counts as lost.
 */
export const makeLink = Effect.fnUntraced(function* (
  open: Effect.Effect<PgConnection, SqlError, Scope.Scope>,
  limitMillis: number
): Effect.fn.Return<Link, never, Scope.Scope> {
  // Made here, so that it closes after whatever is made later and still needs a connection at its end.
  const parent = yield* Effect.flatMap(Effect.scope, (scope) => Scope.fork(scope))
  const one = yield* Semaphore.make(1)
  let current: { readonly connection: PgConnection; readonly scope: Scope.Closeable } | undefined

  const drop = Effect.suspend(() => {
    const old = current
    current = undefined
    return old === undefined ? Effect.void : Scope.close(old.scope, Exit.void)
  })

  const connected = Effect.suspend(() => {
    if (current !== undefined) return Effect.succeed(current.connection)
    return Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const scope = yield* Scope.fork(parent)
        const connection = yield* restore(Scope.provide(open, scope)).pipe(
          Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Scope.close(scope, exit)))
        )
        current = { connection, scope }
        return connection
      })
    )
  })

  const silent = new SqlError({
    reason: new ConnectionError({ cause: new Error(`no answer within ${limitMillis} ms`), operation: "query" })
  })
  return {
    use: (run) =>
      one.withPermit(
        Effect.flatMap(connected, run).pipe(
          Effect.timeoutOrElse({ duration: limitMillis, orElse: () => Effect.fail(silent) }),
          Effect.onExit((exit) => (Exit.isSuccess(exit) || isTidy(exit.cause) ? Effect.void : drop))
        )
      )
  }
})

const namesUser = (url: string): boolean =>
  !URL.canParse(url) || new URL(url).username !== "" || new URL(url).searchParams.has("user")

/** Settings of every connection. An answer means that it is on the server's disk. */
export const settingsOf = (url: string, patienceMillis: number): Config => ({
  url: Redacted.make(url),
  // As PostgreSQL's own programs do.
  ...(namesUser(url) ? {} : { username: userInfo().username }),
  connectTimeout: Math.min(5_000, patienceMillis),
  keepAlive: "30 seconds",
  startupParameters: {
    application_name: "writ",
    synchronous_commit: "on",
    default_transaction_isolation: "read committed",
    lock_timeout: String(patienceMillis),
    statement_timeout: String(patienceMillis),
    // A process that is stopped in the middle of a transaction must not hold up all others.
    idle_in_transaction_session_timeout: String(patienceMillis)
  }
})
