import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { intent, succeeded } from "../kit/ledger.ts"
import { directory, open } from "../kit/ledgerAt.ts"
import { type Forbidden, type Look, stagingLedger } from "../kit/ledgerStaging.ts"

const place = Effect.map(directory, (path) => join(path, "ledger.sqlite"))

const look: Look = (path, sql) =>
  Effect.sync(() => {
    const db = new DatabaseSync(path, { readOnly: true })
    const rows = db.prepare(sql).all()
    db.close()
    return rows
  })

const may = (what: RegExp | string): RegExp =>
  new RegExp(`it may not use (?:${typeof what === "string" ? what : what.source})`)
const entries = may("the table entries")

const forbidden: ReadonlyArray<Forbidden> = [
  { sql: "delete from entries", why: entries },
  { sql: "DELETE FROM main.'EnTries'", why: entries },
  { sql: "update entries set body = ''", why: entries },
  { sql: "insert into entries (key, run_id, body) values ('a', 'b', 'c')", why: entries },
  { sql: "select body from entries", why: entries },
  { sql: "insert into t (id, word) select 7, substr(body, 1, 3) from entries limit 1", why: entries },
  { sql: "delete from owners", why: may("the table owners") },
  { sql: "drop table entries", why: entries },
  { sql: "alter table entries rename to gone", why: entries },
  { sql: "alter table entries add column more text", why: entries },
  { sql: "drop index entries_by_run", why: entries },
  { sql: "create index more on entries (run_id)", why: entries },
  { sql: "create trigger more after insert on entries begin select 1; end", why: entries },
  { sql: "create temp table entries (key text)", why: may("create temp table") },
  { sql: "create temp trigger more after insert on main.entries begin select 1; end", why: may("create temp trigger") },
  { sql: "create virtual table more using fts5 (a)", why: may("create vtable") },
  { sql: "attach 'more.sqlite' as more", why: may("attach") },
  { sql: "detach main", why: may("detach") },
  { sql: "pragma synchronous = off", why: may("pragma") },
  { sql: "select * from pragma_table_info('entries')", why: may("pragma") },
  { sql: "commit", why: may("transaction") },
  { sql: "rollback", why: may("transaction") },
  { sql: "savepoint staged", why: may("savepoint") },
  { sql: "release staged", why: may("savepoint") },
  { sql: "vacuum", why: /VACUUM/ },
  { sql: "analyze", why: may("analyze|the table sqlite_stat1") },
  { sql: "update sqlite_master set sql = ''", why: /sqlite_master/ },
  { sql: "select load_extension('more')", why: may("load_extension") },
  {
    sql: "insert into t (id) with recursive c (x) as (select 50 union all select x + 1 from c) select x from c",
    why: may("recursive")
  },
  { sql: "insert into t (id) values (?)", why: /use \$1/ },
  { sql: "insert into t (id) values (:id)", why: /use \$1/ },
  { sql: "insert into t (id) values (@id)", why: /use \$1/ },
  { sql: "insert into t (id) values (5)\u0000", why: /more than one|unrecognized/ },
  { sql: "-- nothing", why: /no statements/ },
  { sql: "insert or rollback into t (id) values (1)", why: /UNIQUE/ }
]

stagingLedger("sqlite", place, look, forbidden)

const outcome = succeeded("kept")

describe("a tool's own tables in a ledger file", () => {
  it.live("may be anything it needs: indexes, views, triggers, other columns", () =>
    Effect.gen(function* () {
      const path = yield* place
      const statements = [
        "create table a (id integer primary key autoincrement, owners text)",
        "create unique index a_owners on a (owners)",
        "create table log (what text)",
        "create trigger a_log after insert on a begin insert into log values (new.owners); end",
        "insert into a (owners) values ('x'), ('y')",
        "update a set owners = 'z' where owners = 'y' returning id",
        "create view both as select owners from a union all select what from log",
        "alter table a add column more text",
        "alter table a rename column more to less",
        "alter table log rename to history",
        "delete from a where owners in (select owners from both where owners = 'x')",
        "drop view both",
        "alter table a drop column less"
      ]
      const kept = yield* open(path, (ledger) =>
        Effect.andThen(
          ledger.begin(intent(0)),
          ledger.commit(
            intent(0).key,
            outcome,
            statements.map((sql) => ({ sql, parameters: [] }))
          )
        )
      )
      assert.deepStrictEqual(kept, outcome)
      assert.deepStrictEqual(
        (yield* look(path, "select what from history")).map(({ what }) => what),
        ["x", "y"]
      )
      assert.deepStrictEqual({ ...(yield* look(path, "select * from a"))[0] }, { id: 2, owners: "z" })
    })
  )

  it.live("whose trigger or view is made to reach the ledger is stopped when it does", () =>
    Effect.gen(function* () {
      const path = yield* place
      yield* open(path, (ledger) =>
        Effect.gen(function* () {
          const commit = (n: number, ...statements: ReadonlyArray<string>) =>
            Effect.andThen(
              ledger.begin(intent(n)),
              ledger.commit(
                intent(n).key,
                outcome,
                statements.map((sql) => ({ sql, parameters: [] }))
              )
            )
          const trigger = "create trigger spy after insert on a begin delete from entries; end"
          yield* commit(0, "create table a (id integer)", trigger, "create view v as select body from entries")
          assert.match((yield* commit(1, "insert into a values (1)")).answer, /may not use the table entries/)
          assert.match((yield* commit(2, "insert into a select length(body) from v")).answer, /may not use the table/)
          assert.lengthOf(yield* ledger.list(), 3)
        })
      )
    })
  )

  it.live("take every kind of value, and give it back", () =>
    Effect.gen(function* () {
      const path = yield* place
      const bytes = Uint8Array.from([0, 255, 7])
      const parameters = [null, true, 1.5, 9_007_199_254_740_993n, "\u0000é", bytes]
      yield* open(path, (ledger) =>
        Effect.andThen(
          ledger.begin(intent(0)),
          ledger.commit(intent(0).key, outcome, [
            { sql: "create table v (a, b, c, d, e, f)", parameters: [] },
            { sql: "insert into v values ($1, $2, $3, $4, $5, $6)", parameters, rows: 1 }
          ])
        )
      )
      const [row] = yield* look(path, "select a, b, c, cast(d as text) d, e, f from v")
      assert.deepStrictEqual(Object.values(row!), [null, 1, 1.5, "9007199254740993", "\u0000é", bytes])
    })
  )
})
