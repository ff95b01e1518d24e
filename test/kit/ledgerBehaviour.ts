/** What every ledger has to do, whatever keeps it. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { EffectLedger, type LedgerTiming } from "../../src/actors/EffectLedger.ts"
import type { LedgerError } from "../../src/actors/EffectLedgerError.ts"
import { failed, intent, succeeded, unknown } from "./ledger.ts"

const reasonOf = (effect: Effect.Effect<unknown, LedgerError>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason)

const { key } = intent(0)

/** A ledger whose only call ended without anybody knowing how. */
const unknownCall = (ledger: EffectLedger["Service"], changes?: Parameters<typeof intent>[1]) =>
  Effect.andThen(ledger.begin(intent(0, changes)), ledger.settle(key, unknown))

/** Runs `body` with a ledger that nobody has used. */
type WithLedger = <A, E>(
  body: (ledger: EffectLedger["Service"]) => Effect.Effect<A, E>,
  timing?: LedgerTiming
) => Effect.Effect<A, E | LedgerError>

type Part = (backend: string, withLedger: WithLedger) => void

const oneKey: Part = (backend, withLedger) => {
  describe(`${backend}: one key`, () => {
    it.live("is new once and answered with the same bytes ever after", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          const outcome = succeeded('INV-9 "é"\u2028')
          assert.deepStrictEqual(yield* ledger.begin(intent(0)), { _tag: "New" })
          yield* ledger.settle(key, outcome)
          for (let delivery = 2; delivery <= 5; delivery++) {
            assert.deepStrictEqual(yield* ledger.begin(intent(0)), { _tag: "Settled", outcome })
          }
          assert.lengthOf(yield* ledger.list(), 1)
        })
      )
    )

    it.live("delivered five times at once has one actor, and the others get its answer", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          let effects = 0
          const deliver = Effect.gen(function* () {
            const begun = yield* ledger.begin(intent(0))
            if (begun._tag === "Settled") return begun.outcome.answer
            assert.strictEqual(begun._tag, "New")
            effects++
            yield* Effect.yieldNow
            const outcome = succeeded(`effect ${effects}`)
            yield* ledger.settle(key, outcome)
            return outcome.answer
          })
          const answers = yield* Effect.all(
            Array.from({ length: 5 }, () => deliver),
            { concurrency: "unbounded" }
          )
          assert.strictEqual(effects, 1)
          assert.deepStrictEqual(new Set(answers), new Set([succeeded("effect 1").answer]))
        })
      )
    )
  })
}

const wrongKey: Part = (backend, withLedger) => {
  describe(`${backend}: a key that is used wrongly`, () => {
    it.live("with other arguments, or another tool, is a conflict that gives no answer away", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          yield* ledger.begin(intent(0))
          yield* ledger.settle(key, succeeded("secret"))
          const other = intent(0, { argumentsDigest: intent(1).argumentsDigest })
          assert.strictEqual((yield* ledger.begin(other))._tag, "Conflict")
          assert.strictEqual((yield* ledger.retake(other))._tag, "Conflict")
          assert.strictEqual((yield* ledger.begin(intent(0, { tool: "refund" })))._tag, "Conflict")
        })
      )
    )

    it.live("that is no digest is refused before anything is kept", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          for (const wrong of [{ key: "" }, { key: "order-431" }, { argumentsDigest: `${key}0` }]) {
            assert.strictEqual(yield* reasonOf(ledger.begin(intent(0, wrong))), "invalid")
          }
          assert.deepStrictEqual(yield* ledger.list(), [])
        })
      )
    )
  })
}

const waiting: Part = (backend, withLedger) => {
  describe(`${backend}: waiting for somebody else's outcome`, () => {
    it.live("ends as unknown when there is none in time", () =>
      withLedger(
        (ledger) =>
          Effect.gen(function* () {
            yield* ledger.begin(intent(0))
            assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Unknown")
          }),
        { waitMillis: 100 }
      )
    )

    it.live("can be interrupted, also where its caller cannot, and leaves no claim", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          yield* ledger.begin(intent(0))
          const waiting = Effect.uninterruptible(ledger.begin(intent(0)))
          const second = yield* Effect.forkChild(waiting, { startImmediately: true })
          yield* Fiber.interrupt(second)
          assert.lengthOf((yield* ledger.get(key))!.entry.attempts, 1)
          yield* ledger.settle(key, succeeded("done"))
          assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Settled")
        })
      )
    )

    it.live("goes on when what arrives settles nothing", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          yield* ledger.begin(intent(0))
          const second = yield* Effect.forkChild(ledger.begin(intent(0)), { startImmediately: true })
          yield* ledger.late(key, unknown)
          yield* Effect.yieldNow
          assert.isUndefined(second.pollUnsafe())
          yield* ledger.settle(key, failed)
          assert.deepStrictEqual(yield* Fiber.join(second), { _tag: "Settled", outcome: failed })
        })
      )
    )
  })
}

