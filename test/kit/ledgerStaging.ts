/** What every ledger with a database has to do with statements of tools. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { EffectLedger } from "../../src/actors/EffectLedger.ts"
import type { LedgerError } from "../../src/actors/EffectLedgerError.ts"
import type { StagedStatement } from "../../src/tools/ToolCall.ts"
import { failed, intent, succeeded, unknown } from "./ledger.ts"
import { open } from "./ledgerAt.ts"

type Ledger = EffectLedger["Service"]
type Place = Effect.Effect<string, never, Scope.Scope>

/** Rows of a query on that place, from outside of the ledger. */
export type Look = (
  place: string,
  sql: string
) => Effect.Effect<ReadonlyArray<Record<string, unknown>>, unknown, Scope.Scope>

const statement = (sql: string, ...parameters: StagedStatement["parameters"]): StagedStatement => ({ sql, parameters })

const table = statement("create table if not exists t (id integer primary key, word text check (length(word) < 9))")
const insert = (id: number, word = "word"): StagedStatement => ({
  ...statement("insert into t (id, word) values ($1, $2)", id, word),
  rows: 1
})

const outcome = succeeded("kept")

const commit = (ledger: Ledger, n: number, staged: ReadonlyArray<StagedStatement>) =>
  Effect.andThen(ledger.begin(intent(n)), ledger.commit(intent(n).key, outcome, staged))

const reasonOf = (kept: Effect.Success<ReturnType<Ledger["commit"]>>): string =>
  kept.ok ? "kept" : JSON.parse(kept.answer).errors[0].reason

/** A statement that no tool may stage, with a word of why. */
export interface Forbidden {
  readonly sql: string
  readonly why: RegExp
}

interface Backend {
  readonly name: string
  readonly place: Place
  readonly look: Look
  readonly forbidden: ReadonlyArray<Forbidden>
}

const rowsIn = (look: Look, path: string) =>
  Effect.map(look(path, "select id, word from t order by id"), (all) => all.map(({ id, word }) => [Number(id), word]))

const kept = ({ look, name, place }: Backend): void => {
  describe(`${name}: statements that are committed with an outcome`, () => {
    it.live("are there with it, a table that was made included, and are executed once however often it is said", () =>
      Effect.gen(function* () {
        const path = yield* place
        yield* open(path, (ledger) =>
          Effect.gen(function* () {
            assert.isTrue(ledger.transactional)
            assert.deepStrictEqual(yield* commit(ledger, 0, [table, insert(1), insert(2, "ünï\u{1d11e}")]), outcome)
            assert.deepStrictEqual(yield* ledger.commit(intent(0).key, outcome, [table, insert(3)]), outcome)
            assert.deepStrictEqual(yield* ledger.begin(intent(0)), { _tag: "Settled", outcome })
          })
        )
        assert.deepStrictEqual(yield* rowsIn(look, path), [
          [1, "word"],
          [2, "ünï\u{1d11e}"]
        ])
      })
    )

    it.live("are not executed for whoever has no right to: the attempt of another, or one that is settled", () =>
      Effect.gen(function* () {
        const path = yield* place
        const { key } = intent(0)
        yield* open(path, (ledger) =>
          Effect.gen(function* () {
            yield* commit(ledger, 9, [table])
            yield* ledger.begin(intent(0))
            const stranger = open(path, (other) => other.commit(key, outcome, [insert(1)]))
            assert.strictEqual((yield* Effect.flip(stranger)).reason, "not_owner")
            yield* ledger.settle(key, unknown)
            const late: Effect.Effect<unknown, LedgerError> = ledger.commit(key, outcome, [insert(2)])
            assert.strictEqual((yield* Effect.flip(late)).reason, "settled")
            assert.strictEqual((yield* ledger.retake(intent(0)))._tag, "New")
            yield* ledger.commit(key, outcome, [insert(3)])
          })
        )
        assert.deepStrictEqual(yield* rowsIn(look, path), [[3, "word"]])
      })
    )
  })
}

const refused = ({ look, name, place }: Backend): void => {
  describe(`${name}: statements that are refused`, () => {
    it.live("leave nothing, and the call has failed with its reason, for good", () =>
      Effect.gen(function* () {
        const path = yield* place
        const bad: ReadonlyArray<readonly [staged: ReadonlyArray<StagedStatement>, why: RegExp]> = [
          [[insert(2), insert(1)], /^staged statement 2 of 2 was refused: .*(?:unique|UNIQUE)/],
          [[insert(2, "too long a word")], /^the staged statement was refused: .*(?:check|CHECK)/],
          [[insert(2), statement("insert into nowhere values (1)")], /nowhere/],
          [[insert(2), statement("insert in to t")], /syntax/],
          [[insert(2), { ...statement("update t set word = $1 where id = $2", "x", 77), rows: 1 }], /concerns 0 rows/],
          [[insert(2), { ...statement("select * from t"), rows: 1 }], /concerns 2 rows/],
          [[insert(2), statement("insert into t (id) values ($1)", 5, 6)], /2 parameters, and \$2/],
          [[insert(2), statement("insert into t (id, word) values ($1, $2)", 5)], /1 parameters, and \$2/],
          [[insert(2), { ...statement("drop table t"), rows: 0 }], /rows is for/],
          [[insert(2), statement("insert into t (id) values (3); insert into t (id) values (4)")], /refused/],
          [[insert(2), statement("")], /refused/]
        ]
        yield* open(path, (ledger) =>
          Effect.gen(function* () {
            yield* commit(ledger, 0, [table, insert(1)])
            for (const [at, [staged, why]] of bad.entries()) {
              const kept = yield* commit(ledger, at + 1, staged)
              assert.deepInclude(kept, { ok: false, kind: "execution_failed", effect: "none", state: "failed" })
              assert.match(reasonOf(kept), why)
              assert.match(reasonOf(kept), /nothing of this call was kept$/)
              assert.notInclude(reasonOf(kept), path)
              assert.deepStrictEqual(yield* ledger.begin(intent(at + 1)), { _tag: "Settled", outcome: kept })
            }
          })
        )
        assert.deepStrictEqual(yield* rowsIn(look, path), [[1, "word"]])
      })
    )
  })
}

