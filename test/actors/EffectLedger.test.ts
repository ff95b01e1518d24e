import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { EffectLedger, layerMemory, layerNone } from "../../src/actors/EffectLedger.ts"
import { failed, intent } from "../kit/ledger.ts"
import { ledgerBehaviour } from "../kit/ledgerBehaviour.ts"

ledgerBehaviour("memory", (timing) => Effect.succeed(layerMemory(timing)))

const { key } = intent(0)

it.effect("waiting for somebody else's outcome takes 90 seconds and not one less", () =>
  Effect.gen(function* () {
    const ledger = yield* EffectLedger
    yield* ledger.begin(intent(0))
    const second = yield* Effect.forkChild(ledger.begin(intent(0)), { startImmediately: true })
    yield* TestClock.adjust("89 seconds")
    assert.isUndefined(second.pollUnsafe())
    yield* TestClock.adjust("1 second")
    assert.strictEqual((yield* Fiber.join(second))._tag, "Unknown")
  }).pipe(Effect.provide(layerMemory()))
)

it.effect("a run without a ledger finds every intent new", () =>
  Effect.gen(function* () {
    const ledger = yield* EffectLedger
    yield* ledger.begin(intent(0))
    yield* ledger.settle(key, failed)
    assert.deepStrictEqual(yield* ledger.begin(intent(0)), { _tag: "New" })
    assert.deepStrictEqual(yield* ledger.list(), [])
  }).pipe(Effect.provide(layerNone))
)
