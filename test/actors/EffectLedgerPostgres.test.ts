import { spawnSync } from "node:child_process"
import { join } from "node:path"
import type { PgConnection } from "@effect/sql-pg/PgConnection"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type { LedgerError } from "../../src/actors/EffectLedgerError.ts"
import { intent, succeeded, unknown } from "../kit/ledger.ts"
import { child, layerAt, open } from "../kit/ledgerAt.ts"
import { ledgerBehaviour } from "../kit/ledgerBehaviour.ts"
import { sharedLedger } from "../kit/ledgerSharing.ts"
import * as Postgres from "../kit/postgres.ts"

let server: Awaited<ReturnType<typeof Postgres.startServer>>

beforeAll(async () => {
  server = await Postgres.startServer()
})
afterAll(() => server?.remove())

const place = Effect.suspend(() => Postgres.freshUrl(server))

ledgerBehaviour("postgres", (timing) => Effect.map(place, (url) => layerAt(url, timing)))
sharedLedger("postgres", place)

const flip = (effect: Effect.Effect<unknown, LedgerError>) => Effect.flip(effect)

const success = (result: Result.Result<unknown, unknown>) => Result.getOrElse(result, (error) => error)

const { key } = intent(0)

/** The tables are there after this. */
const made = (url: string) => open(url, (ledger) => ledger.list())

/** From now on a commit waits for whoever holds the lock 42. */
const slowCommits = (admin: PgConnection) =>
  Effect.forEach(
    [
      `create function hold() returns trigger language plpgsql as $$
         begin perform pg_advisory_xact_lock_shared(42); return null; end $$`,
      `create constraint trigger hold after insert or update on writ_effects
         deferrable initially deferred for each row execute function hold()`
    ],
    (sql) => admin.query(sql),
    { discard: true }
  )

/** Looks until a statement finds something. */
const until = (admin: PgConnection, sql: string, params: ReadonlyArray<unknown> = []) =>
  Effect.gen(function* () {
    while ((yield* admin.query(sql, params)).rows.length === 0) yield* Effect.sleep(5)
  })

const waiting = "select 1 from pg_locks where locktype = 'advisory' and not granted and objid = 42"

