import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as TestClock from "effect/testing/TestClock"
import { Ids, layer, layerSequence } from "../../src/actors/Ids.ts"

const made = (count: number) => Effect.flatMap(Ids, (ids) => Effect.replicateEffect(ids.run, count))

it.effect("ids of runs tell the time, fit a file name and differ within a second", () =>
  Effect.gen(function* () {
    yield* TestClock.setTime(Date.UTC(2026, 10, 30, 6, 18, 12, 500))
    const ids = yield* made(50)
    for (const id of ids) assert.match(id, /^20261130-061812-[0-9a-f]{6}$/)
    assert.strictEqual(new Set(ids).size, ids.length)
  }).pipe(Effect.provide(layer), Random.withSeed("ids"))
)

it.effect("ids of tests are the same each time", () =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* made(3), ["run-1", "run-2", "run-3"])
  }).pipe(Effect.provide(layerSequence))
)
