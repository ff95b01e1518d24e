import { readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { LedgerError } from "../../src/actors/EffectLedgerError.ts"
import { intent, succeeded, unknown } from "../kit/ledger.ts"
import { directory, layerAt, open } from "../kit/ledgerAt.ts"
import { ledgerBehaviour } from "../kit/ledgerBehaviour.ts"
import { sharedLedger } from "../kit/ledgerSharing.ts"

const place = Effect.map(directory, (path) => join(path, "ledger.sqlite"))

ledgerBehaviour("sqlite", (timing) => Effect.map(place, (path) => layerAt(path, timing)))
sharedLedger("sqlite", place)

const flip = (effect: Effect.Effect<unknown, LedgerError>) => Effect.flip(effect)

const { key } = intent(0)

describe("what is on disk", () => {
  it.live("survives: the outcome byte for byte, with the file readable by its owner only", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "deeper", "ledger.sqlite")
      const outcome = succeeded('"\u2028\ud800 \u0000 é')
      yield* open(path, (ledger) => Effect.andThen(ledger.begin(intent(0)), ledger.settle(key, outcome)))
      assert.deepStrictEqual(yield* open(path, (ledger) => ledger.begin(intent(0))), { _tag: "Settled", outcome })
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
    })
  )

  it.live("is there when begin and settle return, for whoever reads the file", () =>
    Effect.gen(function* () {
      const path = yield* place
      yield* open(path, (ledger) =>
        Effect.gen(function* () {
          const attempts = () => {
            const db = new DatabaseSync(path, { readOnly: true })
            const { body } = db.prepare("select body from entries").get() as { body: string }
            db.close()
            return JSON.parse(body).attempts
          }
          yield* ledger.begin(intent(0))
          assert.isUndefined(attempts()[0].settled)
          yield* ledger.settle(key, succeeded("x"))
          assert.deepStrictEqual(attempts()[0].settled.outcome, succeeded("x"))
        })
      )
    })
  )
})

describe("a file that several share", () => {
  it.live("an owner elsewhere is alive as long as its lease is", () =>
    Effect.gen(function* () {
      const path = yield* place
      yield* open(path, (first) =>
        open(
          path,
          (second) =>
            Effect.gen(function* () {
              yield* first.begin(intent(0))
              const db = new DatabaseSync(path)
              const set = db.prepare("update owners set place = 'another machine', beat_at = ?")
              const now = yield* Clock.currentTimeMillis
              set.run(now + 1_000_000)
              assert.strictEqual((yield* second.get(key))!.standing, "running")
              set.run(now - 1_000_000)
              assert.strictEqual((yield* second.get(key))!.standing, "unknown")
              assert.strictEqual((yield* second.begin(intent(0)))._tag, "Unknown")
              db.close()
            }),
          { leaseMillis: 500_000 }
        )
      )
    })
  )

  it.live("a lock that is not given up makes an operation fail as busy, not hang", () =>
    Effect.gen(function* () {
      const path = yield* place
      const failure = yield* open(
        path,
        (ledger) =>
          Effect.gen(function* () {
            yield* ledger.begin(intent(0))
            const db = new DatabaseSync(path)
            db.exec("begin immediate")
            const failure = yield* flip(ledger.settle(key, succeeded("x")))
            db.exec("rollback")
            db.close()
            // Nothing was lost: the owner may say it again.
            yield* ledger.settle(key, succeeded("x"))
            return failure
          }),
        { busyMillis: 50 }
      )
      assert.deepInclude(failure, { operation: "settle", reason: "busy" })
    })
  )
})

describe("closing", () => {
  it.live("gives the lease up also where another process has the file locked at that moment", () =>
    Effect.gen(function* () {
      const path = yield* place
      const db = new DatabaseSync(path)
      yield* open(path, (ledger) =>
        Effect.gen(function* () {
          yield* ledger.begin(intent(0))
          assert.lengthOf(db.prepare("select * from owners").all(), 1)
          db.exec("begin immediate")
          yield* Effect.forkDetach(
            Effect.delay(
              Effect.sync(() => db.exec("rollback")),
              100
            )
          )
        })
      )
      assert.lengthOf(db.prepare("select * from owners").all(), 0)
      db.close()
    })
  )
})

