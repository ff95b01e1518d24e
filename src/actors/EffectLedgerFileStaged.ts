/**
 * Executes statements of tools inside the transaction of an SQLite ledger, in a savepoint of their own: what is refused takes
 * nothing else with it. SQLite itself is asked what each statement would do, triggers and views included; everything but
 * work on the tool's own tables is forbidden.
 */
import type * as Sqlite from "node:sqlite"
import type { StagedStatement } from "../tools/ToolCall.ts"
import { checkRows, checkText, Refused, reasonFor, refused } from "./EffectLedgerStaged.ts"

/** The ledger's own tables. */
const own = new Set(["entries", "owners"])

/** SQLite's tables that its own statements on schemas have to read and write. */
const internal = new Set(["sqlite_master", "sqlite_temp_master", "sqlite_sequence"])

const isForeign = (name: string | null): boolean => {
  const lower = (name ?? "").toLowerCase()
  return !own.has(lower) && (!lower.startsWith("sqlite_") || internal.has(lower))
}

/** The whole transaction is gone, not only the savepoint: a statement said `on conflict rollback`, say. */
export class TookAll extends Error {}

type Argument = string | null

/** Which of the four arguments of an action names the table, for the actions that are allowed. */
const tableOf = (codes: typeof Sqlite.constants): ReadonlyMap<number, (one: Argument, two: Argument) => Argument> => {
  const first = (one: Argument) => one
  const second = (_: Argument, two: Argument) => two
  return new Map([
    ...[codes.SQLITE_INSERT, codes.SQLITE_UPDATE, codes.SQLITE_DELETE, codes.SQLITE_READ].map(
      (a) => [a, first] as const
    ),
    ...[codes.SQLITE_CREATE_TABLE, codes.SQLITE_DROP_TABLE].map((a) => [a, first] as const),
    ...[codes.SQLITE_CREATE_VIEW, codes.SQLITE_DROP_VIEW].map((a) => [a, first] as const),
    ...[codes.SQLITE_CREATE_INDEX, codes.SQLITE_DROP_INDEX, codes.SQLITE_ALTER_TABLE].map((a) => [a, second] as const),
    ...[codes.SQLITE_CREATE_TRIGGER, codes.SQLITE_DROP_TRIGGER].map((a) => [a, second] as const),
    // Part of creating an index; alone it changes nothing that could be seen.
    ...[codes.SQLITE_REINDEX, codes.SQLITE_SELECT].map((a) => [a, () => null] as const)
  ])
}

/** Says of the last statement that was looked at what was forbidden, if anything was. */
const makeGuard = (db: Sqlite.DatabaseSync, codes: typeof Sqlite.constants) => {
  const allowed = tableOf(codes)
  const names = new Map(Object.entries(codes).map(([name, code]) => [code as number, name]))
  let watching = false
  let forbidden: string | undefined
  let shaped = false

  const forbid = (what: string): number => {
    forbidden ??= what
    return codes.SQLITE_DENY
  }
  const isAllowed = (action: number, one: Argument, two: Argument): number => {
    if (action === codes.SQLITE_FUNCTION) {
      return two?.toLowerCase() === "load_extension" ? forbid("load_extension") : codes.SQLITE_OK
    }
    const table = allowed.get(action)
    if (table === undefined) {
      return forbid((names.get(action) ?? "that").replace("SQLITE_", "").replaceAll("_", " ").toLowerCase())
    }
    shaped ||= action === codes.SQLITE_CREATE_TABLE || action === codes.SQLITE_ALTER_TABLE
    const name = table(one, two)
    return isForeign(name) ? codes.SQLITE_OK : forbid(`the table ${name}, which is not the tool's`)
  }
  // The ledger's own statements may be compiled again at any time, and are not asked about.
  db.setAuthorizer((action, one, two) => (watching ? isAllowed(action, one, two) : codes.SQLITE_OK))

  return {
    watch: <A>(run: () => A): A => {
      watching = true
      forbidden = undefined
      shaped = false
      try {
        return run()
      } finally {
        watching = false
      }
    },
    forbidden: () => forbidden,
    /** The last statement may have made or changed a table. */
    shaped: () => shaped
  }
}

