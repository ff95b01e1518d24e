import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { DatabaseSync } from "node:sqlite"
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { EffectLedger } from "../../src/actors/EffectLedger.ts"
import type { LedgerError } from "../../src/actors/EffectLedgerError.ts"
import { layerSqlite, type SqliteOptions } from "../../src/actors/EffectLedgerSqlite.ts"
import { intent, succeeded, unknown } from "../kit/ledger.ts"

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "writ-ledger-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

/** A ledger of its own on that file, closed when `body` ends. */
const open = <A, E, R>(
  path: string,
  body: (ledger: EffectLedger["Service"]) => Effect.Effect<A, E, R>,
  options?: Partial<SqliteOptions>
) => Effect.provide(Effect.flatMap(EffectLedger, body), layerSqlite({ path, ...options }), { local: true })

const flip = (effect: Effect.Effect<unknown, LedgerError>) => Effect.flip(effect)

const program = join(import.meta.dirname, "../kit/ledgerProcess.ts")

interface Child {
  readonly process: ChildProcess
  /** The next line it says; undefined once it has ended. */
  readonly line: Effect.Effect<string | undefined>
  readonly tell: Effect.Effect<void>
  readonly kill: Effect.Effect<void>
  readonly ended: Effect.Effect<void>
}

const child = (...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync((): Child => {
      const process_ = spawn(process.execPath, [program, ...args], { stdio: ["pipe", "pipe", "inherit"] })
      const lines = createInterface({ input: process_.stdout! })[Symbol.asyncIterator]()
      const exit = new Promise<void>((resolve) => process_.once("exit", () => resolve()))
      const ended = Effect.promise(() => exit)
      return {
        process: process_,
        line: Effect.promise(async () => (await lines.next()).value as string | undefined),
        tell: Effect.sync(() => void process_.stdin!.write("go\n")),
        ended,
        kill: Effect.suspend(() => {
          process_.kill("SIGKILL")
          return ended
        })
      }
    }),
    ({ kill }) => kill
  )

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
      const path = join(yield* directory, "ledger.sqlite")
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

  it.live("an intent that was left when its ledger closed is unknown, and can be taken over", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "ledger.sqlite")
      yield* open(path, (ledger) => ledger.begin(intent(0)))
      yield* open(path, (ledger) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Unknown")
          assert.strictEqual((yield* flip(ledger.settle(key, succeeded("not mine")))).reason, "not_owner")
          assert.strictEqual((yield* ledger.retake(intent(0)))._tag, "New")
          yield* ledger.settle(key, succeeded("mine"))
        })
      )
    })
  )
})

describe("several ledgers in one process", () => {
  it.live("are single flight: the second waits for the first one's outcome", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "ledger.sqlite")
      yield* open(path, (first) =>
        open(path, (second) =>
          Effect.gen(function* () {
            yield* first.begin(intent(0))
            const waiting = yield* Effect.forkChild(second.begin(intent(0)), { startImmediately: true })
            assert.strictEqual((yield* second.get(key))!.standing, "running")
            assert.strictEqual((yield* flip(second.settle(key, succeeded("not mine")))).reason, "not_owner")
            yield* first.settle(key, succeeded("first"))
            assert.deepStrictEqual(yield* Fiber.join(waiting), { _tag: "Settled", outcome: succeeded("first") })
          })
        )
      )
    })
  )

  it.live("an owner elsewhere is alive as long as its lease is", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "ledger.sqlite")
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
      const path = join(yield* directory, "ledger.sqlite")
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