describe("a file that cannot be trusted", () => {
  const refused = (path: string) => flip(open(path, (ledger) => ledger.begin(intent(0))))

  /** A ledger with enough in it to have several pages. */
  const filled = Effect.gen(function* () {
    const path = yield* place
    yield* open(path, (ledger) =>
      Effect.forEach(
        Array.from({ length: 60 }, (_, n) => n),
        (n) => Effect.andThen(ledger.begin(intent(n)), ledger.settle(intent(n).key, succeeded("x".repeat(300)))),
        { concurrency: "unbounded" }
      )
    )
    return path
  })

  it.live("is refused with its name and what to do: no database, a cut one, a damaged page", () =>
    Effect.gen(function* () {
      const damages: ReadonlyArray<(bytes: Buffer) => Buffer> = [
        () => Buffer.from("this is not a database, it is a text of some length".repeat(100)),
        (bytes) => bytes.subarray(0, 4096 * 3),
        (bytes) => {
          for (let page = 1; page * 4096 < bytes.length; page++) bytes.fill(0x5a, page * 4096, page * 4096 + 200)
          return bytes
        }
      ]
      for (const damage of damages) {
        const path = yield* filled
        writeFileSync(path, damage(readFileSync(path)))
        const error = yield* refused(path)
        assert.deepInclude(error, { operation: "open", reason: "corrupt" })
        assert.include(error.message, path)
        assert.include(error.message, "Move it aside")
      }
    })
  )

  it.live("is refused when it belongs to another program or to a newer version, and is left as it was", () =>
    Effect.gen(function* () {
      for (const [sql, reason] of [
        ["create table theirs (x)", "corrupt"],
        ["pragma application_id = 0x57524954; pragma user_version = 2; create table entries (x)", "version"]
      ] as const) {
        const path = join(yield* directory, "other.sqlite")
        const db = new DatabaseSync(path)
        db.exec(sql)
        db.close()
        const error = yield* refused(path)
        assert.strictEqual(error.reason, reason)
        assert.include(error.message, path)
        const after = new DatabaseSync(path, { readOnly: true })
        assert.deepStrictEqual(after.prepare("select count(*) n from sqlite_schema").get()!["n"], 1)
        after.close()
      }
    })
  )

  it.live("an entry that cannot be read is an error of that key, never a new one", () =>
    Effect.gen(function* () {
      const path = yield* filled
      const db = new DatabaseSync(path)
      db.prepare("update entries set body = substr(body, 1, 100) where key = ?").run(key)
      db.close()
      assert.deepInclude(yield* refused(path), { operation: "begin", reason: "corrupt" })
    })
  )

  it.live("a directory in its place is unavailable", () =>
    Effect.gen(function* () {
      const error = yield* refused(yield* directory)
      assert.deepInclude(error, { operation: "open", reason: "unavailable" })
    })
  )
})

describe("a full disk", () => {
  it.live("is an error and never success: what failed is not there, what succeeded is", () =>
    Effect.gen(function* () {
      const path = yield* place
      const calls = Array.from({ length: 40 }, (_, n) => n)
      const long = succeeded("x".repeat(5_000))
      const results = yield* open(
        path,
        (ledger) =>
          Effect.forEach(
            calls,
            (n) =>
              Effect.result(
                Effect.andThen(
                  ledger.begin(intent(n)),
                  ledger.settle(intent(n).key, n % 2 === 0 ? long : succeeded("ok"))
                )
              ),
            { concurrency: "unbounded" }
          ),
        { maxBytes: 80 * 1024 }
      )
      const failures = results.flatMap((result) => (result._tag === "Failure" ? [result.failure] : []))
      assert.isNotEmpty(failures)
      for (const { message, operation, reason } of failures) {
        assert.include(["begin", "settle"], operation)
        assert.strictEqual(reason, "full")
        assert.include(message, path)
      }
      yield* open(path, (ledger) =>
        Effect.gen(function* () {
          for (const n of calls) {
            const result = results[n]!
            const record = yield* ledger.get(intent(n).key)
            const expected =
              result._tag === "Success" ? "settled" : result.failure.operation === "settle" ? "unknown" : undefined
            assert.strictEqual(record?.standing, expected)
          }
        })
      )
    })
  )

  it.live("one long outcome does not take the short ones with it", () =>
    Effect.gen(function* () {
      const path = yield* place
      const outcomes = [succeeded("short"), succeeded("x".repeat(200_000)), unknown]
      const results = yield* open(
        path,
        (ledger) =>
          Effect.gen(function* () {
            for (const n of outcomes.keys()) yield* ledger.begin(intent(n))
            const settle = outcomes.map((outcome, n) => Effect.result(ledger.settle(intent(n).key, outcome)))
            return yield* Effect.all(settle, { concurrency: "unbounded" })
          }),
        { maxBytes: 64 * 1024 }
      )
      assert.deepStrictEqual(
        results.map(({ _tag }) => _tag),
        ["Success", "Failure", "Success"]
      )
    })
  )
})