const together = ({ look, name, place }: Backend): void => {
  describe(`${name}: statements of several calls in one transaction`, () => {
    it.live("take no other call with them when they are refused", () =>
      Effect.gen(function* () {
        const path = yield* place
        yield* open(path, (ledger) =>
          Effect.gen(function* () {
            yield* commit(ledger, 0, [table, insert(1)])
            const all = Array.from({ length: 60 }, (_, n) => n + 1)
            yield* Effect.forEach(all, (n) => ledger.begin(intent(n)), { concurrency: "unbounded" })
            const kept = yield* Effect.forEach(
              all,
              (n) => {
                const { key } = intent(n)
                if (n % 3 === 0) return Effect.as(ledger.settle(key, failed), failed)
                return ledger.commit(key, outcome, n % 3 === 1 ? [insert(n + 100)] : [insert(n + 200), insert(1)])
              },
              { concurrency: "unbounded" }
            )
            const states = kept.map(({ state }) => state)
            assert.deepStrictEqual(
              states,
              all.map((n) => (n % 3 === 1 ? "succeeded" : "failed"))
            )
          })
        )
        const wanted = Array.from({ length: 20 }, (_, n) => [n * 3 + 101, "word"])
        assert.deepStrictEqual(yield* rowsIn(look, path), [[1, "word"], ...wanted])
      })
    )
  })
}

const atTheEnd = ({ look, name, place }: Backend): void => {
  describe(`${name}: statements under constraints that may wait until the commit`, () => {
    it.live("answer each for itself to a constraint that is looked at only at the end", () =>
      Effect.gen(function* () {
        const path = yield* place
        const child = statement(
          "create table if not exists child (t_id integer references t (id) deferrable initially deferred)"
        )
        const orphan = statement("insert into child values ($1)", 77)
        yield* open(path, (ledger) =>
          Effect.gen(function* () {
            yield* commit(ledger, 0, [table, child, statement("insert into child values ($1)", 1), insert(1)])
            for (const n of [1, 2, 3]) yield* ledger.begin(intent(n))
            const kept = yield* Effect.all(
              [
                ledger.commit(intent(1).key, outcome, [statement("insert into child values ($1)", 2), insert(2)]),
                ledger.commit(intent(2).key, outcome, [insert(3), orphan]),
                ledger.commit(intent(3).key, outcome, [statement("insert into child values ($1)", 4), insert(4)])
              ],
              { concurrency: "unbounded" }
            )
            assert.deepStrictEqual(
              kept.map(({ state }) => state),
              ["succeeded", "failed", "succeeded"]
            )
            assert.match(reasonOf(kept[1]!), /foreign key/i)
          })
        )
        assert.deepStrictEqual(yield* rowsIn(look, path), [
          [1, "word"],
          [2, "word"],
          [4, "word"]
        ])
      })
    )
  })
}

const forbiddenStatements = ({ forbidden, look, name, place }: Backend): void => {
  describe(`${name}: statements that no tool may stage`, () => {
    it.live("cannot touch the ledger, the session or other databases, in any way", () =>
      Effect.gen(function* () {
        const path = yield* place
        yield* open(path, (ledger) =>
          Effect.gen(function* () {
            yield* commit(ledger, 0, [table, insert(1)])
            for (const [at, { sql, why }] of forbidden.entries()) {
              const kept = yield* commit(ledger, at + 1, [insert(2), statement(sql)])
              assert.match(reasonOf(kept), why, sql)
              assert.strictEqual(kept.effect, "none")
            }
            // The ledger is as it was, and so is its right to write.
            assert.lengthOf(yield* ledger.list(), forbidden.length + 1)
            assert.deepStrictEqual(yield* commit(ledger, 200, [insert(3)]), outcome)
          })
        )
        assert.deepStrictEqual(yield* rowsIn(look, path), [
          [1, "word"],
          [3, "word"]
        ])
      })
    )
  })
}

/** `look` sees what is in the database from outside of the ledger. */
export const stagingLedger = (name: string, place: Place, look: Look, forbidden: ReadonlyArray<Forbidden>): void => {
  for (const part of [kept, refused, together, atTheEnd, forbiddenStatements]) part({ name, place, look, forbidden })
}
