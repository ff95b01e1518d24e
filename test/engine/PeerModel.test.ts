import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as PeerModel from "../../src/engine/PeerModel.ts"
import { text } from "../../src/engine/Prompt.ts"

const request = { maxTokens: 20, stops: [], sampling: { temperature: 0, topK: 40, topP: 0.95, seed: 1 } }

describe("a peer's session", () => {
  it.effect("goes back to its boundaries and to no other place", () =>
    Effect.gen(function* () {
      const model = PeerModel.make({ name: "peer", next: Effect.succeed("a call"), heard: () => {} })
      const session = yield* model.session
      const first = yield* session.commit([text("something")])
      yield* Stream.runDrain(session.turn([], request))
      const kept = yield* session.keep([])
      assert.strictEqual((yield* Effect.flip(session.rewind(first.end + 1))).reason, "bad_request")
      assert.strictEqual(yield* session.length, kept.end)
      yield* session.rewind(first.end)
      assert.strictEqual(yield* session.length, first.end)
      assert.strictEqual((yield* Effect.flip(session.rewind(kept.end))).reason, "bad_request")
    })
  )
})