describe("several processes", () => {
  it.live("that deliver the same calls at once cause each effect once and give byte-equal replies", () =>
    Effect.gen(function* () {
      const dir = yield* directory
      const effects = join(dir, "effects")
      writeFileSync(effects, "")
      const both = [
        yield* child(join(dir, "ledger.sqlite"), "deliver", effects),
        yield* child(join(dir, "ledger.sqlite"), "deliver", effects)
      ]
      for (const { line } of both) assert.strictEqual(yield* line, "ready")
      for (const { tell } of both) yield* tell
      const replies = yield* Effect.forEach(both, ({ line }) => line, { concurrency: 2 })
      assert.strictEqual(replies[0], replies[1])
      assert.lengthOf(JSON.parse(replies[0]!), 40)
      const done = readFileSync(effects, "utf8").trim().split("\n").map(Number)
      assert.deepStrictEqual(
        done.sort((a, b) => a - b),
        Array.from({ length: 20 }, (_, n) => n)
      )
    })
  )

  it.live("the second waits for the first, and learns what it came to", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "ledger.sqlite")
      const holder = yield* child(path, "hold")
      assert.strictEqual(yield* holder.line, "begun")
      const begun = yield* open(path, (ledger) =>
        Effect.gen(function* () {
          const waiting = yield* Effect.forkChild(ledger.begin(intent(0)), { startImmediately: true })
          assert.strictEqual((yield* ledger.get(key))!.standing, "running")
          yield* holder.tell
          return yield* Fiber.join(waiting)
        })
      )
      assert.deepStrictEqual(begun, { _tag: "Settled", outcome: succeeded("held") })
    })
  )

  it.live("kill -9 between intent and settle leaves an unknown effect, for whoever waits and whoever comes later", () =>
    Effect.gen(function* () {
      const path = join(yield* directory, "ledger.sqlite")
      const holder = yield* child(path, "hold")
      assert.strictEqual(yield* holder.line, "begun")
      const begun = yield* open(path, (ledger) =>
        Effect.gen(function* () {
          const waiting = yield* Effect.forkChild(ledger.begin(intent(0)), { startImmediately: true })
          assert.strictEqual((yield* ledger.get(key))!.standing, "running")
          yield* holder.kill
          return yield* Fiber.join(waiting)
        })
      )
      assert.strictEqual(begun._tag, "Unknown")
      yield* open(path, (ledger) =>
        Effect.gen(function* () {
          assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Unknown")
          yield* ledger.resolve(key, { outcome: succeeded("INV-9"), by: "ada", reason: "it is in the portal" })
          assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Settled")
        })
      )
    })
  )

  it.live("kill -9 at any moment loses nothing that was returned from", () =>
    Effect.gen(function* () {
      for (const length of [1, 2, 7, 30]) {
        const path = join(yield* directory, "ledger.sqlite")
        const streamer = yield* child(path, "stream")
        for (let said = 0; said < length; said++) yield* streamer.line
        yield* streamer.kill
        // What it said before it died but was not read yet counts as well.
        let last: string | undefined
        for (let line = yield* streamer.line; line !== undefined; line = yield* streamer.line) last = line
        const said = last ?? (length % 2 === 1 ? `begun ${(length - 1) / 2}` : `settled ${length / 2 - 1}`)
        const [what, n] = said.split(" ") as [string, string]
        yield* open(path, (ledger) =>
          Effect.gen(function* () {
            for (let at = 0; at < Number(n); at++) {
              assert.deepStrictEqual(yield* ledger.begin(intent(at)), {
                _tag: "Settled",
                outcome: succeeded(String(at))
              })
            }
            const begun = yield* ledger.begin(intent(Number(n)))
            // A settlement may have reached the disk and not the reader; an intent never turns new again.
            assert.include(what === "settled" ? ["Settled"] : ["Settled", "Unknown"], begun._tag)
          })
        )
      }
    })
  )
})

describe("a file that cannot be trusted", () => {
  const refused = (path: string) => flip(open(path, (ledger) => ledger.begin(intent(0))))

  /** A ledger with enough in it to have several pages. */
  const filled = Effect.gen(function* () {
    const path = join(yield* directory, "ledger.sqlite")
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
      const path = join(yield* directory, "ledger.sqlite")
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
      const path = join(yield* directory, "ledger.sqlite")
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

it.live("a ledger that is closed refuses instead of forgetting", () =>
  Effect.gen(function* () {
    const path = join(yield* directory, "ledger.sqlite")
    const ledger = yield* open(path, Effect.succeed)
    assert.strictEqual((yield* flip(ledger.begin(intent(0)))).reason, "closed")
  })
)

it.live("calls that are asked for together are all answered when the ledger closes right after", () =>
  Effect.gen(function* () {
    const path = join(yield* directory, "ledger.sqlite")
    const fibers = yield* open(path, (ledger) =>
      Effect.forEach(
        Array.from({ length: 300 }, (_, n) => intent(n)),
        (one) => Effect.forkDetach(ledger.begin(one), { startImmediately: true })
      )
    )
    const begun = yield* Effect.forEach(fibers, Fiber.join)
    assert.isTrue(begun.every(({ _tag }) => _tag === "New"))
    assert.lengthOf(yield* open(path, (ledger) => ledger.list({ standing: "unknown" })), 300)
  })
)
