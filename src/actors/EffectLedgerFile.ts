/**
 * The ledger as an SQLite file: tables, transactions, leases, and what SQLite's errors mean. Everything here is synchronous
 * and blocks the thread for its time, a transaction for that of one fsync. When to call it is `EffectLedgerSqlite`'s
 * business.
 */

import { closeSync, openSync } from "node:fs"
import { dirname } from "node:path"
import type * as Sqlite from "node:sqlite"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { look, makeDirectory, syncDirectory } from "./Directories.ts"
import { inOrder } from "./EffectLedger.ts"
import { type Command, commandKey, decide, LedgerEntry, type Stance } from "./EffectLedgerEntry.ts"
import { LedgerError } from "./EffectLedgerError.ts"
import { brokenAtCommit, makeStaging, type Staging, TookAll } from "./EffectLedgerFileStaged.ts"
import { lives, type Owner } from "./EffectLedgerOwner.ts"
import { insteadOf } from "./EffectLedgerStaged.ts"

/** An open ledger file. `transactional` is that of the service. Every function throws what SQLite throws; `faultOf` says what that means. */
export interface LedgerFile {
  /** All commands in one transaction, on disk when it returns. Throws: none of them happened. */
  readonly transactional: true | string
  readonly transact: (
    commands: ReadonlyArray<Command>,
    now: number
  ) => ReadonlyArray<Result.Result<Stance, LedgerError>>
  /** Renews this owner's lease if it has anything unsettled. */
  readonly renew: (now: number) => void
  readonly alive: (owner: string, now: number) => boolean
  readonly entry: (key: string) => LedgerEntry | undefined
  readonly entries: (runId: string | undefined) => ReadonlyArray<LedgerEntry>
  /** Gives up the lease, so that what this owner left unsettled is unknown at once. */
  readonly release: () => void
  readonly close: () => void
}

export interface FileOptions {
  readonly path: string
  readonly owner: Owner
  readonly leaseMillis: number
  /** The file grows no further than this; then intents and outcomes are refused as on a full disk. */
  readonly maxBytes: number | undefined
  /** Make the ledger if there is none. */
  readonly create: boolean
}

/** How long one attempt to lock the file may block the thread. Longer waits are made of several attempts. */
const lockMillis = 20

const applicationId = 0x57524954
const version = 1
const pageBytes = 4096

/** Entries in order of arrival, so that calls made together lie together: a transaction is as long as the pages it touches. */
const tables = `
create table entries (id integer primary key, key text not null unique, run_id text not null, body text not null) strict;
create index entries_by_run on entries (run_id);
create table owners (
  id text primary key, place text not null, pid integer not null, started text not null, beat_at real not null
) strict, without rowid;
pragma application_id = ${applicationId};
pragma user_version = ${version};
`

/** Found out here, not by SQLite. */
class Unusable extends Error {
  readonly reason: "corrupt" | "version" | "unavailable" | "missing"
  constructor(reason: Unusable["reason"], message: string) {
    super(message)
    this.reason = reason
  }
}

const pragma = (db: Sqlite.DatabaseSync, name: string): unknown =>
  Object.values(db.prepare(`pragma ${name}`).get() ?? {})[0]

