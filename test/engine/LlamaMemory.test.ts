import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeWorker } from "../../src/actors/Inference.ts"
import { tinyModel } from "../../src/effects/Wiring.ts"

const options = { modelPath: tinyModel, threads: 1, gpu: false } as const

describe("what a context takes of the memory", () => {
  it.live(
    "is held to what it may take: more is refused with what would fit, and that fits",
    () =>
      Effect.gen(function* () {
        const open = (contextTokens: number, sequences: number, memoryBytes: number) =>
          Effect.scoped(
            Effect.map(makeWorker({ ...options, contextTokens, sequences, memoryBytes }), ({ model }) => model.identity)
          )
        const refused = yield* Effect.flip(open(2048, 8, 24 * 2 ** 20))
        assert.strictEqual(refused.reason, "not_enough_memory")
        assert.match(refused.message, /needs about \d+ MiB, 24 MiB are allowed/)
        const [, shorter] = /fit: 8 sessions of (\d+) tokens/.exec(refused.message) ?? []
        const [, fewer] = /(\d+) of 2048/.exec(refused.message) ?? []
        assert.isDefined(shorter ?? fewer, refused.message)
        if (shorter !== undefined) {
          assert.strictEqual((yield* open(Number(shorter), 8, 24 * 2 ** 20)).contextTokens, Number(shorter))
        }
        if (fewer !== undefined)
          assert.strictEqual((yield* open(2048, Number(fewer), 24 * 2 ** 20)).contextTokens, 2048)
        const none = yield* Effect.flip(open(2048, 1, 1000))
        assert.match(none.message, /Not even a short context would fit/)
      }),
    300_000
  )
})
