/** The cells of a matrix: what names them, what is not done twice, what an interrupted matrix leaves, what the report adds up to. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Conversation } from "../../../../src/effects/conversation/Conversation.ts"
import * as ConversationFile from "../../../../src/effects/conversation/ConversationFile.ts"
import type { Assertion } from "../../../../src/effects/eval/assertions/Kinds.ts"
import * as Bench from "../../../../src/effects/eval/bench/Bench.ts"
import { benchMarkdown } from "../../../../src/effects/eval/bench/BenchMarkdown.ts"
import * as BenchReport from "../../../../src/effects/eval/bench/BenchReport.ts"
import { type Cell, cellsOf, labelled, type Matrix } from "../../../../src/effects/eval/bench/Cell.ts"
import { CellStore } from "../../../../src/effects/eval/bench/CellStore.ts"
import { wilson } from "../../../../src/effects/eval/Statistics.ts"
import type { Suite } from "../../../../src/effects/eval/Suite.ts"
import { directory } from "../../../kit/cli.ts"
import { assistant, blank, nowhere, sumsOf, talk, trace, user } from "../../../kit/evals.ts"

const prompt = (name: string, group = "sums") => ({ group, name, conversation: talk([user(name), blank]) })

const matrix: Matrix = {
  contestants: [
    { name: "good", identity: "1" },
    { name: "poor", identity: "2" }
  ],
  policies: [
    { name: "free", decides: { constrained: false } },
    { name: "held", decides: { constrained: true } }
  ],
  prompts: labelled([prompt("a"), prompt("b"), prompt("c")]),
  repeats: 2,
  seed: 7,
  tools: "t"
}

const says = (value: string): Assertion => ({ type: "text_contains", value })
const suite: Suite = {
  name: "checks",
  cases: [{ assertions: [says("yes"), says("by")] }, { name: "b", assertions: [says("b")] }]
}

/** The contestant `good` says yes to everything; `poor` only to a, and to b in its first repeat. */
const answer = ({ contestant, prompt: { name }, repeat }: Cell): string =>
  contestant.name === "good" || name === "a" || (name === "b" && repeat === 0) ? `yes, by ${name}` : `no, by ${name}`

const filled = (cell: Cell, conversation: Conversation): Conversation => ({
  ...conversation,
  session: [...conversation.session.slice(0, -1), assistant(answer(cell), trace([]))]
})

/** Fills cells, one after the other, until `most` are done; the rest are not begun. */
const player = (store: CellStore, most = Number.POSITIVE_INFINITY) => {
  const played: Array<string> = []
  const contest: Bench.Contest<Bench.BenchError, never> = (_, cells, each) =>
    Effect.forEach(
      cells,
      (cell) =>
        each(cell, (_, conversation) =>
          Effect.suspend((): Effect.Effect<Bench.RunResult> => {
            if (played.length >= most) return Effect.succeed({ _tag: "NotDone", code: 4, message: "stopped" })
            played.push(cell.key)
            return Effect.orDie(
              Effect.as(ConversationFile.save(store.file(cell), filled(cell, conversation)), {
                _tag: "Ran",
                stop: "completed",
                message: "done",
                turns: 1,
                tool_calls: 0
              })
            )
          })
        ),
      { discard: true }
    )
  return { played, contest }
}

const options = (store: CellStore, suiteKey = "s1") => ({ store, suite, suiteKey, around: nowhere })

const named = { id: "bench", timestamp: "2026-11-30T12:00:00.000Z", seed: 7, repeats: 2 }

const counts = (outcomes: ReadonlyArray<Bench.CellOutcome>) => ({
  fresh: outcomes.filter((one) => one._tag === "Done" && !one.cached).length,
  cached: outcomes.filter((one) => one._tag === "Done" && one.cached).length,
  open: outcomes.filter((one) => one._tag === "NotDone").length
})

describe("the name of a cell", () => {
  const keys = (changed: Partial<Matrix>) => new Set(cellsOf({ ...matrix, ...changed }).map(({ key }) => key))
  const before = keys({})

  it("is its own within a matrix", () => {
    assert.strictEqual(before.size, 2 * 2 * 2 * 3)
  })

  it("is the same for the same content, whatever contestant and policy are called", () => {
    const renamed = keys({
      contestants: matrix.contestants.map((one) => ({ ...one, name: `${one.name}!` })),
      policies: matrix.policies.map((one) => ({ ...one, name: `${one.name}!` }))
    })
    assert.deepStrictEqual(renamed, before)
  })

  it("is another one where the model, the policy, the prompt, the seed or the tools are others", () => {
    const [first, ...others] = matrix.prompts
    const reworded = { ...first!, conversation: talk([user("otherwise"), blank]) }
    for (const changed of [
      { contestants: [{ name: "good", identity: "3" }] },
      { policies: [{ name: "free", decides: { constrained: false, temperature: 1 } }] },
      { prompts: [reworded] },
      { seed: 1000 },
      { tools: "u" }
    ]) {
      for (const key of keys(changed)) assert.isFalse(before.has(key), JSON.stringify(changed))
    }
    const kept = [...keys({ prompts: [reworded, ...others] })].filter((key) => before.has(key))
    assert.strictEqual(kept.length, 2 * 2 * 2 * 2)
  })

  it("has a seed of its own for each repeat", () => {
    assert.deepStrictEqual(
      [...new Set(cellsOf({ ...matrix, seed: 2 ** 32 - 1 }).map(({ seed }) => seed))],
      [2 ** 32 - 1, 0]
    )
  })

  it("names prompts by their group where two have the same name", () => {
    const all = labelled([prompt("a"), prompt("a", "other"), prompt("b")])
    assert.deepStrictEqual(
      all.map(({ label }) => label),
      ["sums/a", "other/a", "b"]
    )
  })
})