/** Creates a file only its owner can read, and makes its name durable: SQLite only does that for the files beside it. */
const create = (path: string): void => {
  makeDirectory(dirname(path))
  try {
    // Never opened again like this: closing a second descriptor would drop the locks SQLite holds through the first.
    closeSync(openSync(path, "wx", 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return
    throw error
  }
  syncDirectory(dirname(path))
}

/** Runs `body` in a transaction: all of it is on disk afterwards, or it throws and none of it happened. */
const makeTransaction = (db: Sqlite.DatabaseSync) => {
  const begin = db.prepare("begin immediate")
  const commit = db.prepare("commit")
  return <A>(body: () => A): A => {
    begin.run()
    try {
      const result = body()
      commit.run()
      return result
    } catch (error) {
      if (db.isTransaction) db.exec("rollback")
      throw error
    }
  }
}

/** Checks that the file is a sound ledger of this version, or makes an empty one into that. */
const prepare = (db: Sqlite.DatabaseSync, { create, maxBytes }: FileOptions): void => {
  if (!create && pragma(db, "user_version") === 0) throw new Unusable("corrupt", "it is not a ledger")
  if (pragma(db, "application_id") !== applicationId && db.prepare("select 1 from sqlite_schema").get() !== undefined) {
    throw new Unusable("corrupt", "it is a database of another program")
  }
  if (pragma(db, "journal_mode = wal") !== "wal")
    throw new Unusable("unavailable", "its file system cannot share memory between processes")
  db.exec("pragma synchronous = full")
  if (maxBytes !== undefined) db.exec(`pragma max_page_count = ${Math.max(1, Math.floor(maxBytes / pageBytes))}`)
  makeTransaction(db)(() => {
    if (pragma(db, "user_version") === 0) db.exec(tables)
  })
  const found = pragma(db, "user_version")
  if (found !== version) throw new Unusable("version", `it has format ${found}, this program knows format ${version}`)
  const verdict = pragma(db, "quick_check(1)")
  if (verdict !== "ok") throw new Unusable("corrupt", String(verdict))
}

const decodeEntry = Schema.decodeUnknownResult(Schema.fromJsonString(LedgerEntry))

const toEntry = (row: Record<string, unknown> | undefined): LedgerEntry | undefined => {
  if (row === undefined) return undefined
  const entry = decodeEntry(row["body"])
  if (Result.isFailure(entry)) throw new Unusable("corrupt", `the entry ${row["key"]} cannot be read`)
  return entry.success
}

/** Statements on owners. An owner without a row has closed its ledger or never wrote. */
const makeLeases = (db: Sqlite.DatabaseSync, { leaseMillis, owner }: FileOptions) => {
  const select = db.prepare("select * from owners where id = ?")
  const upsert = db.prepare(
    "insert into owners values (?, ?, ?, ?, ?) on conflict (id) do update set beat_at = excluded.beat_at"
  )
  const remove = db.prepare("delete from owners where id = ?")
  const living = (row: Record<string, unknown>, now: number): boolean => {
    const { beat_at, id, pid, place, started } = row as unknown as Owner & { readonly beat_at: number }
    return lives(owner, { id, pid, place, started }, now - beat_at, leaseMillis)
  }
  return {
    renew: (now: number): void => {
      upsert.run(owner.id, owner.place, owner.pid, owner.started, now)
    },
    alive: (id: string, now: number): boolean => {
      if (id === owner.id) return true
      const row = select.get(id)
      return row !== undefined && living(row, now)
    },
    drop: (): void => {
      remove.run(owner.id)
    }
  }
}

interface Written {
  readonly body: string
  readonly entry: LedgerEntry
}

interface Applied {
  readonly reply: Result.Result<Stance, LedgerError>
  readonly written: Written | undefined
}

/** Statements on entries, and the one way a command changes them. */
const makeEntries = (
  db: Sqlite.DatabaseSync,
  me: string,
  alive: (owner: string, now: number) => boolean,
  staging: Staging | undefined
) => {
  const select = db.prepare("select key, body from entries where key = ?")
  const selectAll = db.prepare("select key, body from entries")
  const selectRun = db.prepare("select key, body from entries where run_id = ?")
  const insert = db.prepare("insert into entries (key, run_id, body) values (?, ?, ?)")
  const update = db.prepare("update entries set run_id = ?, body = ? where key = ?")
  return {
    /**
     * `known` is an entry whose text may still be the stored one: then it is not decoded again. `refused` says why its staged
     * statements are not to be executed.
     */
    apply: (command: Command, now: number, known: Written | undefined, refused: string | undefined): Applied => {
      const key = commandKey(command)
      const row = select.get(key)
      const entry = row !== undefined && row["body"] === known?.body ? known!.entry : toEntry(row)
      const present = { now, me, alive: (owner: string) => alive(owner, now) }
      const decision = decide(command, entry, present)
      const staged = decision.put !== undefined && command._tag === "Settle" ? command.staged : undefined
      const why = staged === undefined ? undefined : (refused ?? staging?.run(staged))
      const kept = why === undefined || command._tag !== "Settle" ? decision : insteadOf(command, why, entry, present)
      const { put, reply } = kept
      if (put === undefined) return { reply, written: undefined }
      const body = JSON.stringify(put)
      if (entry === undefined) insert.run(key, put.runId, body)
      else update.run(put.runId, body, key)
      return { reply, written: { body, entry: put } }
    },
    get: (key: string) => toEntry(select.get(key)),
    list: (runId: string | undefined) =>
      inOrder((runId === undefined ? selectAll.all() : selectRun.all(runId)).map((row) => toEntry(row)!))
  }
}

/** Those of the commands that have statements of a tool with them. */
const withStaged = (commands: ReadonlyArray<Command>): ReadonlyArray<Command> =>
  commands.filter((command) => command._tag === "Settle" && command.staged !== undefined)

/**
 * Applies commands in one transaction. Where staged statements end the whole of it, or keep it from being committed, it is
 * done again without them.
 */
const makeBatch = (db: Sqlite.DatabaseSync) => {
  const transaction = makeTransaction(db)
  return (
    commands: ReadonlyArray<Command>,
    first: () => void,
    apply: (command: Command, refused: string | undefined) => Applied
  ): ReadonlyArray<Applied> => {
    const refused = new Map<Command, string>()
    for (;;) {
      let current: Command | undefined
      try {
        return transaction(() => {
          first()
          return commands.map((command) => {
            current = command
            return apply(command, refused.get(command))
          })
        })
      } catch (error) {
        if (error instanceof TookAll) {
          refused.set(current!, error.message)
          continue
        }
        // Where it could be one of several, whoever called tries them one by one.
        const [only, ...others] = withStaged(commands)
        const reason = brokenAtCommit(error)
        if (reason === undefined || only === undefined || others.length > 0 || refused.has(only)) throw error
        refused.set(only, reason)
      }
    }
  }
}

const oldNode =
  "this Node cannot look into the statements of tools: use Node 24.10 or later, or a ledger on PostgreSQL (--ledger)"

const fromDatabase = (db: Sqlite.DatabaseSync, codes: typeof Sqlite.constants, options: FileOptions): LedgerFile => {
  prepare(db, options)
  const batch = makeBatch(db)
  const leases = makeLeases(db, options)
  const staging = makeStaging(db, codes)
  const entries = makeEntries(db, options.owner.id, leases.alive, staging)
  /** What this owner began and has not settled, as it was written. */
  const unsettled = new Map<string, Written>()
  let renewed = Number.NEGATIVE_INFINITY

  /** After the commit: a transaction that failed leaves no trace here either. */
  const remember = (command: Command, { reply, written }: Applied): void => {
    if (Result.isFailure(reply)) return
    const key = commandKey(command)
    if (reply.success._tag === "New") unsettled.set(key, written!)
    if (command._tag === "Settle") unsettled.delete(key)
  }

  return {
    transactional: staging === undefined ? oldNode : true,
    transact: (commands, now) => {
      // An intent without a lease would count as abandoned, so the lease goes with it.
      const renew = now - renewed > options.leaseMillis / 4 && commands.some(({ _tag }) => _tag === "Begin")
      const applied = batch(
        commands,
        () => {
          if (renew) leases.renew(now)
        },
        (command, refused) => entries.apply(command, now, unsettled.get(commandKey(command)), refused)
      )
      if (renew) renewed = now
      for (const [at, command] of commands.entries()) remember(command, applied[at]!)
      return applied.map(({ reply }) => reply)
    },
    renew: (now) => {
      if (unsettled.size === 0) return
      leases.renew(now)
      renewed = now
    },
    alive: leases.alive,
    entry: entries.get,
    entries: entries.list,
    release: leases.drop,
    close: () => db.close()
  }
}

/** Opens the ledger at `options.path`, which is created if need be. Throws what `faultOf` explains. */
export const openFile = (sqlite: typeof Sqlite, options: FileOptions): LedgerFile => {
  if (options.create) create(options.path)
  else if (look(options.path)._tag === "Nothing") throw new Unusable("missing", "")
  const db = new sqlite.DatabaseSync(options.path, { timeout: lockMillis })
  try {
    return fromDatabase(db, sqlite.constants, options)
  } catch (error) {
    db.close()
    throw error
  }
}

/** What an error of this file means, and what to do about it. Anything that is not the file's trouble stays a defect. */
export const faultOf =
  (operation: LedgerError["operation"], path: string) =>
  (cause: unknown): LedgerError => {
    const { code, errcode } = cause as { readonly code?: string; readonly errcode?: number }
    const said = cause instanceof Error ? cause.message : String(cause)
    const fault = (reason: LedgerError["reason"], message: string) =>
      new LedgerError({ operation, reason, message: `the effect ledger ${path} ${message}`, cause })
    const damaged = `is damaged or no ledger: ${said}. Nothing was done. Move it aside together with ${path}-wal and ${path}-shm, and start with a new one; before an earlier run is repeated, check by hand what it has done already`
    const unusable = `could not be used: ${said}. Check that its directory exists, is on a disk of this machine, and can be written to`
    if (cause instanceof Unusable) {
      if (cause.reason === "corrupt") return fault("corrupt", damaged)
      if (cause.reason === "unavailable") return fault("unavailable", unusable)
      if (cause.reason === "missing") return fault("missing", "does not exist: no run has used it yet")
      return fault("version", `cannot be used: ${said}. Use a newer program, or another file`)
    }
    if (code === undefined) throw cause
    switch (errcode === undefined ? code : errcode & 0xff) {
      case 5: // SQLITE_BUSY
      case 6: // SQLITE_LOCKED
        return fault("busy", "stayed locked by another process. Find out which one has it open, or try again")
      case 11: // SQLITE_CORRUPT
      case 26: // SQLITE_NOTADB
        return fault("corrupt", damaged)
      case 13: // SQLITE_FULL
      case "ENOSPC":
        return fault("full", "has no room to grow: nothing was recorded. Free some disk space, then try again")
      default:
        return fault("unavailable", unusable)
    }
  }
