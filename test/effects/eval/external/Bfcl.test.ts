/** The leaderboard's single-turn rows as a suite: fed right answers, fed damaged ones, and what our validation refuses of its own. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Bfcl from "../../../../src/effects/eval/external/Bfcl.ts"
import { schemaOf } from "../../../../src/effects/eval/external/BfclTypes.ts"
import * as Suite from "../../../../src/effects/eval/Suite.ts"
import { canonical, type JsonObject } from "../../../../src/tools/JsonText.ts"
import {
  type Damage,
  damages,
  play,
  type Reply,
  registryOf,
  rightCalls,
  rightReply,
  unanswerable,
  verdicts
} from "../../../kit/bfcl.ts"
import { conformance } from "../../../kit/codecs.ts"
import { blank, decide, talk, user } from "../../../kit/evals.ts"
import { Home } from "../../../kit/fillings.ts"

const root = join(import.meta.dirname, "../../../..")
const text = readFileSync(join(root, "test/fixtures/bfcl/rows.jsonl"), "utf8")
const own = Result.getOrThrow(Bfcl.read(text))

/** Ids of the rows whose calls the suite does not take for right. */
const failing = Effect.fnUntraced(function* (
  rows: ReadonlyArray<Bfcl.Row>,
  replies: (row: Bfcl.Row) => Reply,
  options: Bfcl.SuiteOptions = {}
) {
  const conversations = yield* Effect.forEach(rows, (row) => play(row, replies(row)))
  const found = yield* verdicts(rows, conversations, options)
  return rows.filter(({ id }) => found.get(id)!.outcome !== "pass").map(({ id }) => id)
})

/** Rows with a right call that its own schema, as we read it, refuses: from the schemas alone, without any run. */
const refusedRows = Effect.fnUntraced(function* (rows: ReadonlyArray<Bfcl.Row>) {
  const refused = new Set<string>()
  for (const row of rows) {
    if (row.expect !== "calls") continue
    const registry = yield* registryOf(row)
    const bad = rightCalls(row).some(({ input, name }) => Result.isFailure(registry.get(name)!.check(input)))
    if (bad) refused.add(row.id)
  }
  return refused
})

/** The damage of the row at a place, where it has something to damage; kinds come round by turns. */
const damageAt = (row: Bfcl.Row, at: number): readonly [Damage, Reply] | undefined => {
  for (let turn = 0; turn < damages.length; turn++) {
    const damage = damages[(at * 7 + turn) % damages.length]!
    const reply = damage.apply(row, rightCalls(row))
    if (reply !== undefined) return [damage, reply]
  }
  return undefined
}

describe("BFCL rows of our own", () => {
  it.effect("are right when the right answers are fed, but for the two whose answers their schemas refuse", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* failing(own, rightReply), ["own/simple_java_11", "own/simple_12"])
      assert.deepStrictEqual([...(yield* refusedRows(own))], ["own/simple_java_11", "own/simple_12"])
    }).pipe(Effect.provide(Home.layer))
  )

  it.effect("are all right by the leaderboard's rules alone", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* failing(own, rightReply, { legal: false }), [])
    }).pipe(Effect.provide(Home.layer))
  )

  it.effect("fall with every kind of damage exactly where it matters", () =>
    Effect.gen(function* () {
      const refused = yield* refusedRows(own)
      for (const damage of damages) {
        const rows = own.filter((row) => row.expect === "calls" && !refused.has(row.id))
        const hit = rows.filter((row) => damage.apply(row, rightCalls(row)) !== undefined)
        assert.isAbove(hit.length, 0, damage.name)
        const failed = yield* failing(rows, (row) => damage.apply(row, rightCalls(row)) ?? rightReply(row))
        assert.deepStrictEqual(failed, damage.stays ? [] : hit.map(({ id }) => id), damage.name)
      }
    }).pipe(Effect.provide(Home.layer))
  )

  it.effect("ask for no call, and for some call, as the leaderboard does", () =>
    Effect.gen(function* () {
      const rows = own.filter(({ expect }) => expect !== "calls")
      assert.deepStrictEqual(
        rows.map(({ expect }) => expect),
        ["no_call", "some_call"]
      )
      const swapped = (row: Bfcl.Row): Reply =>
        row.expect === "no_call" ? [{ name: "set_timer", input: { minutes: 1 } }] : "Which one?"
      assert.deepStrictEqual(yield* failing(rows, swapped), ["own/irrelevance_9", "own/relevance_10"])
    }).pipe(Effect.provide(Home.layer))
  )

  it("make a suite that is read again as the same", () => {
    const suite = Bfcl.suiteOf(own)
    assert.deepStrictEqual(Result.getOrThrow(Suite.parse(Suite.emit(suite))), suite)
  })

  it.effect("never pass on a conversation that nobody has filled", () =>
    Effect.gen(function* () {
      for (const expect of ["calls", "some_call", "no_call"] as const) {
        const verdict = yield* decide({ type: "bfcl_calls", expect, answers: [] }, talk([user("?"), blank]))
        assert.strictEqual(verdict.outcome, "fail", expect)
      }
    })
  )

  it("are refused by line where they are none", () => {
    const broken = `${text}{"id":"x"}\n`
    const read = Bfcl.read(broken)
    assert.isTrue(Result.isFailure(read) && read.failure.startsWith("line 14 is no row of the leaderboard"))
  })
})

