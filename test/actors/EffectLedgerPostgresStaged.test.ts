import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { StagedStatement } from "../../src/tools/ToolCall.ts"
import { intent, succeeded } from "../kit/ledger.ts"
import { open } from "../kit/ledgerAt.ts"
import { type Forbidden, type Look, stagingLedger } from "../kit/ledgerStaging.ts"
import * as Postgres from "../kit/postgres.ts"

let server: Awaited<ReturnType<typeof Postgres.startServer>>

beforeAll(async () => {
  server = await Postgres.startServer()
})
afterAll(() => server?.remove())

const place = Effect.suspend(() => Postgres.freshUrl(server))

const look: Look = (url, sql) =>
  Effect.flatMap(Postgres.connection(url), (admin) => Effect.map(admin.query(sql), ({ rows }) => rows))

const reserved = (name: string): RegExp => new RegExp(`it may not use ${name}`)
const verb = /it may begin with/

const forbidden: ReadonlyArray<Forbidden> = [
  { sql: "delete from writ_effects", why: reserved("writ_effects") },
  { sql: 'DELETE FROM "writ_effects"', why: reserved("writ_effects") },
  { sql: 'delete from U&"\\0077rit_effects"', why: reserved("U&") },
  { sql: "insert into t select 1, body from writ_effects", why: reserved("writ_effects") },
  { sql: "update writ_ledger set format = 2", why: reserved("writ_ledger") },
  { sql: "drop table writ_effects", why: reserved("writ_effects") },
  { sql: "create index more on writ_effects (run_id)", why: reserved("writ_effects") },
  { sql: "select pg_advisory_unlock_all()", why: reserved("pg_advisory_unlock_all") },
  { sql: "select set_config('synchronous_commit', 'off', false)", why: reserved("set_config") },
  { sql: "do $$ begin delete from t; end $$", why: verb },
  { sql: "create function f() returns int language sql as 'select 1'", why: verb },
  { sql: "create temp table writ_effects (key text)", why: verb },
  { sql: "create role more", why: verb },
  { sql: "alter system set fsync = off", why: verb },
  { sql: "set synchronous_commit = off", why: verb },
  { sql: "commit", why: verb },
  { sql: "rollback", why: verb },
  { sql: "savepoint staged", why: verb },
  { sql: "copy t from program 'true'", why: verb },
  { sql: "lock table t", why: verb },
  { sql: "-- nothing\ncommit", why: verb },
  { sql: "select 1; commit", why: /multiple commands/ }
]

stagingLedger("postgres", place, look, forbidden)

const outcome = succeeded("kept")

const statements = (...all: ReadonlyArray<string>): ReadonlyArray<StagedStatement> =>
  all.map((sql) => ({ sql, parameters: [] }))

describe("a tool's own tables on a server", () => {
  it.live("whose trigger or function reaches the ledger's tables are found out, and nothing is kept", () =>
    Effect.gen(function* () {
      const url = yield* place
      yield* open(url, (ledger) =>
        Effect.gen(function* () {
          const admin = yield* Postgres.connection(url)
          for (const [name, body] of [
            ["wipe", "delete from writ_effects"],
            ["more", "create index more on writ_effects (run_id)"],
            ["gone", "alter table writ_effects rename to gone"]
          ]) {
            yield* admin.query(
              `create function ${name}() returns trigger language plpgsql as $$ begin ${body}; return null; end $$`
            )
            yield* admin.query(`create table by_${name} (id integer)`)
            yield* admin.query(`create trigger t after insert on by_${name} execute function ${name}()`)
          }
          for (const [n, name] of ["wipe", "more", "gone"].entries()) {
            yield* ledger.begin(intent(n))
            const kept = yield* ledger.commit(intent(n).key, outcome, statements(`insert into by_${name} values (1)`))
            assert.match(kept.answer, /tables of the ledger were touched/, name)
            assert.deepStrictEqual(yield* look(url, `select * from by_${name}`), [])
          }
          assert.lengthOf(yield* ledger.list({ standing: "settled" }), 3)
        })
      )
    })
  )

  it.live("that stay locked make the call fail, not hang, and other calls go on", () =>
    Effect.gen(function* () {
      const url = yield* place
      const admin = yield* Postgres.connection(url)
      yield* admin.query("create table t (id integer primary key)")
      yield* admin.query("begin")
      yield* admin.query("insert into t values (1)")
      yield* open(
        url,
        (ledger) =>
          Effect.gen(function* () {
            for (const n of [0, 1, 2]) yield* ledger.begin(intent(n))
            const all = yield* Effect.all(
              [
                ledger.commit(intent(0).key, outcome, statements("insert into t values (1)")),
                ledger.commit(intent(1).key, outcome, statements("insert into t values (2)")),
                ledger.commit(intent(2).key, outcome, statements("select count(*) from generate_series(1, 1000000000)"))
              ],
              { concurrency: "unbounded" }
            )
            assert.deepStrictEqual(
              all.map(({ state }) => state),
              ["failed", "succeeded", "failed"]
            )
            assert.match(all[0]!.answer, /timeout/)
          }),
        { patienceMillis: 2_000 }
      )
      yield* admin.query("rollback")
      assert.deepStrictEqual(yield* look(url, "select id from t"), [{ id: 2 }])
    })
  )

  it.live("are made once by many who make them at the same time", () =>
    Effect.gen(function* () {
      const url = yield* place
      const make = "create table if not exists made (id serial primary key, n integer)"
      const opened = Array.from({ length: 6 }, (_, n) =>
        open(url, (ledger) =>
          Effect.andThen(
            ledger.begin(intent(n)),
            ledger.commit(intent(n).key, outcome, statements(make, `insert into made (n) values (${n})`))
          )
        )
      )
      const kept = yield* Effect.all(opened, { concurrency: "unbounded" })
      assert.deepStrictEqual(new Set(kept), new Set([outcome]))
      assert.lengthOf(yield* look(url, "select * from made"), 6)
    })
  )

  it.live("lost with the connection while the server commits are there, or not, as the outcome says", () =>
    Effect.gen(function* () {
      const url = yield* place
      const way = yield* Postgres.proxy(server)
      const admin = yield* Postgres.connection(url)
      yield* open(way.url(url), (ledger) =>
        Effect.gen(function* () {
          yield* ledger.begin(intent(0))
          yield* admin.query("create table t (id integer)")
          yield* admin.query(`create function hold() returns trigger language plpgsql as $$
            begin perform pg_advisory_xact_lock_shared(42); return null; end $$`)
          yield* admin.query(`create constraint trigger hold after insert or update on writ_effects
            deferrable initially deferred for each row execute function hold()`)
          yield* admin.query("select pg_advisory_lock(42)")
          const asked = ledger.commit(intent(0).key, outcome, statements("insert into t values (1)"))
          const fiber = yield* Effect.forkChild(asked, { startImmediately: true })
          const waits = "select 1 from pg_locks where locktype = 'advisory' and not granted and objid = 42"
          while ((yield* admin.query(waits)).rows.length === 0) yield* Effect.sleep(5)
          way.deafen()
          yield* admin.query("select pg_advisory_unlock(42)")
          while ((yield* admin.query("select 1 from t")).rows.length === 0) yield* Effect.sleep(5)
          way.cut()
          // The answer to the commit never came; it is looked up, and nothing is executed again.
          assert.deepStrictEqual(yield* Fiber.join(fiber), outcome)
        })
      )
      assert.lengthOf(yield* look(url, "select id from t"), 1)
    })
  )
})
