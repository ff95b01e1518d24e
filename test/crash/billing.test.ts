/**
 * Item 4 of the strict suite: the crash matrix. Real processes that make an invoice, killed at each instant between the
 * proposal and the moment the model is told, for each way an effect is kept from happening twice.
 *
 *   before t0   proposed, nothing written            t2   answered, nothing recorded
 *   t0          intent written, request maybe sent   t3   the next attempt has begun
 *   t1          the invoice exists, nobody knows     told outcome recorded, the model not told
 */
import { assert, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { LedgerMode } from "../../src/tools/Contract.ts"
import { type Afterwards, lives, type Service, services } from "../kit/billingCrash.ts"
import { bundled } from "../kit/crash.ts"

class Setting extends Context.Service<Setting, { readonly program: string; readonly url: string }>()(
  "effect-writ/test/BillingSetting"
) {
  static readonly layer = Layer.effect(
    Setting,
    Effect.gen(function* () {
      const { url } = yield* services
      return { program: yield* bundled("billingChild"), url }
    })
  )
}

/** Row, and where the processes die that come to it. */
type Row = readonly [row: string, ...deaths: ReadonlyArray<string>]
type Rows = readonly [Row, Row, Row, Row, Row, Row, Row]

const rows: Rows = [
  ["before t0", "before-begin:1"],
  ["t0, request not sent", "after-begin:1"],
  ["t0, inside the tool", "before-request:1"],
  ["t1", "in-flight:1"],
  ["t2, answer in hand", "after-answer:1"],
  ["t2, about to record", "before-settle:1"],
  ["told", "after-settle:1"]
]

/** Rows of the attempt after the first: only where there is one. */
const again: ReadonlyArray<Row> = [
  ["t3, right to act again", "after-begin:1", "after-retake:1"],
  ["t3, about to send again", "before-request:1", "before-request:1"],
  ["t3, sent again", "before-request:1", "before-settle:1"]
]

const valid = ({ verdicts }: Afterwards, where: string): void => {
  for (const [at, verdict] of verdicts.entries())
    assert.deepStrictEqual(verdict.violations, [], `trace ${at}: ${where}`)
  assert.isTrue(verdicts.at(-1)?.complete, where)
}

const matrix = (
  mode: LedgerMode,
  service: Service,
  cases: ReadonlyArray<Row>,
  check: (after: Afterwards, row: string) => void
) =>
  Effect.flatMap(Setting, ({ program, url }) =>
    Effect.forEach(
      cases,
      ([row, ...deaths]) =>
        Effect.map(lives(program, url, mode, service, deaths), (after) => {
          const where = `${mode} with a ${service} service, ${row}`
          assert.isAtMost(after.invoices, 1, where)
          valid(after, where)
          check(after, where)
        }),
      { concurrency: 2, discard: true }
    )
  )

const billedOnce = ({ ended, invoices }: Afterwards, where: string): void => {
  assert.deepStrictEqual([ended.stop, invoices], [{ _tag: "Completed", text: "The invoice is made." }, 1], where)
  assert.deepStrictEqual(ended.answers, ['{"ok":true,"result":{"id":"INV-1"}}'], where)
}

/** It may or may not be there; nobody says that it is, and the exit code says so. */
const nobodyKnows =
  (expected: number) =>
  ({ ended, invoices }: Afterwards, where: string): void => {
    assert.deepStrictEqual([ended.stop._tag, ended.exit, invoices], ["Escalated", 7, expected], where)
    assert.include(ended.answers[0], '"kind":"outcome_unknown"', where)
  }

const minutes = 5 * 60_000

layer(Setting.layer, { timeout: minutes, excludeTestServices: true })("4: the crash matrix", (it) => {
  it.effect(
    "mode external, a service that honours keys: one invoice from every row",
    () => matrix("external", "keyed", [...rows, ...again], billedOnce),
    minutes
  )

  it.effect(
    "mode observe, a service that does not honour keys: one invoice from every row",
    () => matrix("observe", "plain", [...rows, ...again], billedOnce),
    minutes
  )

  it.effect(
    "mode atomic, an invoice named by its key: one invoice from every row",
    () =>
      matrix(
        "atomic",
        "plain",
        [...rows, ...again].filter(([row]) => row !== "t1"),
        billedOnce
      ),
    minutes
  )

  it.effect(
    "the count goes on in the next process: three lost attempts leave one, four leave none",
    () =>
      Effect.gen(function* () {
        const dying = (times: number) => Array.from({ length: times }, () => "before-request:1")
        yield* matrix("external", "keyed", [["three", ...dying(3)]], billedOnce)
        yield* matrix("external", "keyed", [["four", ...dying(4)]], nobodyKnows(0))
      }),
    minutes
  )

  it.effect(
    "mode none, either service: once where it is known, otherwise the run escalates and nothing is sent",
    () =>
      Effect.gen(function* () {
        const [before, notSent, inside, inFlight, answered, recording, told] = rows
        yield* matrix("none", "plain", [before, told], billedOnce)
        yield* matrix("none", "plain", [notSent, inside], nobodyKnows(0))
        yield* matrix("none", "plain", [inFlight, answered, recording], nobodyKnows(1))
        // That the service would honour keys helps nobody who does not say so.
        yield* matrix("none", "keyed", [inside], nobodyKnows(0))
        yield* matrix("none", "keyed", [inFlight], nobodyKnows(1))
      }),
    minutes
  )
})