describe("a ledger in tables", () => {
  it.live("is made once by many who open it at the same time, and holds what was asked for", () =>
    Effect.gen(function* () {
      const url = yield* place
      const opened = Array.from({ length: 6 }, (_, n) => open(url, (ledger) => ledger.begin(intent(n))))
      const begun = yield* Effect.all(opened, { concurrency: "unbounded" })
      assert.deepStrictEqual(new Set(begun.map(({ _tag }) => _tag)), new Set(["New"]))
      assert.lengthOf(yield* open(url, (ledger) => ledger.list({ standing: "unknown" })), 6)
    })
  )

  it.live("is not made by whoever only wants to look", () =>
    Effect.gen(function* () {
      const url = yield* place
      const error = yield* flip(open(url, (ledger) => ledger.list(), { create: false }))
      assert.deepInclude(error, { operation: "open", reason: "missing" })
      const admin = yield* Postgres.connection(url)
      const { rows } = yield* admin.query("select to_regclass('writ_ledger') is null as absent")
      assert.deepStrictEqual(rows, [{ absent: true }])
    })
  )

  it.live("of a newer version is refused, and an entry that cannot be read is an error of that key alone", () =>
    Effect.gen(function* () {
      const url = yield* place
      yield* open(url, (ledger) => Effect.andThen(ledger.begin(intent(0)), ledger.settle(key, succeeded("x"))))
      const admin = yield* Postgres.connection(url)
      yield* admin.query("update writ_effects set body = substr(body, 1, 100)")
      yield* open(url, (ledger) =>
        Effect.gen(function* () {
          const both = [ledger.begin(intent(0)), ledger.begin(intent(1))].map((one) => Effect.result(one))
          const [damaged, sound] = yield* Effect.all(both, { concurrency: 2 })
          assert.deepInclude(damaged!._tag === "Failure" ? damaged!.failure : {}, {
            operation: "begin",
            reason: "corrupt"
          })
          assert.strictEqual(sound!._tag, "Success")
        })
      )
      yield* admin.query("update writ_ledger set format = 2")
      assert.deepInclude(yield* flip(made(url)), { operation: "open", reason: "version" })
    })
  )

  it.live("commits to the server's disk before it answers, whatever the database prefers", () =>
    Effect.gen(function* () {
      const url = yield* place
      const admin = yield* Postgres.connection(url)
      yield* made(url)
      yield* admin.query("create table seen (setting text)")
      yield* admin.query(`create function look() returns trigger language plpgsql as $$
        begin insert into seen values (current_setting('synchronous_commit')); return null; end $$`)
      yield* admin.query("create trigger look after insert on writ_effects execute function look()")
      yield* admin.query("alter role writ set synchronous_commit = off")
      yield* open(url, (ledger) => ledger.begin(intent(0))).pipe(
        Effect.ensuring(Effect.orDie(admin.query("alter role writ reset synchronous_commit")))
      )
      assert.deepStrictEqual((yield* admin.query("select setting from seen")).rows, [{ setting: "on" }])
    })
  )

  it.live("a row that stays locked makes an operation fail as busy, not hang, and nothing is lost by it", () =>
    Effect.gen(function* () {
      const url = yield* place
      const admin = yield* Postgres.connection(url)
      yield* open(
        url,
        (ledger) =>
          Effect.gen(function* () {
            yield* ledger.begin(intent(0))
            yield* admin.query("begin")
            yield* admin.query("select * from writ_effects for update")
            const failure = yield* flip(ledger.settle(key, succeeded("x")))
            yield* admin.query("rollback")
            assert.deepInclude(failure, { operation: "settle", reason: "busy" })
            // The connection is the same one, so the owner was alive all the time.
            yield* ledger.settle(key, succeeded("x"))
          }),
        { patienceMillis: 2_000 }
      )
    })
  )
})

describe("an owner", () => {
  it.live("is dead to others as soon as its connection is, and alive again when it comes back", () =>
    Effect.gen(function* () {
      const url = yield* place
      const way = yield* Postgres.proxy(server)
      yield* open(url, (other) =>
        open(
          way.url(url),
          (ledger) =>
            Effect.gen(function* () {
              yield* ledger.begin(intent(0))
              assert.strictEqual((yield* other.get(key))!.standing, "running")
              way.close()
              while ((yield* other.get(key))!.standing !== "unknown") yield* Effect.sleep(5)
              way.reopen()
              // Its heartbeat brings it back; nobody has to ask it for anything.
              while ((yield* other.get(key))!.standing !== "running") yield* Effect.sleep(5)
              yield* ledger.settle(key, succeeded("x"))
            }),
          { heartbeatMillis: 20 }
        )
      )
    })
  )

  it.live("whose attempt was taken over while it was away cannot settle it any more", () =>
    Effect.gen(function* () {
      const url = yield* place
      const way = yield* Postgres.proxy(server)
      yield* open(url, (other) =>
        open(way.url(url), (ledger) =>
          Effect.gen(function* () {
            yield* ledger.begin(intent(0))
            way.close()
            while ((yield* other.get(key))!.standing !== "unknown") yield* Effect.sleep(5)
            assert.strictEqual((yield* other.retake(intent(0)))._tag, "New")
            way.reopen()
            assert.strictEqual((yield* flip(ledger.settle(key, succeeded("first")))).reason, "not_owner")
            yield* other.settle(key, succeeded("second"))
          })
        )
      )
    })
  )

  it.live("killed in the middle of a commit leaves an unknown effect, or none at all", () =>
    Effect.gen(function* () {
      const url = yield* place
      const admin = yield* Postgres.connection(url)
      yield* made(url)
      yield* slowCommits(admin)
      yield* admin.query("select pg_advisory_lock(42)")
      const holder = yield* child(url, "hold")
      yield* until(admin, waiting)
      yield* holder.kill
      yield* admin.query("select pg_advisory_unlock(42)")
      // The server did not hear of the kill: it may finish what it was told.
      const begun = yield* open(url, (ledger) => ledger.begin(intent(0)))
      assert.include(["New", "Unknown"], begun._tag)
      const again = yield* open(url, (ledger) => ledger.begin(intent(0)))
      assert.strictEqual(again._tag, "Unknown")
    })
  )
})