describe("a matrix", () => {
  it.live("that is interrupted after any number of cells goes on, and runs none of them again", () =>
    Effect.gen(function* () {
      const cells = cellsOf(matrix)
      const whole = new CellStore(join(yield* directory, "cells"))
      const once = yield* Bench.run(cells, player(whole).contest, options(whole))
      const expected = BenchReport.of(once, suite, named).bench.rows.map(({ columns, total }) => ({ columns, total }))
      for (const most of [0, 1, 7, cells.length - 1]) {
        const store = new CellStore(join(yield* directory, "cells"))
        const first = player(store, most)
        const stopped = yield* Bench.run(cells, first.contest, options(store))
        assert.deepStrictEqual(counts(stopped), { fresh: most, cached: 0, open: cells.length - most })
        const second = player(store)
        const outcomes = yield* Bench.run(cells, second.contest, options(store))
        assert.deepStrictEqual(counts(outcomes), { fresh: cells.length - most, cached: most, open: 0 })
        assert.deepStrictEqual(new Set([...first.played, ...second.played]).size, cells.length)
        assert.strictEqual(first.played.length + second.played.length, cells.length)
        const rows = BenchReport.of(outcomes, suite, named).bench.rows
        assert.deepStrictEqual(
          rows.map(({ columns, total }) => ({ columns, total })),
          expected
        )
      }
    })
  )

  it.live("judges what was run before by another suite without running it", () =>
    Effect.gen(function* () {
      const store = new CellStore(join(yield* directory, "cells"))
      const cells = cellsOf(matrix)
      yield* Bench.run(cells, player(store).contest, options(store))
      const strict: Suite = { name: "strict", cases: [{ assertions: [{ type: "text_equals", value: "yes, by a" }] }] }
      const again = player(store)
      const outcomes = yield* Bench.run(cells, again.contest, { ...options(store, "s2"), suite: strict })
      assert.strictEqual(again.played.length, 0)
      const { bench } = BenchReport.of(outcomes, strict, named)
      assert.deepStrictEqual(
        bench.rows.map(({ total }) => [total.passes, total.tries]),
        [
          [2, 6],
          [2, 6],
          [2, 6],
          [2, 6]
        ]
      )
    })
  )

  it.live("runs a cell again whose conversation was changed, or whose record is broken", () =>
    Effect.gen(function* () {
      const store = new CellStore(join(yield* directory, "cells"))
      const cells = cellsOf({ ...matrix, contestants: matrix.contestants.slice(0, 1), repeats: 1 })
      yield* Bench.run(cells, player(store).contest, options(store))
      writeFileSync(store.file(cells[0]!), readFileSync(store.file(cells[0]!), "utf8").replace("yes", "no"))
      writeFileSync(join(store.directory(cells[1]!), "cell.json"), '{"stop":')
      const again = player(store)
      yield* Bench.run(cells, again.contest, options(store))
      assert.deepStrictEqual(again.played, [cells[0]!.key, cells[1]!.key])
      yield* store.forget(cells[2]!)
      assert.isFalse(existsSync(store.directory(cells[2]!)))
      assert.isTrue(readdirSync(store.folder).includes(".gitignore"))
    })
  )

  it.live("runs cells of the same content once, and counts each", () =>
    Effect.gen(function* () {
      const store = new CellStore(join(yield* directory, "cells"))
      const twins = matrix.contestants.map((one) => ({ ...one, identity: "1" }))
      const play = player(store)
      const outcomes = yield* Bench.run(cellsOf({ ...matrix, contestants: twins }), play.contest, options(store))
      assert.strictEqual(play.played.length, 12)
      const { bench } = BenchReport.of(outcomes, suite, named)
      assert.deepStrictEqual(bench.rows[0]!.total, bench.rows[2]!.total)
      assert.strictEqual(bench.not_done.length, 0)
    })
  )

  it.live("goes on with a conversation that was filled in part", () =>
    Effect.gen(function* () {
      const store = new CellStore(join(yield* directory, "cells"))
      const [cell] = cellsOf(matrix)
      yield* store.begin(cell!)
      const part = talk([user("a"), assistant("half"), blank])
      yield* ConversationFile.save(store.file(cell!), part)
      assert.deepStrictEqual(yield* store.begin(cell!), part)
    })
  )

  it.live("that cannot be run says which cells, and why", () =>
    Effect.gen(function* () {
      const store = new CellStore(join(yield* directory, "cells"))
      const cells = cellsOf({ ...matrix, repeats: 1 })
      const contest: Bench.Contest<Bench.BenchError, never> = (contestant, own, each) =>
        contestant.name === "good"
          ? player(store).contest(contestant, own, each)
          : Effect.forEach(
              own,
              (cell) => each(cell, () => Effect.succeed({ _tag: "NotDone", code: 1, message: "no such model" })),
              { discard: true }
            )
      const outcomes = yield* Bench.run(cells, contest, options(store))
      const { bench } = BenchReport.of(outcomes, suite, { ...named, repeats: 1 })
      assert.strictEqual(bench.not_done.length, 6)
      assert.deepStrictEqual(bench.not_done[0], { cell: "poor, free, a (1)", message: "no such model" })
      assert.include(benchMarkdown(bench), "- poor, free, a (1): no such model")
      assert.deepStrictEqual(bench.rows[2]!.total, { passes: 0, tries: 0 })
    })
  )
})