/**
 * A foreign key is no work on the table it names, so the authorizer is not asked. But whoever writes that table has to look
 * through it, and cannot where it does not fit: the ledger could not write any more.
 */
const references = `select f."table" as name from sqlite_master m, pragma_foreign_key_list(m.name) f
  where m.type = 'table' and lower(f."table") in (${[...own].map((name) => `'${name}'`).join(", ")})`

const checkReferences = (db: Sqlite.DatabaseSync): void => {
  const name = db.prepare(references).get()?.["name"]
  if (name !== undefined) throw refused(`it may not use the table ${name}, which is not the tool's`)
}

/** Placeholders that would silently be null: only `$1`, `$2` and so on are bound. */
const otherPlaceholder = /\?|(?<![\w:])[:@][A-Za-z_]\w*/

const execute = (db: Sqlite.DatabaseSync, statement: StagedStatement): void => {
  const { parameters, sql } = statement
  checkText(statement)
  const other = otherPlaceholder.exec(sql)?.[0]
  if (other !== undefined) throw refused(`${other} is no place for a value: use $1, $2 and so on`)
  const prepared = db.prepare(sql)
  if (sql.slice(prepared.sourceSQL.length).trim() !== "") throw refused("it is more than one statement")
  const values = Object.fromEntries(
    parameters.map((value, at) => [`$${at + 1}`, typeof value === "boolean" ? Number(value) : value])
  )
  const found = prepared.columns().length > 0 ? prepared.all(values).length : Number(prepared.run(values).changes)
  checkRows(statement, found)
}

/** Codes of SQLite that blame a statement: error, locked, too big, constraint, mismatch, auth, range. */
const blaming = new Set([1, 6, 18, 19, 20, 23, 25])

const isConstraint = (errcode: number | undefined): boolean => ((errcode ?? 0) & 0xff) === 19

/** Why the statement was refused; undefined if the file is to blame, or nobody knows. */
const whyOf = (error: unknown, forbidden: string | undefined): string | undefined => {
  const { code, errcode, message } = error as { readonly code?: string; readonly errcode?: number; message: string }
  if (error instanceof Refused) return message
  if (code?.startsWith("ERR_INVALID_") === true) return message
  if (errcode === undefined || !blaming.has(errcode & 0xff)) return undefined
  return forbidden === undefined ? message : `it may not use ${forbidden}`
}

export interface Staging {
  /**
   * Executes all of them, or leaves nothing and says why. Throws `TookAll` if the transaction went with them, and what SQLite
   * throws if the file is to blame.
   */
  readonly run: (staged: ReadonlyArray<StagedStatement>) => string | undefined
}

/** `undefined` where this Node has no way to ask SQLite what a statement would do. */
export const makeStaging = (db: Sqlite.DatabaseSync, codes: typeof Sqlite.constants): Staging | undefined => {
  if (typeof db.setAuthorizer !== "function") return undefined
  let guard: ReturnType<typeof makeGuard> | undefined
  return {
    run: (staged) => {
      guard ??= makeGuard(db, codes)
      const { forbidden, shaped, watch } = guard
      db.exec("savepoint staged")
      for (const [at, statement] of staged.entries()) {
        try {
          watch(() => execute(db, statement))
          if (shaped()) checkReferences(db)
        } catch (error) {
          const why = whyOf(error, forbidden())
          if (why === undefined) throw error
          const reason = reasonFor(at, staged, why)
          if (!db.isTransaction) throw new TookAll(reason)
          db.exec("rollback to staged; release staged")
          return reason
        }
      }
      db.exec("release staged")
      return undefined
    }
  }
}

/** The reason, if a commit failed because a constraint that may wait until then does not hold. */
export const brokenAtCommit = (error: unknown): string | undefined => {
  const { errcode, message } = error as { readonly errcode?: number; readonly message: string }
  return isConstraint(errcode)
    ? `the staged statements were refused: ${message}; nothing of this call was kept`
    : undefined
}