interface ArgumentRow {
  readonly id: string
  readonly category: string
  readonly name: string
  readonly schema_normalised: JsonObject
  readonly valid: boolean
}

const rows = conformance<Bfcl.Row>("bfcl")
const published = conformance<ArgumentRow>("bfcl-arguments")

if (rows === undefined || published === undefined) {
  it.skip("BFCL: conformance/bfcl.jsonl is not here (WRIT_CONFORMANCE), so the leaderboard's rows are not run", () => {})
} else {
  /** Minutes where the machine is busy: thousands of runs of the whole loop. */
  const bound = 900_000
  const page = readFileSync(join(root, "docs/evaluation.md"), "utf8")
  const rowOf = (id: string) => id.replace(/#\d+$/, "")
  const idsOf = (some: ReadonlyArray<Bfcl.Row>) => some.map(({ id }) => id)

  describe("BFCL", () => {
    it("schemas come out as two other validators were given them", () => {
      const byId = new Map(rows.map((row) => [row.id, row]))
      const different = published.filter(({ id, name, schema_normalised }) => {
        const tool = byId.get(rowOf(id))!.tools.find((one) => one.name === name)!
        return canonical(schemaOf(tool.parameters as JsonObject)) !== canonical(schema_normalised)
      })
      assert.deepStrictEqual(
        different.map(({ id }) => id),
        []
      )
    })

    it.live(
      "right answers score 100 % minus the rows nobody can answer, and minus those their own schemas refuse",
      () =>
        Effect.gen(function* () {
          const conversations = yield* Effect.forEach(rows, (row) => play(row, rightReply(row)))
          const byRules = yield* verdicts(rows, conversations, { legal: false })
          const strict = yield* verdicts(rows, conversations)
          const impossible = new Set(idsOf(rows.filter((row) => unanswerable(row) !== undefined)))
          assert.deepStrictEqual(
            idsOf(rows.filter(({ id }) => byRules.get(id)!.outcome !== "pass")),
            idsOf(rows.filter(({ id }) => impossible.has(id)))
          )
          const refused = yield* refusedRows(rows)
          const lost = rows.filter(({ id }) => impossible.has(id) || refused.has(id))
          assert.deepStrictEqual(idsOf(rows.filter(({ id }) => strict.get(id)!.outcome !== "pass")), idsOf(lost))
          // Two other validators say which arguments break their schema: we refuse all of those.
          const invalid = new Set(published.filter(({ valid }) => !valid).map(({ id }) => rowOf(id)))
          assert.deepStrictEqual(
            [...invalid].filter((id) => !refused.has(id)),
            []
          )
          const ours = [...refused].filter((id) => !invalid.has(id)).length
          const line = `| ${rows.length} | ${impossible.size} | ${refused.size} | ${ours} | ${rows.length - lost.length} |`
          assert.include(page, line)
        }).pipe(Effect.provide(Home.layer)),
      bound
    )

    it.live(
      "damaged answers score exactly what the damages are worth",
      () =>
        Effect.gen(function* () {
          const refused = yield* refusedRows(rows)
          const some = rows.filter(
            (row, at) =>
              row.expect === "calls" && !refused.has(row.id) && unanswerable(row) === undefined && at % 3 === 0
          )
          const damaged = some.map((row, at) => damageAt(row, at))
          const kinds = new Set(damaged.map((one) => one?.[0].name))
          assert.isAtLeast(kinds.size, damages.length)
          const replies = new Map(some.map((row, at) => [row.id, damaged[at]?.[1] ?? rightReply(row)]))
          assert.deepStrictEqual(
            yield* failing(some, (row) => replies.get(row.id)!),
            idsOf(some.filter((_, at) => damaged[at]?.[0].stays === false))
          )
        }).pipe(Effect.provide(Home.layer)),
      bound
    )
  })
}