describe("the report of a matrix", () => {
  const made = Effect.gen(function* () {
    const store = new CellStore(join(yield* directory, "cells"))
    const outcomes = yield* Bench.run(cellsOf(matrix), player(store).contest, options(store))
    return BenchReport.of(outcomes, suite, named)
  })

  it.live("has a row per model and policy: shares with Wilson intervals, columns, cost, what is flaky", () =>
    Effect.gen(function* () {
      const { bench } = yield* made
      assert.deepStrictEqual(
        bench.rows.map(({ contestant, policy }) => [contestant, policy]),
        [
          ["good", "free"],
          ["good", "held"],
          ["poor", "free"],
          ["poor", "held"]
        ]
      )
      // Per repeat: two assertions over three prompts, one more over b. The poor one misses yes in c twice, and in b once.
      const [good, , poor] = bench.rows
      assert.deepStrictEqual(good!.total, { passes: 14, tries: 14, interval: wilson(14, 14)! })
      assert.deepStrictEqual(poor!.total, { passes: 11, tries: 14, interval: wilson(11, 14)! })
      assert.deepStrictEqual(poor!.columns, {
        a: { passes: 4, tries: 4, interval: wilson(4, 4)! },
        b: { passes: 5, tries: 6, interval: wilson(5, 6)! },
        c: { passes: 2, tries: 4, interval: wilson(2, 4)! }
      })
      assert.deepStrictEqual(
        poor!.flaky.map(({ conversation, ordinal, passes, tries }) => [conversation, ordinal, passes, tries]),
        [["b", 0, 1, 2]]
      )
      assert.deepStrictEqual(poor!.metrics, {
        total_input_tokens: 60,
        total_output_tokens: 30,
        total_cache_hit_tokens: 0,
        total_latency_ms: 120,
        conversations_with_trace: 6
      })
      assert.deepStrictEqual(bench.versus[1], { a: "good, free", b: "poor, free", improved: 0, regressed: 2, p: 0.5 })
    })
  )

  it.live("makes reports as `writ eval` does, one per row and repeat, whose sums agree", () =>
    Effect.gen(function* () {
      const { reports } = yield* made
      assert.deepStrictEqual(reports.map(({ run_id }) => run_id).slice(0, 3), [
        "bench.good.free.1",
        "bench.good.free.2",
        "bench.good.held.1"
      ])
      assert.strictEqual(reports.length, 8)
      for (const report of reports) assert.deepStrictEqual(sumsOf(report), [])
      assert.deepStrictEqual(reports[5]!.totals.assertions, {
        passed: 5,
        failed: 2,
        deferred: 0,
        malformed: 0,
        errored: 0
      })
    })
  )

  it.live("says all of it in Markdown", () =>
    Effect.gen(function* () {
      const { bench } = yield* made
      const text = benchMarkdown(bench)
      assert.include(
        text,
        "| model | policy | passed | 95 % interval | a | b | c | input tokens | output tokens | latency (ms) | flaky | not done |"
      )
      assert.include(
        text,
        "| poor | free | 78.6 % | 52–92 % | 4/4 (51–100 %) | 5/6 (44–97 %) | 2/4 (15–85 %) | 10 | 5 | 20 | 1 | 0 |"
      )
      assert.include(text, "| poor, free against good, free | 0 | 2 | 0.5000 |")
    })
  )

  it.live("has a column per group where there are many prompts", () =>
    Effect.gen(function* () {
      const store = new CellStore(join(yield* directory, "cells"))
      const many = Array.from({ length: 13 }, (_, at) => prompt(`p${at}`, at % 2 === 0 ? "even" : "odd"))
      const cells = cellsOf({ ...matrix, prompts: labelled(many), repeats: 1, policies: matrix.policies.slice(0, 1) })
      const outcomes = yield* Bench.run(cells, player(store).contest, options(store))
      const { bench } = BenchReport.of(outcomes, suite, { ...named, repeats: 1 })
      assert.deepStrictEqual(bench.columns, ["even", "odd"])
      assert.strictEqual(bench.rows[0]!.columns["even"]!.tries, 14)
    })
  )
})