const unknownEffect: Part = (backend, withLedger) => {
  describe(`${backend}: an unknown effect`, () => {
    it.live("is never new again by itself", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          yield* unknownCall(ledger)
          assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Unknown")
          assert.strictEqual((yield* ledger.get(key))!.standing, "unknown")
          assert.lengthOf(yield* ledger.list({ standing: "unknown", runId: "run-1" }), 1)
          assert.lengthOf(yield* ledger.list({ standing: "settled" }), 0)
          assert.lengthOf(yield* ledger.list({ runId: "run-2" }), 0)
        })
      )
    )

    it.live("can be tried again under its key, and every attempt stays on the record", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          yield* unknownCall(ledger)
          assert.deepStrictEqual(yield* ledger.retake(intent(0)), { _tag: "New" })
          yield* ledger.settle(key, succeeded("second try"))
          const { attempts } = (yield* ledger.get(key))!.entry
          assert.deepStrictEqual(
            attempts.map(({ settled }) => settled?.outcome.state),
            ["unknown", "succeeded"]
          )
          assert.strictEqual((yield* ledger.retake(intent(0)))._tag, "Settled")
        })
      )
    )

    it.live("of mode none is never tried again, whatever the caller says its mode is", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          yield* unknownCall(ledger, { mode: "none" })
          assert.strictEqual((yield* ledger.retake(intent(0, { mode: "none" })))._tag, "Unknown")
          assert.strictEqual((yield* ledger.retake(intent(0)))._tag, "Unknown")
        })
      )
    )
  })
}

const settledAfterwards: Part = (backend, withLedger) => {
  describe(`${backend}: an unknown effect that is settled afterwards`, () => {
    it.live("is settled by a late outcome, which does not replace what was told", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          yield* unknownCall(ledger)
          yield* ledger.late(key, succeeded("late"))
          assert.deepStrictEqual(yield* ledger.begin(intent(0)), { _tag: "Settled", outcome: succeeded("late") })
          yield* ledger.late(key, failed)
          const { entry } = (yield* ledger.get(key))!
          assert.deepStrictEqual(entry.attempts[0]!.settled!.outcome, unknown)
          assert.deepStrictEqual(entry.late!.outcome, succeeded("late"))
          assert.strictEqual(yield* reasonOf(ledger.settle(key, failed)), "settled")
        })
      )
    )

    it.live(
      "stays open when one of its attempts says late that it left nothing: the others may have left something",
      () =>
        withLedger((ledger) =>
          Effect.gen(function* () {
            yield* unknownCall(ledger)
            assert.strictEqual((yield* ledger.retake(intent(0)))._tag, "New")
            yield* ledger.late(key, failed)
            assert.strictEqual((yield* ledger.get(key))!.standing, "running")
            yield* ledger.settle(key, unknown)
            assert.strictEqual((yield* ledger.begin(intent(0)))._tag, "Unknown")
            yield* ledger.late(key, succeeded("late"))
            assert.deepStrictEqual(yield* ledger.begin(intent(0)), { _tag: "Settled", outcome: succeeded("late") })
          })
        )
    )

    it.live("is resolved by a person once, with name and reason", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          yield* unknownCall(ledger)
          const verdict = { outcome: succeeded("INV-9"), by: "ada", reason: "the invoice is in the portal" }
          assert.strictEqual(yield* reasonOf(ledger.resolve(key, { ...verdict, reason: " " })), "invalid")
          assert.strictEqual(yield* reasonOf(ledger.resolve(key, { ...verdict, outcome: unknown })), "invalid")
          yield* ledger.resolve(key, verdict)
          const { entry, standing } = (yield* ledger.get(key))!
          assert.strictEqual(standing, "settled")
          assert.deepStrictEqual(entry.resolved, { at: entry.resolved!.at, ...verdict })
          assert.deepStrictEqual(yield* ledger.begin(intent(0)), { _tag: "Settled", outcome: verdict.outcome })
          assert.strictEqual(yield* reasonOf(ledger.resolve(key, verdict)), "settled")
          // What arrives afterwards is kept as evidence and changes no answer.
          yield* ledger.late(key, failed)
          assert.deepStrictEqual(yield* ledger.begin(intent(0)), { _tag: "Settled", outcome: verdict.outcome })
        })
      )
    )
  })
}

const settling: Part = (backend, withLedger) => {
  describe(`${backend}: settling`, () => {
    it.live("twice with the same outcome is once, and with another one an error", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          yield* ledger.begin(intent(0))
          yield* ledger.settle(key, succeeded("a"))
          yield* ledger.settle(key, succeeded("a"))
          assert.strictEqual(yield* reasonOf(ledger.settle(key, succeeded("b"))), "settled")
          assert.strictEqual(yield* reasonOf(ledger.settle(key, unknown)), "settled")
          assert.deepStrictEqual(yield* ledger.begin(intent(0)), { _tag: "Settled", outcome: succeeded("a") })
        })
      )
    )

    it.live("needs an intent, and a person waits for a running one", () =>
      withLedger((ledger) =>
        Effect.gen(function* () {
          const verdict = { outcome: succeeded("x"), by: "ada", reason: "seen" }
          assert.strictEqual(yield* reasonOf(ledger.settle(key, failed)), "missing")
          assert.strictEqual(yield* reasonOf(ledger.late(key, failed)), "missing")
          assert.strictEqual(yield* reasonOf(ledger.resolve(key, verdict)), "missing")
          yield* ledger.begin(intent(0))
          assert.strictEqual(yield* reasonOf(ledger.resolve(key, verdict)), "running")
        })
      )
    )
  })
}

/** `made` gives a ledger that nobody has used. */
export const ledgerBehaviour = (
  backend: string,
  made: (timing: LedgerTiming) => Effect.Effect<Layer.Layer<EffectLedger, LedgerError>, never, Scope.Scope>
): void => {
  const withLedger: WithLedger = (body, timing = {}) =>
    Effect.scoped(Effect.flatMap(made(timing), (layer) => Effect.provide(Effect.flatMap(EffectLedger, body), layer)))
  for (const part of [oneKey, wrongKey, waiting, unknownEffect, settledAfterwards, settling]) part(backend, withLedger)
}