describe("a commit whose answer is lost", () => {
  /** One operation that is cut off while the server commits; `then` decides what becomes of the commit. */
  const cutOff = (
    operation: "begin" | "settle",
    then: (way: Postgres.Proxy, admin: PgConnection) => Effect.Effect<void, unknown>
  ) =>
    Effect.gen(function* () {
      const url = yield* place
      const admin = yield* Postgres.connection(url)
      const way = yield* Postgres.proxy(server)
      yield* made(url)
      return yield* open(way.url(url), (ledger) =>
        Effect.gen(function* () {
          if (operation === "settle") yield* ledger.begin(intent(0))
          yield* slowCommits(admin)
          yield* admin.query("select pg_advisory_lock(42)")
          const asked = operation === "begin" ? ledger.begin(intent(0)) : ledger.settle(key, succeeded("x"))
          const fiber = yield* Effect.forkChild(Effect.result(asked), { startImmediately: true })
          yield* until(admin, waiting)
          yield* then(way, admin)
          const result = yield* Fiber.join(fiber)
          yield* admin.query("select pg_advisory_unlock_all()")
          return { result, record: yield* ledger.get(key) }
        })
      )
    })

  const committed = (operation: "begin" | "settle") =>
    cutOff(operation, (way, admin) =>
      Effect.gen(function* () {
        way.deafen()
        yield* admin.query("select pg_advisory_unlock(42)")
        const wanted = operation === "begin" ? "not like '%\"settled\"%'" : "like '%\"settled\"%'"
        yield* until(admin, `select 1 from writ_effects where body ${wanted}`)
        way.cut()
      })
    )

  it.live("is looked up: what the server kept is answered as done, once", () =>
    Effect.gen(function* () {
      const begun = yield* committed("begin")
      assert.deepStrictEqual(success(begun.result), { _tag: "New" })
      assert.lengthOf(begun.record!.entry.attempts, 1)
      const settled = yield* committed("settle")
      assert.strictEqual(settled.result._tag, "Success")
      assert.strictEqual(settled.record!.standing, "settled")
    })
  )

  it.live("is done again where the server did not keep it", () =>
    Effect.gen(function* () {
      const { record, result } = yield* cutOff("begin", (way, admin) =>
        // The one that comes back ends the old connection, which waits in its commit.
        Effect.andThen(Effect.sync(way.cut), until(admin, waiting)).pipe(
          Effect.andThen(admin.query("select pg_advisory_unlock(42)"))
        )
      )
      assert.deepStrictEqual(success(result), { _tag: "New" })
      assert.lengthOf(record!.entry.attempts, 1)
      assert.strictEqual(record!.standing, "running")
    })
  )
})

describe("a server that stops", () => {
  it.live("in the middle of a commit makes it an error that says nobody knows, and never success", () =>
    Effect.gen(function* () {
      const url = yield* place
      yield* Effect.scoped(
        Effect.gen(function* () {
          const admin = yield* Postgres.connection(url)
          yield* open(
            url,
            (ledger) =>
              Effect.gen(function* () {
                yield* ledger.begin(intent(0))
                yield* slowCommits(admin)
                yield* admin.query("select pg_advisory_lock(42)")
                const both = [ledger.settle(key, succeeded("x")), ledger.begin(intent(1))]
                const asked = Effect.all(
                  both.map((one) => flip(one)),
                  { concurrency: 2 }
                )
                const fiber = yield* Effect.forkChild(asked, { startImmediately: true })
                yield* until(admin, waiting)
                yield* Effect.promise(server.crash)
                for (const error of yield* Fiber.join(fiber)) {
                  assert.strictEqual(error.reason, "unreachable")
                  assert.include(error.message, "nobody knows")
                  assert.notInclude(error.message, server.password)
                }
                const down = yield* flip(ledger.begin(intent(2)))
                assert.deepInclude(down, { operation: "begin", reason: "unreachable" })
                assert.include(down.message, "nothing was recorded")
                yield* Effect.promise(server.start)
                // The same ledger goes on. What was refused is not on the record, or is closed as never begun.
                assert.strictEqual((yield* ledger.begin(intent(3)))._tag, "New")
                assert.include([undefined, "settled"], (yield* ledger.get(intent(1).key))?.standing)
                assert.strictEqual((yield* ledger.get(key))!.standing, "running")
                yield* ledger.settle(key, unknown)
              }),
            { patienceMillis: 4_000 }
          )
        })
      )
      assert.strictEqual((yield* open(url, (ledger) => ledger.begin(intent(0))))._tag, "Unknown")
    })
  )

  it.live("and comes back in time is not noticed", () =>
    Effect.gen(function* () {
      const url = yield* place
      yield* open(url, (ledger) =>
        Effect.gen(function* () {
          yield* ledger.begin(intent(0))
          yield* Effect.promise(server.crash)
          const settling = yield* Effect.forkChild(ledger.settle(key, succeeded("x")), { startImmediately: true })
          yield* Effect.promise(server.start)
          yield* Fiber.join(settling)
          assert.strictEqual((yield* ledger.get(key))!.standing, "settled")
        })
      )
    })
  )
})

describe("a server that cannot be used", () => {
  it.live("is refused at once, in words that hold no password", () =>
    Effect.gen(function* () {
      const url = yield* place
      const way = yield* Postgres.proxy(server)
      const wrong = way.url(url).replace(server.password, "wr0ng-secret")
      const refused = yield* flip(made(wrong))
      assert.deepInclude(refused, { operation: "open", reason: "unavailable" })
      assert.notInclude(refused.message, "wr0ng-secret")
      assert.include(refused.message, "writ@127.0.0.1")
      way.close()
      const gone = yield* flip(made(way.url(url)))
      assert.deepInclude(gone, { operation: "open", reason: "unreachable" })
      const nonsense = yield* flip(made("postgres://u:s3cret@[::/x"))
      assert.notInclude(nonsense.message, "s3cret")
    })
  )

  it("without the package is refused with the command that installs it", () => {
    const program = `
      import { registerHooks } from "node:module"
      registerHooks({ resolve(name, context, next) {
        if (name.startsWith("@effect/sql-pg")) throw Object.assign(new Error("no " + name), { code: "ERR_MODULE_NOT_FOUND" })
        return next(name, context)
      } })
      const Effect = await import("effect/Effect")
      const at = new URL("./src/actors/", "file://" + process.cwd() + "/")
      const { layerPostgres } = await import(new URL("EffectLedgerPostgres.ts", at))
      const { EffectLedger } = await import(new URL("EffectLedger.ts", at))
      const layer = layerPostgres({ url: "postgres://127.0.0.1/x" })
      const error = await Effect.runPromise(Effect.flip(Effect.provide(Effect.service(EffectLedger), layer)))
      console.log(error.reason, error.message)`
    const { stderr, stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      cwd: join(import.meta.dirname, "../.."),
      encoding: "utf8"
    })
    assert.match(stdout, /^unavailable .*npm install @effect\/sql-pg@4\.0\.5/, stderr)
  })
})
